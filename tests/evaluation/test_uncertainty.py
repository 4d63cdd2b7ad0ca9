from dataclasses import replace

import numpy as np
import pytest

from mzseek.decision import Calibration, coverage_range
from mzseek.evaluation.posteriors import (
    Calibrated,
    Posterior,
    abstentions,
    by_molecule,
    calibration_errors,
    risk_area,
    set_results,
)
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import bootstrap


def lists(p: list[list[float]], truth: list[int], molecule=None, answer=None) -> Posterior:
    """A posterior of lists, with the place of the truth in each."""
    counts = np.array([len(each) for each in p])
    labels = np.concatenate([np.arange(n) == t for n, t in zip(counts, truth, strict=True)])
    flat = np.concatenate([np.arange(n) for n in counts]) if answer is None else np.array(answer)
    return Posterior(
        queries=np.arange(len(p)),
        molecule=np.array(range(len(p)) if molecule is None else molecule, np.int32),
        counts=counts,
        candidates=np.arange(counts.sum(), dtype=np.int32),
        labels=labels,
        probabilities=np.concatenate(p),
        answer=flat,
        calibration=Calibration(1.0),
        step=1,
        how=Scoring(),
    )


def calibrated(val: Posterior, test: Posterior, uncalibrated: Posterior | None = None):
    return Calibrated(val, test, uncalibrated or test)


SURE, UNSURE = [0.7, 0.2, 0.06, 0.04], [0.4, 0.3, 0.2, 0.1]


def test_sets_are_fitted_on_validation_and_measured_on_the_other_fold() -> None:
    # With √4 = 2, the truth's strength is 1.4 six times and 0.4 three times.
    val = lists([SURE] * 9, [0] * 6 + [1] * 3)
    test = lists([UNSURE] * 4, [0, 1, 2, 3])
    low, high, all_of_it = set_results(calibrated(val, test), (0.6, 0.8, 0.99))
    assert (low.threshold, high.threshold, all_of_it.threshold) == (1.4, 0.4, 0)
    # At 1.4 the first is in alone; at 0.4 all of at least 0.2; at 0 all.
    assert [each.mean_size for each in (low, high, all_of_it)] == [1, 3, 4]
    assert [each.covered.mean for each in (low, high, all_of_it)] == [0.25, 0.75, 1]
    assert [each.stated for each in (low, high, all_of_it)] == [0.6, 0.8, 0.99]
    assert high.median_size == 3
    assert high.mean_list == 4
    assert high.covered == bootstrap([1.0, 1.0, 1.0, 0.0])


def test_plain_data_of_sets_say_what_they_were_fitted_on() -> None:
    [found] = set_results(calibrated(lists([SURE] * 9, [0] * 9), lists([SURE], [0])), (0.8,))
    facts = found.to_dict()
    low, high = facts.pop("interval")
    assert 0 < low < 0.05  # of one molecule
    assert high == 1
    assert facts == {
        "stated": 0.8, "covered": 1.0, "threshold": 1.4, "mean_size": 1.0, "median_size": 1.0,
        "mean_list": 4.0, "falls_short": False, "fitted_on_molecules": 9, "everything_in": False,
        "range_by_chance": list(coverage_range(9, 0.8)),
    }  # fmt: skip


def test_coverage_whose_interval_is_below_the_promise_falls_short() -> None:
    val = lists([SURE] * 20, [0] * 20)
    for right, short in ((36, False), (30, False), (20, True), (10, True)):
        test = lists([SURE] * 40, [0] * right + [1] * (40 - right))
        [found] = set_results(calibrated(val, test), (0.8,))
        assert found.covered.mean == right / 40
        assert found.falls_short == found.to_dict()["falls_short"] == short


def test_too_few_molecules_put_everything_in_and_say_so() -> None:
    few = lists([SURE] * 30, [0] * 30, molecule=[*range(15), *range(15)])
    low, high = set_results(calibrated(few, few), (0.8, 0.95))
    assert (low.fitted_on, low.everything, high.everything) == (15, False, True)
    assert (high.mean_size, high.covered.mean, high.by_chance) == (4, 1, (1, 1))
    assert high.to_dict()["everything_in"]


def test_molecules_count_once_in_coverage() -> None:
    val = lists([SURE] * 9, [0] * 9)
    test = lists([SURE] * 4, [0, 1, 1, 1], molecule=[5, 6, 6, 6])
    [found] = set_results(calibrated(val, test), (0.8,))
    assert found.covered.mean == 0.5
    # Nine spectra of one molecule promise no more than one would.
    [alike] = set_results(calibrated(replace(val, molecule=np.zeros(9, np.int32)), test), (0.8,))
    assert alike.threshold == 0


def test_twins_are_one_answer_in_sets_and_confidence() -> None:
    twins = lists([[0.3, 0.3, 0.4]] * 3, [0] * 3, answer=[7, 7, 8] * 3)
    twins = replace(twins, labels=np.array([True, True, False] * 3))
    found = calibrated(twins, twins)
    assert {each.mean_list for each in set_results(found)} == {2}
    assert calibration_errors(found)["after"] == pytest.approx(0.4)  # 0.6 sure, always right
    assert risk_area(found) == 0


def test_the_calibration_error_is_that_of_each_posterior() -> None:
    test = lists([[0.75, 0.25]] * 4, [0, 0, 0, 1])
    before = lists([[0.95, 0.05]] * 4, [0, 0, 0, 1])
    errors = calibration_errors(calibrated(test, test, before))
    assert errors == pytest.approx({"before": 0.2, "after": 0.0})


def test_abstention_is_chosen_on_validation_and_measured_on_the_other_fold() -> None:
    # Above 0.9: one in ten wrong by the careful count; all: ten of nineteen.
    val = lists([[0.9, 0.1]] * 9 + [[0.6, 0.4]] * 9, [0] * 9 + [1] * 9)
    test = lists([[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], [0, 1, 0, 0])
    strict, loose, never = abstentions(calibrated(val, test), (0.1, 0.6, 0.01))
    assert vars(strict) == pytest.approx(
        {"wanted": 0.1, "threshold": 0.9, "answered": 0.5, "wrong": 0.5}
        | dict(zip(("low", "high"), _ends([0.0, 1.0]), strict=True))
    )
    assert (loose.wanted, loose.threshold, loose.answered) == (0.6, 0.6, 0.75)
    assert loose.wrong == pytest.approx(1 / 3)
    assert (never.threshold, never.answered) == (np.inf, 0)
    assert np.isnan(never.wrong)
    assert never.to_dict() == {
        "wanted": 0.01, "threshold": None, "answered": 0.0, "wrong": None, "interval": None,
        "falls_short": False,
    }  # fmt: skip


def _ends(values: list[float]) -> tuple[float, float]:
    found = bootstrap(values)
    return found.low, found.high


def test_more_wrong_answers_than_wanted_are_told_where_the_interval_says_so() -> None:
    val = lists([[0.9, 0.1]] * 30, [0] * 30)
    good, bad = (lists([[0.9, 0.1]] * 30, [0] * n + [1] * (30 - n)) for n in (29, 10))
    for test, short in ((good, False), (bad, True)):
        [found] = abstentions(calibrated(val, test), (0.3,))
        assert found.falls_short == short == found.to_dict()["falls_short"]
        assert found.to_dict()["interval"] == [found.low, found.high]
        assert found.low <= found.wrong <= found.high


def test_nothing_may_be_answered_at_a_confidence_that_was_promised() -> None:
    val = lists([[0.9, 0.1]] * 9, [0] * 9)
    [found] = abstentions(calibrated(val, lists([[0.6, 0.4]], [0])), (0.1,))
    assert (found.threshold, found.answered) == (0.9, 0)
    assert np.isnan(found.wrong)


def test_the_risk_area_is_small_where_the_sure_are_right() -> None:
    good = lists([[0.9, 0.1], [0.6, 0.4]], [0, 1])
    bad = lists([[0.9, 0.1], [0.6, 0.4]], [1, 0])
    assert risk_area(calibrated(good, good)) < risk_area(calibrated(bad, bad))


def test_means_within_molecules() -> None:
    values, molecule = np.array([1.0, 0.0, 1.0, 0.5]), np.array([9, 3, 9, 3])
    assert by_molecule(values, molecule).tolist() == [0.25, 1.0]
    assert by_molecule(np.array([True, False]), np.array([1, 1])).tolist() == [0.5]
