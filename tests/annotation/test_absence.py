"""Whether the truth is among the candidates."""

import json

import numpy as np
import pytest

from mzseek.annotation.absence import (
    NAMES,
    RAW,
    Absence,
    absence_features,
    first_of,
    fit_logistic,
    raw_values,
)
from mzseek.errors import BundleError
from mzseek.evidence.registry import channels_from
from mzseek.ragged import Ragged


def an_absence(**changes: object) -> Absence:
    length = len(NAMES)
    facts = {
        "mean": np.zeros(length), "spread": np.ones(length), "weights": np.zeros(length),
        "intercept": 0.0, "auc": 0.7, "error": 0.02, "molecules": 5,
    }  # fmt: skip
    return Absence(**{**facts, **changes})


def test_signs_are_read_from_the_channels_by_name() -> None:
    channels = channels_from("analogs,fragments")
    features = [
        np.arange(2 * len(channel.feature_names), dtype=np.float32).reshape(2, -1)
        for channel in channels
    ]
    found = raw_values(channels, features)
    names = channels[1].feature_names
    assert (
        found[:, list(RAW).index("worth")].tolist() == features[1][:, names.index("worth")].tolist()
    )
    breaks = [names.index(f"{number}") for number in RAW["explained"][1]]
    assert np.allclose(found[:, 0], features[1][:, breaks].sum(1))
    place = channels[0].feature_names.index("morgan2, nearest")
    assert found[:, list(RAW).index("lent")].tolist() == features[0][:, place].tolist()


def test_a_channel_that_is_not_there_says_nothing() -> None:
    channels = channels_from("substructures")
    assert not raw_values(channels, [np.ones((3, 4), np.float32)]).any()


def test_features_are_of_the_first_candidate_of_each_list() -> None:
    raw = np.arange(20.0).reshape(5, 4)
    found = absence_features([0.2, 0.8, 0.5, 0.5, 0.0], [2, 3], raw, [0.1, 0.9], [1, 4])
    assert found[:, -4:].tolist() == [raw[1].tolist(), raw[2].tolist()]
    assert found[:, NAMES.index("nearest")].tolist() == [0.1, 0.9]
    assert found[:, 0].tolist() == pytest.approx(np.log([2, 3]).tolist())
    assert found[1, NAMES.index("log spectra")] == pytest.approx(np.log(4))
    assert found[1, NAMES.index("entropy")] == pytest.approx(np.log(2))


def test_certainty_is_bounded() -> None:
    found = absence_features([1.0], [1], np.zeros((1, 4)), [0.0], [1])
    assert np.isfinite(found).all()
    assert found[0, NAMES.index("log-odds")] == 8


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BundleError, match="2 candidates have 1 probabilities"):
        absence_features([1.0], [2], np.zeros((1, 4)), [0.0], [1])


def test_of_equal_values_the_first_leads() -> None:
    assert first_of(np.array([1.0, 1.0, 0.0, 2.0]), Ragged(np.array([2, 2]))).tolist() == [0, 3]


def test_the_prior_multiplies_the_odds() -> None:
    absence = an_absence(intercept=np.log(3.0))
    features = np.zeros((1, len(NAMES)))
    assert absence.present(features).tolist() == pytest.approx([0.75])
    assert absence.present(features, 0.9).tolist() == pytest.approx([27 / 28])
    with pytest.raises(
        BundleError,
        match="in the database is 1, expected above 0 and below 1",
    ):
        absence.present(features, 1.0)


def test_it_comes_back_from_plain_data() -> None:
    absence = an_absence(weights=np.linspace(-1, 1, len(NAMES)), intercept=0.25)
    again = Absence.from_dict(json.loads(json.dumps(absence.to_dict())))
    features = np.random.default_rng(0).normal(size=(4, len(NAMES)))
    assert again.present(features).tolist() == absence.present(features).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["x"] * len(NAMES)}, "reads other signs"),
        ({"spread": [0.0] * len(NAMES)}, "a spread of 0 or less"),
        ({"mean": [0.0]}, "reads other signs"),
        ({"auc": "high"}, "auc is 'high', expected a number"),
    ],
)
def test_damaged_data_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        Absence.from_dict({**an_absence().to_dict(), **change})


def test_a_regression_finds_the_odds_it_was_drawn_by() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20_000, 2))
    odds = 0.7 * values[:, 0] - 1.2 * values[:, 1] + 0.3
    labels = rng.random(len(odds)) < 1 / (1 + np.exp(-odds))
    weights, intercept = fit_logistic(values, labels, np.ones(len(odds)), l2=0)
    assert weights.tolist() == pytest.approx([0.7, -1.2], abs=0.06)
    assert intercept == pytest.approx(0.3, abs=0.06)
