import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import abstention_threshold, risk_coverage

from ..conftest import unhurried

answers = st.lists(
    st.tuples(st.integers(0, 6).map(lambda n: n / 6), st.sampled_from([0, 0.5, 1])),
    min_size=1,
    max_size=20,
)


@unhurried
@given(answers)
def test_each_threshold_answers_what_is_as_sure(found) -> None:
    sure, right = map(np.array, zip(*found, strict=True))
    curve = risk_coverage(sure, right)
    assert curve.threshold.tolist() == sorted(set(sure), reverse=True)
    for threshold, coverage, risk in zip(curve.threshold, curve.coverage, curve.risk, strict=True):
        here = sure >= threshold
        assert coverage == pytest.approx(here.mean())
        assert risk == pytest.approx(1 - right[here].mean(), abs=1e-12)
    assert curve.coverage[-1] == pytest.approx(1)


@unhurried
@given(answers, st.integers(2, 4))
def test_repeated_questions_of_one_molecule_count_once(found, times: int) -> None:
    sure, right = map(np.array, zip(*found, strict=True))
    once = risk_coverage(sure, right)
    groups = np.repeat(np.arange(len(sure)), times)
    again = risk_coverage(np.repeat(sure, times), np.repeat(right, times), groups)
    assert again.coverage == pytest.approx(once.coverage)
    assert again.risk == pytest.approx(once.risk, abs=1e-12)


def test_the_curve_by_hand() -> None:
    curve = risk_coverage([0.5, 0.9, 0.8, 0.5], [1, 1, 0, 0])
    assert curve.threshold.tolist() == [0.9, 0.8, 0.5]
    assert curve.area == pytest.approx(0.25 * 0 + 0.25 * 0.5 + 0.5 * 0.5)
    assert [curve.at(share) for share in (0, 0.25, 0.26, 0.5, 0.6, 1, 2)] == [
        0, 0, 0.5, 0.5, 0.5, 0.5, 0.5,
    ]  # fmt: skip
    weighted = risk_coverage([0.9, 0.9, 0.5], [1, 0, 0], groups=["a", "a", "b"])
    assert weighted.coverage.tolist() == [0.5, 1]
    assert weighted.risk.tolist() == [0.5, 0.75]


def test_a_good_order_has_less_area_than_a_bad_one() -> None:
    right = [1] * 5 + [0] * 5
    falling = np.linspace(1, 0, 10)
    good, bad = risk_coverage(falling, right).area, risk_coverage(falling[::-1], right).area
    assert good < 0.5 < bad


@unhurried
@given(answers, st.floats(0, 1))
def test_the_threshold_is_the_lowest_that_is_careful_enough(found, error_rate: float) -> None:
    sure, right = map(np.array, zip(*found, strict=True))
    careful = {
        each: ((1 - right[sure >= each]).sum() + 1) / ((sure >= each).sum() + 1)
        for each in set(sure)
    }
    assume(all(abs(risk - error_rate) > 1e-9 for risk in careful.values()))
    got = abstention_threshold(sure, right, error_rate)
    fine = [each for each, risk in careful.items() if risk <= error_rate]
    assert got == min(fine, default=np.inf)
    answered = sure >= got
    assert not answered.any() or 1 - right[answered].mean() <= error_rate + 1e-12


def test_a_few_lucky_answers_promise_nothing() -> None:
    assert abstention_threshold([0.9] * 8, [1] * 8, 0.1) == np.inf
    assert abstention_threshold([0.9] * 9, [1] * 9, 0.1) == 0.9
    assert abstention_threshold([0.9] * 9, [1] * 9, 0.1, groups=["a"] * 9) == np.inf
    assert abstention_threshold([0.9, 0.1], [0, 0], 1.0) == 0.1


def test_new_answers_are_wrong_no_more_often_than_wanted() -> None:
    rng = np.random.default_rng(0)
    wrong = []
    for _ in range(200):
        sure = rng.random(400)
        threshold = abstention_threshold(sure, rng.random(400) < sure, 0.2)
        new = rng.random(400)
        answered = new >= threshold
        wrong.append(1 - (rng.random(400) < new)[answered].mean())
    assert np.mean(wrong) < 0.21


@pytest.mark.parametrize(
    ("confidence", "correct", "reason"),
    [
        ([], [], "not empty"),
        ([0.5, 0.5], [1], r"confidence has shape \(2,\) and correct \(1,\)"),
        ([[0.5]], [[1]], "one-dimensional"),
        ([np.nan, 0.5], [1, 0], "confidence must be finite"),
        ([0.5, 0.5], [1, 2], "correct from 0 to 1"),
        ([0.5, 0.5], [1, np.nan], "correct from 0 to 1"),
        (["a", "b"], [1, 0], "no numbers"),
    ],
)
def test_what_has_no_curve_is_refused(confidence, correct, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        risk_coverage(confidence, correct)
    with pytest.raises(DecisionError, match=reason):
        abstention_threshold(confidence, correct, 0.1)


@pytest.mark.parametrize("error_rate", [-0.1, 1.1, np.nan])
def test_what_is_no_rate_is_refused(error_rate: float) -> None:
    with pytest.raises(DecisionError, match=r"error_rate is .*, expected 0 to 1"):
        abstention_threshold([0.5], [1], error_rate)
