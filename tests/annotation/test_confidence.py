"""Confidence as plain data."""

import json
from typing import Any

import numpy as np
import pytest

from mzseek.annotation.confidence import Confidence, MatchOdds, PolarityCalibration
from mzseek.core.errors import BundleError
from mzseek.decision import Calibration, Pooling


def of_mode(**changes: Any) -> PolarityCalibration:
    facts: dict[str, Any] = {
        "calibration": Calibration(0.8, 0.1, 0.02),
        "pooling": Pooling(0.6),
        "thresholds": {0.5: 2.0, 0.9: 0.3, 0.95: 0.1},
        "together": {0.9: 0.5},
        "ions": {"[M+H]+": 0.8, "[M+Na]+": 0.2},
        "floor": 0.01,
        "nearest": {0.05: 0.2, 0.5: 0.6},
        "in_database": None,
        "molecules": 120,
        "own": True,
        "match": MatchOdds(np.array([-1.0, 2.0]), 60, 70),
    }
    return PolarityCalibration(**{**facts, **changes})


def test_a_coverage_between_is_taken_from_the_next_higher_one() -> None:
    own = of_mode()
    assert own.threshold(0.9) == (0.9, 0.3)
    assert own.threshold(0.91) == (0.95, 0.1)
    assert own.threshold(0.9, spectra=3) == (0.9, 0.5)
    assert of_mode(together={}).threshold(0.9, spectra=3) == (0.9, 0.3)


@pytest.mark.parametrize(
    ("coverage", "message"),
    [(0.99, "this model promises 0.95 at most"), (1.0, "expected above 0 and below 1")],
)
def test_more_than_was_fitted_is_refused(coverage: float, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        of_mode().threshold(coverage)


def test_an_ion_that_was_never_seen_has_the_floor() -> None:
    assert of_mode().ion_prior("[M+H]+") == 0.8
    assert of_mode().ion_prior("[M+K]+") == 0.01


def test_unlike_is_below_the_lowest_twentieth() -> None:
    assert of_mode().unlike(0.1)
    assert not of_mode().unlike(0.2)
    assert not of_mode(nearest={}).unlike(0.0)


def test_it_comes_back_from_plain_data() -> None:
    whole = Confidence({"positive": of_mode(), "negative": of_mode(own=False)})
    facts = json.loads(json.dumps(whole.to_dict()))
    again = Confidence.from_dict(facts)
    assert again.to_dict() == whole.to_dict()
    assert again.of(-1).own is False
    assert again.of(0).own is again.of(1).own is True
    assert again.of(1).calibration == of_mode().calibration


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dependence": 2.0}, "positive mode: dependence is 2, expected 0 to 1"),
        ({"floor": 0.0}, "floor is 0.0, expected above 0"),
        ({"calibration": {"temperature": 0.0, "power": 0.0, "floor": 0.0}}, "which is none"),
        ({"thresholds": {"x": 1.0}}, "a key that is no number"),
        ({"molecules": -1}, "molecules is -1, expected a whole number"),
        ({"in_database": {}}, "positive mode, in_database: lacks 'names'"),
    ],
)
def test_damaged_data_are_refused(change: dict[str, Any], message: str) -> None:
    facts = Confidence({"positive": of_mode(), "negative": of_mode()}).to_dict()
    facts["positive"] |= change
    with pytest.raises(BundleError, match=message):
        Confidence.from_dict(facts)


def test_an_ion_mode_that_is_missing_is_named() -> None:
    with pytest.raises(BundleError, match="lacks 'negative'"):
        Confidence.from_dict({"positive": of_mode().to_dict()})
