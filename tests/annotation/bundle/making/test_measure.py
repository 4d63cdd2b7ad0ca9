"""Numbers for the card."""

import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.refit import measured
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.runs.run import Run


def test_hit_rates_are_those_of_evaluate(bundle: Bundle, fitted_run: Run, small: Prepared) -> None:
    found = measured(fitted_run, small, bundle.confidence, "mass")
    assert list(found) == ["positive"]
    own = found["positive"]
    how = Scoring(fold="test", candidates="mass", identity="inchikey")
    expected = evaluate(fitted_run, how)
    for k in (1, 5, 20):
        mean, low, high = own["hit_rates"][str(k)]
        assert mean == pytest.approx(expected.intervals()[f"hit_rate@{k}"].mean, abs=1e-6)
        assert low <= mean <= high
    assert own["hit_rates_together"]["1"][0] >= 0
    assert 0 <= own["calibration_error"] <= 1
    assert 0 <= own["sets"]["covered"][0] <= 1
    assert bundle.card["measured"] == found
