"""What channels have learned, packed."""

import json
from pathlib import Path

import numpy as np
import pytest

from mzseek.bundle.arrays import Arrays, write_arrays
from mzseek.bundle.bundle import open_states, pack_states
from mzseek.core.errors import BundleError
from mzseek.evidence.channel import ChannelState
from mzseek.evidence.model import EvidenceModel
from mzseek.runs.run import Run


@pytest.fixture
def fitted(fitted_run: Run) -> EvidenceModel:
    return EvidenceModel.open(fitted_run)


def test_all_but_peaks_comes_back_as_it_was(fitted: EvidenceModel, tmp_path: Path) -> None:
    facts, arrays = pack_states(fitted, most_peaks=10_000)
    write_arrays(tmp_path / "a.bin", arrays)
    again = open_states(json.loads(json.dumps(facts)), Arrays(tmp_path / "a.bin"), "here")
    for old, new in zip(fitted.states, again.states, strict=True):
        assert set(new.arrays) - {"learned_from"} == set(old.arrays)
        assert new.inchikey14.tolist() == old.inchikey14.tolist()
        assert dict(new.metadata) == dict(old.metadata)
        for name in set(old.arrays) - {"mz", "heights", "precursors"}:
            assert new.arrays[name].dtype == old.arrays[name].dtype
            assert np.array_equal(new.arrays[name], old.arrays[name])


def test_the_place_of_a_run_is_not_told(fitted: EvidenceModel) -> None:
    from mzseek.evidence.network_scores import Network, NetworkOptions

    channel = Network(NetworkOptions(path="/home/me/runs/emb-cos"))
    learned = ChannelState({}, {}, np.array([b"A" * 14]))
    facts, _ = pack_states(EvidenceModel([channel], [learned], fitted.ranker))
    assert facts["channels"][0]["options"]["path"] == "emb-cos"
    assert facts["channels"][0]["label"] == channel.label == "run:emb-cos"


def test_what_does_not_fit_is_refused(fitted: EvidenceModel, tmp_path: Path) -> None:
    facts, arrays = pack_states(fitted)
    write_arrays(tmp_path / "a.bin", arrays)
    whole = Arrays(tmp_path / "a.bin")
    with pytest.raises(BundleError, match="here: lacks 'ranker'"):
        open_states({}, whole, "here")
    unknown = [facts["channels"][0] | {"name": "dowsing"}, *facts["channels"][1:]]
    with pytest.raises(BundleError, match="here: channel 'dowsing' is unknown"):
        open_states(facts | {"channels": unknown}, whole, "here")
    with pytest.raises(BundleError, match="its ranker is of other channels than it names"):
        open_states(facts | {"channels": facts["channels"][::-1]}, whole, "here")
    write_arrays(tmp_path / "b.bin", {})
    with pytest.raises(BundleError, match="what fragments has learned is missing"):
        open_states(facts, Arrays(tmp_path / "b.bin"), "here")
    other = json.loads(json.dumps(facts))
    for table in (other["ranker"]["spread"], *other["ranker"]["weights"].values()):
        table["fragments"]["luck"] = table["fragments"].pop("pairs")
    with pytest.raises(BundleError, match="reads other features of fragments than this version"):
        open_states(other, whole, "here")
