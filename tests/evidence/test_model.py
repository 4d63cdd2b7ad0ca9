"""Channels by name, and a fitted model: states on disk, opened and applied."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence import CHANNELS, channel_from, channels_from, check_names
from mzseek.evidence.analogs import Analogs
from mzseek.evidence.fragments import Fragments
from mzseek.evidence.model import (
    Channel,
    ChannelState,
    EvidenceModel,
    open_states,
    save_states,
    total_scores,
)
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum

from .conftest import shuffled, training_set_of

FITTED = (Fragments(), Analogs())


def test_channels_as_users_name_them() -> None:
    found = channels_from(" fragments, run:runs/emb-cos ,analogs", ["fragments.ppm=5"])
    assert [channel.label for channel in found] == ["fragments", "run:emb-cos", "analogs"]
    assert found[0].options.ppm == 5.0
    assert found[1].options.path == "runs/emb-cos"
    assert check_names("analogs,run:a/b") == [("analogs", ""), ("run", "a/b")]
    assert channel_from("analogs", {"top": 3}).options.top == 3


@pytest.mark.parametrize(
    ("names", "setting", "message"),
    [
        ("", None, "no channels, expected one or more of: fragments, analogs, intens"),
        ("fragmnts", None, "channel 'fragmnts' is unknown, expected one of: fragments, analogs"),
        ("run", None, "channel 'run' is unknown, expected run:FOLDER"),
        ("run:", None, "channel 'run:' is unknown, expected run:FOLDER"),
        ("analogs:x", None, "channel 'analogs:x' is unknown, expected analogs"),
        ("fragments,fragments", None, "two channels are called fragments"),
        ("run:a/x,run:b/x", None, "two channels are called run:x; give the runs names of"),
        ("fragments", "ppm=5", "expected CHANNEL.OPTION=VALUE"),
        ("fragments", "analogs.top=5", "channel 'analogs' is unknown, expected one of: fragments"),
        ("fragments", "fragments.pm=5", "option 'pm' is unknown, expected one of: ppm"),
        ("fragments", "fragments.ppm=wide", "ppm is 'wide', expected a number"),
        ("fragments", "fragments.ppm=-1", "ppm is -1.0, expected more than 0"),
    ],
)
def test_unknown_channels_and_options_are_refused(names, setting, message: str) -> None:
    with pytest.raises(EvidenceError, match=message):
        channels_from(names, [] if setting is None else [setting])


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("mzseek.evidence", "numpy torch rdkit"),
        (
            "mzseek.evidence.model, mzseek.evidence.fragments, mzseek.evidence.analogs",
            "torch mzseek.datasets mzseek.runs mzseek.models mzseek.losses",
        ),
    ],
    ids=["names", "annotating"],
)
def test_importing_loads_no_more_than_needed(modules: str, absent: str) -> None:
    code = f"import sys, {modules}; sys.exit(bool(set({absent.split()}) & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", list(CHANNELS))
def test_channels_have_names_and_options(name: str) -> None:
    kind = CHANNELS[name]
    assert issubclass(kind, Channel)
    assert kind.name == name
    channel = kind()
    assert len(set(channel.feature_names)) == len(channel.feature_names) > 0
    assert channel.options == kind.options_type()


@pytest.mark.parametrize("name", [name for name in CHANNELS if not CHANNELS[name].pretrained])
def test_no_order_shows_in_features(queries: Queries, training_set: TrainingSet, name: str) -> None:
    channel = channel_from(name, {})
    state = channel.fit(training_set)
    features = channel.features(state, queries)
    assert features.shape == (queries.ragged.total, len(channel.feature_names))
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    other, rows = shuffled(queries)
    again = channel.fit(training_set_of(other))
    assert np.array_equal(again.inchikey14, state.inchikey14)
    assert np.allclose(channel.features(again, other), features[rows], rtol=1e-3, atol=2e-4)


def test_states_come_back(training_set: TrainingSet, queries: Queries, tmp_path: Path) -> None:
    states = [channel.fit(training_set) for channel in FITTED]
    save_states(tmp_path / "evidence", FITTED, states)
    opened = open_states(tmp_path / "evidence", FITTED)
    for channel, state, again in zip(FITTED, states, opened, strict=True):
        assert np.array_equal(again.inchikey14, state.inchikey14)
        assert dict(again.metadata) == dict(state.metadata)
        features = channel.features(state, queries)
        assert np.array_equal(channel.features(again, queries), features)


def test_damaged_states_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    save_states(folder, FITTED, [ChannelState({"a": np.zeros(2)})] * 2)
    opened = open_states(folder, FITTED)
    assert opened[0].inchikey14.shape == (0,)
    assert opened[0].inchikey14.dtype == np.dtype("S14")
    with pytest.raises(EvidenceError, match=r"is missing|no such file"):
        open_states(folder, FITTED[::-1])
    path = folder / "0-fragments.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(EvidenceError, match=r"fragments.safetensors has changed; run `mzseek fit`"):
        open_states(folder, FITTED)
    path.unlink()
    with pytest.raises(EvidenceError, match=r"is no fitted evidence .there is no such folder"):
        open_states(folder / "nowhere", FITTED)
    with pytest.raises(EvidenceError, match=r"0-fragments.safetensors"):
        open_states(folder, FITTED)


def test_it_scores_spectra_of_any_origin(fitted_run: Run, small: Prepared) -> None:
    model = EvidenceModel.open(fitted_run.folder)
    spectrum = Spectrum(np.array([60.5, 80.5]), np.array([1.0, 0.5]), 150.0, "[M+H]+", 1, "new")
    queries = Queries.of([spectrum], [["CCO", "c1ccccc1O", "CCCCCC"]], fingerprint="maccs", jobs=1)
    contributions = model.contributions(queries)
    assert contributions.shape == (3, 2)
    assert np.isfinite(contributions).all()
    assert np.array_equal(model.scores(queries), total_scores(contributions))
    described = json.loads(json.dumps(model.describe()))
    assert described == json.loads(fitted_run.path.read_text())["model"]
    assert fitted_run.open_data().manifest["key"] == small.manifest["key"]


def test_contributions_that_cancel_are_summed_in_double_precision() -> None:
    assert total_scores(np.array([[1e8, 1.0, -1e8]], np.float32)).tolist() == [1.0]


def test_other_runs_are_refused(trained, fitted_run: Run, tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="was trained, not fitted; `mzseek fit` takes it as a"):
        EvidenceModel.open(trained("bce").folder)
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    path, text = folder / "run.json", (folder / "run.json").read_text()
    path.write_text(text.replace("sharp regression", "blunt regression"))
    with pytest.raises(EvidenceError, match="weighs other features of analogs than this version"):
        EvidenceModel.open(folder)
    fields = json.loads(text)
    channels = fields["model"]["channels"]
    path.write_text(json.dumps(fields | {"model": fields["model"] | {"channels": channels[::-1]}}))
    with pytest.raises(EvidenceError, match="its ranker is of other channels than it names"):
        EvidenceModel.open(folder)
    del channels[0]["label"]
    path.write_text(json.dumps(fields))
    with pytest.raises(RunError, match="lacks 'channels"):
        EvidenceModel.open(folder)
