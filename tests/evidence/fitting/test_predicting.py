"""Predictions of a fitted run."""

import numpy as np
import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.evidence import fitting as predicting
from mzseek.evidence.fitting import EvidenceModel, FitOptions, fit
from mzseek.evidence.queries import queries_from
from mzseek.evidence.registry import channels_from
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run


@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_the_test_fold_is_what_the_opened_run_says(
    fitted_run: Run, small: Prepared, setting: str
) -> None:
    said = Predictions.open(fitted_run.predictions(0, "test"))
    said.check_against(small, "test", fitted_run.folder)
    lists = said.lists[setting]
    whole, identity = queries_from(small, lists.queries, setting, jobs=1)
    assert np.array_equal(whole.counts, lists.counts)
    assert np.array_equal(identity, lists.identity)
    assert np.allclose(EvidenceModel.open(fitted_run).scores(whole), lists.scores, atol=1e-5)


def test_validation_is_said_by_rankers_that_have_not_seen_it(
    fitted_run: Run, small: Prepared
) -> None:
    lists = Predictions.open(fitted_run.predictions(0, "val")).lists["mass"]
    whole, _ = queries_from(small, lists.queries, "mass", jobs=1)
    assert not np.allclose(EvidenceModel.open(fitted_run).scores(whole), lists.scores, atol=1e-3)


def test_parts_of_the_work_are_the_whole(
    fitted_run: Run, small: Prepared, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicting, "_CANDIDATES", 10)
    again = fit(small, channels_from("fragments,analogs"), tmp_path / "run", FitOptions(), jobs=1)
    for fold in ("val", "test"):
        one, other = (
            Predictions.open(run.predictions(0, fold)).lists["formula"]
            for run in (fitted_run, again)
        )
        assert np.array_equal(one.queries, other.queries)
        assert np.allclose(one.scores, other.scores, atol=1e-6)
