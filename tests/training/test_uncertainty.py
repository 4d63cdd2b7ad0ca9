from dataclasses import replace

import numpy as np
import pytest

from mzseek.decision import Calibration
from mzseek.metrics import bootstrap
from mzseek.training.posteriors import Calibrated, Posterior
from mzseek.training.scored import How
from mzseek.training.uncertainty import (
    Abstention,
    abstentions,
    by_molecule,
    calibration_errors,
    risk_area,
    set_results,
)


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
        how=How(),
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


def test_plain_data_of_sets() -> None:
    [found] = set_results(calibrated(lists([SURE] * 9, [0] * 9), lists([SURE], [0])), (0.8,))
    assert found.to_dict() == {
        "stated": 0.8, "covered": 1.0, "interval": [1.0, 1.0], "threshold": 1.4, "mean_size": 1.0,
        "median_size": 1.0, "mean_list": 4.0,
    }  # fmt: skip


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
    assert strict == Abstention(0.1, 0.9, 0.5, 0.5)
    assert loose == Abstention(0.6, 0.6, 0.75, pytest.approx(1 / 3))
    assert (never.threshold, never.answered) == (np.inf, 0)
    assert np.isnan(never.wrong)


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
