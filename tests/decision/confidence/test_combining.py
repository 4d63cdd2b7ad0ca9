import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import Combination, fit_combination, posterior

from ..conftest import unhurried


def lists(rng, queries: int, most: int = 9):
    counts = rng.integers(2, most, size=queries)
    p = [posterior(rng.normal(size=int(counts.sum())) * 2, counts) for _ in range(2)]
    return p, counts


def drawn(rng, p, counts) -> np.ndarray:
    labels = np.zeros(len(p), bool)
    for end, count in zip(np.cumsum(counts), counts, strict=True):
        labels[end - count + rng.choice(count, p=p[end - count : end])] = True
    return labels


@unhurried
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
    labels = drawn(rng, Combination(weights).posterior(p, counts), counts)
    assert fit_combination(p, counts, labels).weights == pytest.approx(weights, abs=0.06)


def test_a_known_prior_is_recovered_from_evidence_and_prior() -> None:
    """Truths drawn from the prior, evidence from the truth: both count in full."""
    rng = np.random.default_rng(1)
    counts = np.full(4000, 10)
    prior = posterior(rng.normal(size=40_000), counts)
    truth = drawn(rng, prior, counts)
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
        (lambda: fit_combination([], [1], [1]), "no posteriors"),
        (lambda: fit_combination([[0.5, -0.5]], [2], [1, 0]), "negative"),
        (lambda: fit_combination([[0.5, 0.5]], [2], [0, 0]), "no labelled candidate"),
        (lambda: Combination((1.0,)).posterior([[1.0], [1.0]], [1]), "2 posteriors for 1 weights"),
        (lambda: Combination((1.0,)).posterior([[0.5, 0.5]], [1]), "counts sum to 1"),
    ],
    ids=range(5),
)
def test_what_cannot_be_combined_is_refused(call, message: str) -> None:
    with pytest.raises(DecisionError, match=message):
        call()
