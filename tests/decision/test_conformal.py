import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import (
    abstention_threshold,
    coverage_range,
    fit_calibration,
    fit_set_threshold,
    molecules_needed,
    posterior,
    prediction_sets,
    risk_coverage,
)
from mzseek.decision.conformal import strength

weights = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)
lists = st.lists(weights, min_size=1, max_size=5)
thresholds = st.floats(-0.1, 2.5)


def flat(found) -> tuple[np.ndarray, np.ndarray]:
    p = np.concatenate([np.array(each) / sum(each) for each in found])
    return p, np.array([len(each) for each in found])


@given(lists, thresholds, thresholds)
def test_a_higher_threshold_takes_nothing_in(found, one: float, other: float) -> None:
    larger, smaller = (prediction_sets(*flat(found), each) for each in sorted((one, other)))
    assert (smaller <= larger).all()


@given(lists, thresholds)
def test_the_first_is_in_and_equal_ones_are_in_together(found, threshold: float) -> None:
    p, counts = flat(found)
    inside, start = prediction_sets(p, counts, threshold), 0
    for count in counts:
        here, chosen = p[start : start + count], inside[start : start + count]
        assert chosen[here == here.max()].all()
        for value in np.unique(here):
            assert len(set(chosen[here == value])) == 1
        assert chosen[here >= here[chosen].min()].all(), "whoever is more probable is in, too"
        start += count


@given(lists)
def test_the_ends_of_the_threshold(found) -> None:
    p, counts = flat(found)
    assert prediction_sets(p, counts, 0.0).all()
    firsts = prediction_sets(p, counts, np.inf)
    highest = np.maximum.reduceat(p, np.cumsum(counts) - counts)
    assert firsts.tolist() == (p == np.repeat(highest, counts)).tolist()


def test_rounding_does_not_keep_a_candidate_out() -> None:
    p = np.array([0.1 + 0.2, 0.3, 0.4])  # 0.1 + 0.2 is more than 0.3
    threshold = float(strength(p, np.array([3]))[0])
    assert prediction_sets(p, [3], threshold).all()


def test_long_and_short_lists_are_treated_alike() -> None:
    """A candidate four times as probable as chance is in, in a list of 4 as in one of 64."""
    short, long = [0.7, 0.1, 0.1, 0.1], [4 / 64, *[(60 / 64) / 63] * 63]
    inside = prediction_sets(short + long, [4, 64], 0.4)
    assert inside.tolist() == [True, *[False] * 3, True, *[False] * 63]


def simulated(rng, molecules: int, spectra: int, better: float = 1.5, noise: float = 1.0):
    """Scores that are better for some molecules than for others, and their truths."""
    queries = molecules * spectra
    counts = rng.integers(1, 15, size=queries)
    scores = noise * rng.normal(size=counts.sum())
    starts = np.cumsum(counts) - counts
    labels = np.zeros(len(scores), bool)
    labels[starts + rng.integers(counts)] = True
    scores[labels] += np.repeat(rng.normal(better, 1, molecules), spectra)
    return posterior(scores, counts, 0.3), counts, labels, np.repeat(np.arange(molecules), spectra)


def covered(p, counts, labels, threshold: float) -> np.ndarray:
    return np.add.reduceat(prediction_sets(p, counts, threshold) & labels,
                           np.cumsum(counts) - counts)  # fmt: skip


COVERAGES = np.array([0.5, 0.8, 0.9, 0.95])


def mean_coverage(molecules: int, spectra: int, **shift: float) -> np.ndarray:
    """Coverage of new molecules for each of `COVERAGES`, averaged over 300 draws fitted on."""
    rng = np.random.default_rng(molecules)
    shares = []
    for _ in range(300):
        p, counts, labels, groups = simulated(rng, molecules, spectra)
        new = simulated(rng, 100, 1, **shift)[:3]
        fits = [fit_set_threshold(p, counts, labels, each, groups) for each in COVERAGES]
        shares.append([covered(*new, threshold).mean() for threshold in fits])
    return np.mean(shares, axis=0)


# Averages over 300 draws scatter by 0.002 (many molecules) to 0.006 (few).
@pytest.mark.parametrize("molecules", [15, 30, 60])
@pytest.mark.parametrize("spectra", [1, 4])
def test_sets_of_few_exchangeable_molecules_contain_the_truth_as_often_as_they_say(
    molecules: int, spectra: int
) -> None:
    assert (mean_coverage(molecules, spectra) > COVERAGES - 0.01).all()


def test_sets_of_many_molecules_contain_it_hardly_more_often() -> None:
    coverage = mean_coverage(400, 1)
    assert (coverage > COVERAGES - 0.01).all()
    assert (coverage < COVERAGES + 0.025)[1:].all()


def test_molecules_that_are_not_exchangeable_are_covered_less_than_stated() -> None:
    """What the promise rests on: with harder molecules than those fitted on, it is broken."""
    assert (mean_coverage(60, 1, better=0.0) < COVERAGES - 0.1)[1:3].all()


def test_clusters_split_apart_break_the_promise_for_molecules_and_keep_it_for_clusters() -> None:
    """Molecules of one cluster are alike: eight of them support no more than one would."""
    for coverage in (0.8, 0.95):
        rng = np.random.default_rng(3)
        by_molecule, by_cluster = [], []
        for _ in range(300):
            # 24 molecules in three clusters, and new ones that are each of a cluster of its own.
            p, counts, labels, cluster = simulated(rng, 3, 8, better=0.3, noise=0.4)
            new = simulated(rng, 100, 1, better=0.3, noise=0.4)[:3]
            for shares, groups in ((by_molecule, None), (by_cluster, cluster)):
                threshold = fit_set_threshold(p, counts, labels, coverage, groups)
                shares.append(covered(*new, threshold).mean())
        assert np.mean(by_molecule) < coverage - 0.02
        assert np.mean(by_cluster) >= coverage


@pytest.mark.parametrize("molecules", [15, 30, 60])
def test_a_calibration_fitted_on_the_same_molecules_costs_next_to_nothing(molecules: int) -> None:
    """Calibration and threshold are both fitted on validation, which the theorem does not allow."""
    rng = np.random.default_rng(molecules)
    shares = []
    for _ in range(120):
        p, counts, labels, groups = simulated(rng, molecules, 2)
        fitted = fit_calibration(np.log(p), counts, labels, groups)
        own = fitted.posterior(np.log(p), counts)
        threshold = fit_set_threshold(own, counts, labels, 0.8, groups)
        p, counts, labels, _ = simulated(rng, 100, 1)
        shares.append(
            covered(fitted.posterior(np.log(p), counts), counts, labels, threshold).mean()
        )
    assert np.mean(shares) > 0.8 - 0.015


@pytest.mark.parametrize("molecules", [24, 100])
def test_one_fit_covers_within_the_range_that_is_told(molecules: int) -> None:
    rng = np.random.default_rng(7)
    low, high = coverage_range(molecules, 0.8)
    shares = []
    for _ in range(200):
        p, counts, labels, _ = simulated(rng, molecules, 1)
        threshold = fit_set_threshold(p, counts, labels, 0.8)
        shares.append(covered(*simulated(rng, 1000, 1)[:3], threshold).mean())
    inside = np.mean([low <= share <= high for share in shares])
    assert inside > 0.9, "19 of 20, but for the scatter of what it is measured on"
    assert np.ptp(shares) > 0.6 * (high - low), "and the range is not too wide"


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_fewer_molecules_than_needed_put_everything_in(coverage: float) -> None:
    enough = molecules_needed(coverage)
    for molecules, promised in ((enough - 1, False), (enough, True)):
        if not molecules:
            continue
        p, labels = [0.7, 0.3] * molecules * 2, [1, 0] * molecules * 2
        groups = np.repeat(np.arange(molecules), 2)  # two spectra each count as one
        threshold = fit_set_threshold(p, [2] * molecules * 2, labels, coverage, groups)
        assert (threshold > 0) == promised
        assert (coverage_range(molecules, coverage) != (1, 1)) == promised


def test_a_molecule_with_many_spectra_does_not_outvote_others() -> None:
    p = np.tile([0.6, 0.3, 0.1], 29)
    easy, hard = [1, 0, 0], [0, 0, 1]
    labels = easy * 20 + hard * 9
    groups = ["a"] * 20 + list("bcdefghij")
    root = np.sqrt(3)
    assert fit_set_threshold(p, [3] * 29, labels, 0.6) == pytest.approx(0.6 * root)
    assert fit_set_threshold(p, [3] * 29, labels, 0.6, groups) == pytest.approx(0.1 * root)
    several = fit_set_threshold([0.6, 0.3, 0.1] * 3, [3] * 3, [1, 0, 1] * 3, 0.7)
    assert several == pytest.approx(0.6 * root), "the best of several truths is enough"


@given(lists, st.floats(0.01, 0.99), st.data())
def test_enough_of_the_lists_fitted_on_are_covered(found, coverage: float, data) -> None:
    p, counts = flat(found)
    starts = np.cumsum(counts) - counts
    labels = np.zeros(len(p), bool)
    for start, count in zip(starts, counts, strict=True):
        labels[start + data.draw(st.integers(0, count - 1))] = True
    threshold = fit_set_threshold(p, counts, labels, coverage)
    lists = len(counts)
    needed = np.ceil(coverage * (lists + 1) - 1e-9)
    if needed > lists:
        assert threshold == 0, "too few lists to promise so much"
    else:
        assert covered(p, counts, labels, threshold).sum() >= needed
        # And no higher threshold that any list needs would do.
        assert (strength(p, counts)[labels] > threshold).sum() < needed


answers = st.lists(
    st.tuples(st.integers(0, 6).map(lambda n: n / 6), st.sampled_from([0, 0.5, 1])),
    min_size=1,
    max_size=20,
)


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
    weighted = risk_coverage([0.9, 0.9, 0.5], [1, 0, 0], groups=["a", "a", "b"])
    assert weighted.coverage.tolist() == [0.5, 1]
    assert weighted.risk.tolist() == [0.5, 0.75]


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


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            lambda: fit_set_threshold([0.5, 0.5], [2], [1, 0], 0.0),
            "coverage is 0, expected above 0",
        ),
        (
            lambda: fit_set_threshold([0.5, 0.5], [2], [1, 0], 1.0),
            "coverage is 1, expected above 0",
        ),
        (lambda: fit_set_threshold([0.5, 0.5], [2], [1, 0], np.nan), "coverage is nan, expected"),
        (lambda: fit_set_threshold([0.5, 0.5], [2], [0, 0], 0.5), "list 0 has no labelled cand"),
        (lambda: fit_set_threshold([0.5, 0.5], [2], [0, 1], 0.5, ["a", "b"]), "groups have shape"),
        (lambda: prediction_sets([1.0], [1], np.nan), "threshold is not a number"),
        (lambda: prediction_sets([np.nan], [1], 0.5), "probabilities hold a value that is not fin"),
        (
            lambda: prediction_sets([1.0], [3], 0.5),
            "counts sum to 3, but there are 1 probabilities",
        ),
        (lambda: abstention_threshold([0.5], [1], -0.1), "error_rate is -0.1, expected 0 to 1"),
        (lambda: abstention_threshold([0.5], [1], 1.1), "error_rate is 1.1, expected 0 to 1"),
        (lambda: abstention_threshold([0.5], [1], np.nan), "error_rate is nan, expected 0 to 1"),
    ],
    ids=range(11),
)
def test_what_is_refused(call, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        call()
