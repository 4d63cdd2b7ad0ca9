"""Confidence as plain data."""

import json
from typing import Any

import numpy as np
import pytest

from mzseek.annotation.confidence import (
    LISTED,
    LONGEST,
    NAMES,
    Confidence,
    InDatabase,
    ListEvidence,
    MatchOdds,
    PolarityCalibration,
    expected_share,
)
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
        "match": MatchOdds(np.array([-1.0, 2.0]), 60, 70, 0.5),
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


PLAIN = Calibration(1.0)


def evidence(scores, background=(), **changes) -> ListEvidence:
    number = len(scores)
    facts = {
        "scores": np.array(scores, float),
        "explained": np.linspace(0.9, 0.1, number),
        "channels": np.zeros((number, 2)),
        "background": np.array(background, float),
        "background_explained": np.full(len(background), 0.2),
        "nearest": 0.4,
        "peaks": 12.0,
        "same_mass": 0,
    }
    return ListEvidence(**(facts | changes))


def a_model(**changes) -> InDatabase:
    facts = {
        "mean": np.zeros(len(NAMES)),
        "spread": np.ones(len(NAMES)),
        "weights": np.zeros(len(NAMES)),
        "intercept": 0.0,
        "least_explained": 0.1,
        "least_margin": 1.0,
        "auc": {"whole lists": 0.6},
        "error": 0.02,
        "molecules": 10,
    }
    return InDatabase(**(facts | changes))


def value(features, name: str) -> float:
    return float(features[NAMES.index(name)])


def test_a_lone_candidate_is_compared_with_the_background() -> None:
    far = evidence([5.0], [0.0] * 31)
    assert far.margin(PLAIN) == pytest.approx(5.0)
    assert evidence([0.0], [0.0] * 31).margin(PLAIN) == pytest.approx(0.0)
    assert evidence([5.0]).margin(PLAIN) == 0.0  # nothing to compare with
    odds = value(far.features(PLAIN), "log-odds")
    assert odds == pytest.approx(5.0 - np.log(31))
    assert value(far.features(PLAIN), "explained ahead") == pytest.approx(0.7)


def test_the_margin_is_over_the_average_other_molecule_and_shifts_change_nothing() -> None:
    scores, background = [3.0, 1.0, 0.0], [0.5, 2.0]
    expected = 3.0 - np.log(np.mean(np.exp([1.0, 0.0, 0.5, 2.0])))
    assert evidence(scores, background).margin(PLAIN) == pytest.approx(expected)
    moved = evidence(np.array(scores) + 7, np.array(background) + 7)
    assert moved.features(PLAIN) == pytest.approx(evidence(scores, background).features(PLAIN))


def test_a_background_molecule_that_fits_better_lowers_log_odds_and_margin() -> None:
    plain = evidence([3.0, 1.0], [0.0] * 30)
    beaten = evidence([3.0, 1.0], [6.0] + [0.0] * 29)
    for name in ("log-odds", "margin"):
        assert value(beaten.features(PLAIN), name) < value(plain.features(PLAIN), name) - 2


def test_lists_longer_than_those_fitted_on_count_as_the_longest() -> None:
    long = evidence(np.zeros(5 * LONGEST))
    assert value(long.features(PLAIN), "log candidates") == pytest.approx(np.log(LONGEST))


def test_the_share_moves_the_odds() -> None:
    model, features = a_model(intercept=np.log(3.0)), np.zeros((1, len(NAMES)))
    assert model.probability(features, 0.5).tolist() == pytest.approx([0.75])
    assert model.probability(features, 0.9).tolist() == pytest.approx([27 / 28])
    for share in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(BundleError, match="above 0 and below 1"):
            model.probability(features, share)


def test_larger_databases_are_expected_to_hold_more() -> None:
    shares = [expected_share(size) for size in (1, 46_000, 220_000, 2_000_000, 120_000_000)]
    assert shares == sorted(shares)
    assert all(0 < share < 0.5 for share in shares)
    assert expected_share(2_000_000, listed=True) == LISTED


def test_it_comes_back_from_json() -> None:
    model = a_model(weights=np.linspace(-1, 1, len(NAMES)), intercept=0.25)
    again = InDatabase.from_dict(json.loads(json.dumps(model.to_dict())))
    features = np.random.default_rng(0).normal(size=(5, len(NAMES)))
    assert again.probability(features, 0.3).tolist() == model.probability(features, 0.3).tolist()
    assert again.auc == model.auc


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"names": ["a"]}, "other features"),
        ({"mean": [0.0]}, "other features"),
        ({"spread": [0.0] * len(NAMES)}, "spread of 0"),
        ({"intercept": "x"}, "intercept"),
    ],
)
def test_what_does_not_fit_is_refused(change, says) -> None:
    with pytest.raises(BundleError, match=says):
        InDatabase.from_dict({**a_model().to_dict(), **change})


def test_plain_data_and_back():
    odds = MatchOdds(np.array([-1.0, 0.5, 3.0]), 70, 80, 0.4)
    again = MatchOdds.from_dict(odds.to_dict())
    assert again.of([0.1, 0.5, 0.99]).tolist() == [-1.0, 0.5, 3.0]
    assert again.of([0.6])[0] > 0.5
    assert (again.same, again.other, again.overlap) == (70, 80, 0.4)
    with pytest.raises(BundleError, match="has no nats"):
        MatchOdds.from_dict({"nats": [], "same": 0, "other": 0, "overlap": 0.0})
    with pytest.raises(BundleError):
        MatchOdds.from_dict({"nats": [1.0]})


@pytest.mark.parametrize(
    ("share", "ratios"),
    [
        (0.1, [4.0, 2 / 3]),
        (0.4, [1.0, 1.0]),  # no more frequent among what is measured than in the database
        (1.0, [1.0, 1.0]),
        (0.0, [1.0, 1.0]),
        (0.01, [6.0, 0.94 / 0.99]),  # bounded
    ],
)
def test_molecules_with_reference_spectra_are_more_probable(share, ratios) -> None:
    odds = MatchOdds(np.zeros(2), 70, 80, 0.4)
    assert odds.prior_ratios(np.array([True, False]), share) == pytest.approx(ratios)
    of_database = odds.prior_ratios(np.array([True, False]), share) @ [share, 1 - share]
    assert of_database == pytest.approx(1.0)
