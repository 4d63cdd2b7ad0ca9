"""Bits that channels bring."""

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.datasets.prepared import Prepared
from mzseek.decision import fit_temperature, posterior
from mzseek.evaluation.information_gain import contributions_of
from mzseek.evaluation.scored import Scoring
from mzseek.evidence.fitting import fit
from mzseek.evidence.registry import channels_from
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run

HOW = Scoring("test", "mass")


@pytest.fixture(scope="module")
def run(small_set, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("fitted") / "run"
    prepared = Prepared.open(small_set.folder)
    return fit(prepared, channels_from("fragments,analogs"), out, jobs=1)


def test_bits_of_all_channels_are_those_of_the_score(run: Run) -> None:
    found = contributions_of(run, HOW)
    val, lists = (Predictions.open(run.predictions(0, f)).lists["mass"] for f in ("val", "test"))
    temperature = fit_temperature(val.scores, val.counts, val.identity & 1 > 0, val.molecule)
    bits, start = [], 0
    for count in lists.counts:
        here = slice(start, start + count)
        truth = lists.identity[here] & 1 > 0
        if truth.any():
            p = posterior(lists.scores[here], [count], temperature)
            bits.append(np.log2(p[truth].sum()) - np.log2(truth.mean()))
        start += count
    assert np.allclose(found.all_of_it, bits, atol=1e-4)


def test_two_channels_share_what_they_tell(run: Run) -> None:
    found = contributions_of(run, HOW)
    first, second = found.alone
    assert np.allclose(found.added[first], found.all_of_it - found.alone[second])
    assert np.allclose(found.added[second], found.all_of_it - found.alone[first])
    table = found.to_table()
    assert table.columns["channel"] == ["fragments", "analogs", "all"]
    facts = found.to_dict()
    assert facts["all"][0] == pytest.approx(found.all_of_it.mean())
    assert set(facts["alone"]) == set(facts["added"]) == {"fragments", "analogs"}


def test_a_trained_run_has_none(trained) -> None:
    with pytest.raises(RunError, match=r"was trained \(bce\), and has no channels"):
        contributions_of(trained("bce"), HOW)
