import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import (
    Calibration,
    Combination,
    Pooling,
    first_places,
    fit_calibration,
    fit_combination,
    fit_pooling,
    pool_scores,
    posterior,
)

from .conftest import draw_truths

PLAIN = Calibration(1.0)


def features(rng, groups: int, most: int = 20, candidates: int = 8):
    """Scores of spectra, strung together, with counts and the group of each."""
    spectra = rng.integers(1, most + 1, size=groups)
    lengths = rng.integers(2, candidates + 1, size=groups)
    counts = np.repeat(lengths, spectra)
    return rng.normal(size=int(counts.sum())), counts, np.repeat(np.arange(groups), spectra)


def spread(labels, pooled, counts, groups) -> np.ndarray:
    """Labels of groups' candidates, given to each list of the group."""
    ends = np.cumsum(pooled.counts)
    return np.concatenate([labels[ends[g] - pooled.counts[g] : ends[g]] for g in groups])


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_sums_are_those_of_a_plain_loop(seed: int, dependence: float) -> None:
    scores, counts, groups = features(np.random.default_rng(seed), 6, most=4)
    found = pool_scores(scores, counts, groups, Pooling(dependence))
    lists = np.split(scores, np.cumsum(counts)[:-1])
    start = 0
    for g in range(6):
        members = [lists[i] for i in np.flatnonzero(groups == g)]
        assert found.spectra[g] == len(members)
        assert groups[found.first[g]] == g
        here = found.scores[start : start + found.counts[g]]
        assert here == pytest.approx(sum(members) / len(members) ** dependence, abs=1e-12)
        start += found.counts[g]
    assert start == len(found.scores)


@given(st.integers(0, 10_000))
def test_the_order_of_spectra_changes_not_a_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, counts, groups = features(rng, 5, most=9)
    order = rng.permutation(len(counts))
    lists = np.split(scores, np.cumsum(counts)[:-1])
    other = pool_scores(
        np.concatenate([lists[i] for i in order]), counts[order], groups[order], Pooling(0.7)
    )
    found = pool_scores(scores, counts, groups, Pooling(0.7))
    assert found.scores.tobytes() == other.scores.tobytes()
    assert found.counts.tolist() == other.counts.tolist()
    assert found.spectra.tolist() == other.spectra.tolist()
    assert groups[order][other.first].tolist() == groups[found.first].tolist()


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_one_spectrum_has_the_probabilities_that_it_has_alone(seed: int, dependence) -> None:
    scores, counts, groups = features(np.random.default_rng(seed), 7, most=1)
    found = pool_scores(scores, counts, groups, Pooling(dependence))
    calibration = Calibration(0.6, 0.2, 0.1)
    assert found.scores.tobytes() == scores.tobytes()
    together = calibration.posterior(found.scores, found.counts)
    assert together.tobytes() == calibration.posterior(scores, counts).tobytes()


@pytest.mark.parametrize("dependence", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_the_dependence_that_truths_were_drawn_with_is_found(dependence: float) -> None:
    rng = np.random.default_rng(0)
    scores, counts, groups = features(rng, 3000)
    pooled = pool_scores(scores, counts, groups, Pooling(dependence))
    labels = draw_truths(rng, posterior(pooled.scores, pooled.counts), pooled.counts)
    everywhere = spread(labels, pooled, counts, groups)
    found = fit_pooling(scores, counts, everywhere, groups, PLAIN)
    assert found.dependence == pytest.approx(dependence, abs=0.04)


def correlated(rng, groups: int, correlation: float, signal: float = 1.0):
    """Scores that are the truth's signal and noise, of which a share is common to all spectra."""
    spectra, m = rng.integers(1, 21, size=groups), 6
    scores, labels = [], []
    for n in spectra:
        truth = np.arange(m) == rng.integers(m)
        common = rng.normal(size=m) * np.sqrt(correlation)
        own = rng.normal(size=(n, m)) * np.sqrt(1 - correlation)
        scores.append((signal * truth + common + own).ravel())
        labels.append(np.tile(truth, n))
    counts = np.full(int(spectra.sum()), m)
    return (
        np.concatenate(scores), counts, np.concatenate(labels),
        np.repeat(np.arange(groups), spectra),
    )  # fmt: skip


def test_noise_in_common_makes_spectra_dependent_and_sums_calibrated() -> None:
    rng = np.random.default_rng(1)
    found = {}
    for correlation in (0.0, 0.2, 0.5, 1.0):
        scores, counts, labels, groups = correlated(rng, 1500, correlation)
        alone = fit_calibration(scores, counts, labels, groups)
        found[correlation] = fit_pooling(scores, counts, labels, groups, alone).dependence
        test, counts, labels, groups = correlated(rng, 1500, correlation)
        sums = pool_scores(test, counts, groups, Pooling(found[correlation]))
        p = alone.posterior(sums.scores, sums.counts)
        lists = np.split(labels, np.cumsum(counts)[:-1])
        sure, right = first_places(p, sums.counts, np.concatenate([lists[i] for i in sums.first]))
        assert abs(sure.mean() - right.mean()) < 0.03
    assert found[0.0] < 0.1
    assert found[1.0] > 0.95
    assert found[0.0] < found[0.2] < found[0.5] < found[1.0]


def test_each_group_counts_once() -> None:
    # Two spectra a group: right together in 3 of 4 groups, whose sum must be ln 3.
    scores, labels = [1.0, 0.0] * 8, [1, 0] * 6 + [0, 1] * 2
    found = fit_pooling(scores, [2] * 8, labels, list("aabbccdd"), PLAIN)
    assert 2 * 2**-found.dependence == pytest.approx(np.log(3), rel=1e-3)
    # One group of many spectra has no more say than one of two.
    scores = [1.0, 0.0] * 6 + [0.15, 0.0] * 9
    counts, labels = [2] * 15, [1, 0] * 6 + [0, 1] * 9
    again = fit_pooling(scores, counts, labels, list("aabbcc" + "d" * 9), PLAIN).dependence

    def likelihood(b: float) -> float:
        right = -3 * np.log1p(np.exp(-2 * 2**-b))
        return right - np.log1p(np.exp(1.35 * 9**-b))

    assert 0 < again < 1
    assert all(likelihood(b) <= likelihood(again) + 1e-9 for b in np.linspace(0, 1, 201))


def test_groups_of_one_spectrum_say_nothing_and_promise_nothing() -> None:
    assert fit_pooling([1.0, 0.0, 2.0], [2, 1], [1, 0, 1], ["a", "b"], PLAIN) == Pooling(1.0)


def lists(rng, queries: int, most: int = 9):
    counts = rng.integers(2, most, size=queries)
    p = [posterior(rng.normal(size=int(counts.sum())) * 2, counts) for _ in range(2)]
    return p, counts


@given(st.integers(0, 10_000), st.floats(-2, 3), st.floats(-2, 3))
def test_a_combination_is_the_product_of_powers(seed: int, one: float, other: float) -> None:
    p, counts = lists(np.random.default_rng(seed), 4)
    got = Combination((one, other)).posterior(p, counts)
    start = 0
    for count in counts:
        here = slice(start, start + count)
        product = p[0][here] ** one * p[1][here] ** other
        assert got[here] == pytest.approx(product / product.sum(), rel=1e-9)
        start += count


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.7, 0.0), (1.5, -0.4)])
def test_the_weights_that_truths_were_drawn_with_are_found(weights) -> None:
    rng = np.random.default_rng(0)
    p, counts = lists(rng, 6000)
    labels = draw_truths(rng, Combination(weights).posterior(p, counts), counts)
    assert fit_combination(p, counts, labels).weights == pytest.approx(weights, abs=0.06)


def test_a_known_prior_is_recovered_from_evidence_and_prior() -> None:
    """Truths drawn from the prior, evidence from the truth: both count in full."""
    rng = np.random.default_rng(1)
    counts = np.full(4000, 10)
    prior = posterior(rng.normal(size=40_000), counts)
    truth = draw_truths(rng, prior, counts)
    # Noise of variance 1 around 1.5 at the truth: the log-likelihood ratio is 1.5 s.
    evidence = posterior(1.5 * (1.5 * truth + rng.normal(size=len(truth))), counts)
    found = fit_combination([evidence, prior], counts, truth)
    assert found.weights == pytest.approx((1, 1), abs=0.07)
    # Without the prior, the truth is less probable; the evidence has nothing of it.
    both = found.posterior([evidence, prior], counts)[truth]
    assert np.log2(both).mean() > np.log2(evidence[truth]).mean() + 0.3


def test_each_molecule_counts_once() -> None:
    p = [np.array([0.75, 0.25] * 13)]
    labels = [0, 1] * 10 + [1, 0] * 3
    groups = ["a"] * 10 + ["b", "c", "d"]
    assert fit_combination(p, [2] * 13, labels, groups).weights[0] == pytest.approx(1, abs=1e-4)
    assert fit_combination(p, [2] * 13, labels).weights[0] < 0


def test_posteriors_that_say_nothing_keep_a_weight_of_one() -> None:
    even = np.full(8, 0.25)
    assert fit_combination([even], [4, 4], [1, 0, 0, 0] * 2).weights == (1.0,)


def test_a_probability_of_nothing_does_no_harm() -> None:
    found = fit_combination([[1.0, 0.0] * 4], [2] * 4, [1, 0, 1, 0, 1, 0, 0, 1])
    p = found.posterior([[1.0, 0.0]], [2])
    assert p[0] == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Pooling(1.5), "dependence is 1.5, expected 0 to 1"),
        (lambda: Pooling(float("nan")), "dependence is nan"),
        (lambda: pool_scores([1.0, 2, 3], [2, 1], ["a", "a"]), "list 1 has 1 candidates and"),
        (lambda: pool_scores([1.0, 2], [2], ["a", "b"]), r"groups have shape \(2,\)"),
        (lambda: pool_scores([1.0, 2], [1, 1], np.array(["a", 1], object)), "several types"),
        (lambda: fit_pooling([1.0, 2], [1, 1], [1, 0], ["a", "a"], PLAIN), "no labelled"),
        (lambda: fit_combination([], [1], [1]), "no posteriors"),
        (lambda: fit_combination([[0.5, -0.5]], [2], [1, 0]), "negative"),
        (lambda: fit_combination([[0.5, 0.5]], [2], [0, 0]), "no labelled candidate"),
        (lambda: Combination((1.0,)).posterior([[1.0], [1.0]], [1]), "2 posteriors for 1 weights"),
        (lambda: Combination((1.0,)).posterior([[0.5, 0.5]], [1]), "counts sum to 1"),
    ],
    ids=range(11),
)
def test_what_cannot_be_pooled_or_combined_is_refused(call, message: str) -> None:
    with pytest.raises(DecisionError, match=message):
        call()
