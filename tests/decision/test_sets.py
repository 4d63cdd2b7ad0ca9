import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.decision import fit_set_threshold, posterior, prediction_sets
from mzseek.decision.sets import strength
from mzseek.errors import DecisionError

from .conftest import unhurried

weights = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)
lists = st.lists(weights, min_size=1, max_size=5)
thresholds = st.floats(-0.1, 2.5)


def flat(found) -> tuple[np.ndarray, np.ndarray]:
    p = np.concatenate([np.array(each) / sum(each) for each in found])
    return p, np.array([len(each) for each in found])


def test_strength_is_between_a_probability_and_how_far_it_is_above_chance() -> None:
    p, counts = flat([[1, 3], [1, 1, 1, 1]])
    assert strength(p, counts) == pytest.approx([*np.sqrt(2) * np.array([0.25, 0.75]), *[0.5] * 4])


@unhurried
@given(lists, thresholds, thresholds)
def test_a_higher_threshold_takes_nothing_in(found, one: float, other: float) -> None:
    larger, smaller = (prediction_sets(*flat(found), each) for each in sorted((one, other)))
    assert (smaller <= larger).all()


@unhurried
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


@unhurried
@given(lists)
def test_the_ends_of_the_threshold(found) -> None:
    p, counts = flat(found)
    assert prediction_sets(p, counts, 0.0).all()
    firsts = prediction_sets(p, counts, np.inf)
    highest = np.maximum.reduceat(p, np.cumsum(counts) - counts)
    assert firsts.tolist() == (p == np.repeat(highest, counts)).tolist()


def test_sets_are_small_where_the_posterior_is_sure() -> None:
    p = [0.97, 0.01, 0.01, 0.01, 0.25, 0.25, 0.25, 0.25]
    assert prediction_sets(p, [4, 4], 0.5).tolist() == [True] + [False] * 3 + [True] * 4


def test_rounding_does_not_keep_a_candidate_out() -> None:
    p = np.array([0.1 + 0.2, 0.3, 0.4])  # 0.1 + 0.2 is more than 0.3
    threshold = float(strength(p, np.array([3]))[0])
    assert prediction_sets(p, [3], threshold).all()


def test_long_and_short_lists_are_treated_alike() -> None:
    """A candidate four times as probable as chance is in, in a list of 4 as in one of 64."""
    short, long = [0.7, 0.1, 0.1, 0.1], [4 / 64, *[(60 / 64) / 63] * 63]
    inside = prediction_sets(short + long, [4, 64], 0.4)
    assert inside.tolist() == [True, *[False] * 3, True, *[False] * 63]


def simulated(rng, molecules: int, spectra: int):
    """Scores that are better for some molecules than for others, and their truths."""
    queries = molecules * spectra
    counts = rng.integers(1, 15, size=queries)
    scores = rng.normal(size=counts.sum())
    starts = np.cumsum(counts) - counts
    labels = np.zeros(len(scores), bool)
    labels[starts + rng.integers(counts)] = True
    scores[labels] += np.repeat(rng.normal(1.5, 1, molecules), spectra)
    return posterior(scores, counts, 0.3), counts, labels, np.repeat(np.arange(molecules), spectra)


def covered(p, counts, labels, threshold: float) -> np.ndarray:
    return np.add.reduceat(prediction_sets(p, counts, threshold) & labels,
                           np.cumsum(counts) - counts)  # fmt: skip


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_sets_contain_the_truth_as_often_as_they_say(coverage: float) -> None:
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        p, counts, labels, _ = simulated(rng, 40, 1)
        threshold = fit_set_threshold(p, counts, labels, coverage)
        shares.append(covered(*simulated(rng, 100, 1)[:3], threshold).mean())
    # 300 folds of 40 lists: the mean scatters by some 0.005.
    assert np.mean(shares) > coverage - 0.015


def test_spectra_of_one_molecule_count_as_one() -> None:
    rng = np.random.default_rng(1)
    grouped = []
    for _ in range(300):
        p, counts, labels, groups = simulated(rng, 25, 6)
        threshold = fit_set_threshold(p, counts, labels, 0.8, groups)
        grouped.append(covered(*simulated(rng, 60, 1)[:3], threshold).mean())
    assert np.mean(grouped) > 0.8 - 0.015
    assert np.mean(grouped) < 0.9, "and not by taking in everything"


def test_a_molecule_with_many_spectra_does_not_outvote_others() -> None:
    p = np.tile([0.6, 0.3, 0.1], 29)
    easy, hard = [1, 0, 0], [0, 0, 1]
    labels = easy * 20 + hard * 9
    groups = ["a"] * 20 + list("bcdefghij")
    root = np.sqrt(3)
    assert fit_set_threshold(p, [3] * 29, labels, 0.6) == pytest.approx(0.6 * root)
    assert fit_set_threshold(p, [3] * 29, labels, 0.6, groups) == pytest.approx(0.1 * root)


@unhurried
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


def test_the_best_of_several_truths_is_enough() -> None:
    p, labels = [0.6, 0.3, 0.1] * 3, [1, 0, 1] * 3
    assert fit_set_threshold(p, [3] * 3, labels, 0.7) == pytest.approx(0.6 * np.sqrt(3))


def test_nine_lists_are_enough_for_nine_in_ten() -> None:
    for lists, wanted in ((8, 0.0), (9, 0.3 * np.sqrt(2))):
        p, labels = [0.7, 0.3] * lists, [0, 1] * lists
        assert fit_set_threshold(p, [2] * lists, labels, 0.9) == pytest.approx(wanted)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 95, np.nan])
def test_what_is_no_share_is_refused(coverage: float) -> None:
    with pytest.raises(DecisionError, match=r"coverage is .*, expected above 0 and below 1"):
        fit_set_threshold([0.5, 0.5], [2], [1, 0], coverage)


def test_what_has_no_sets_is_refused() -> None:
    with pytest.raises(DecisionError, match="threshold is not a number"):
        prediction_sets([1.0], [1], np.nan)
    with pytest.raises(DecisionError, match="probabilities hold a value that is not finite"):
        prediction_sets([np.nan], [1], 0.5)
    with pytest.raises(DecisionError, match="counts sum to 3, but there are 1 probabilities"):
        prediction_sets([1.0], [3], 0.5)
    with pytest.raises(DecisionError, match="list 0 has no labelled candidate"):
        fit_set_threshold([0.5, 0.5], [2], [0, 0], 0.5)
    with pytest.raises(DecisionError, match="groups have shape"):
        fit_set_threshold([0.5, 0.5], [2], [0, 1], 0.5, groups=["a", "b"])
