"""The conditional logit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged
from mzseek.evidence.ranker import fit_logit


def drawn(weights: np.ndarray, lists: int, seed: int = 0) -> tuple:
    """Lists whose truth is drawn with probability softmax(features · weights)."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 9, lists)
    features = rng.normal(size=(counts.sum(), len(weights)))
    ragged = Ragged(counts)
    noisy = features @ weights + rng.gumbel(size=len(features))
    return features, counts, noisy == ragged.repeat_per_list(ragged.max(noisy))


def test_simulated_weights_are_found_again() -> None:
    weights = np.array([1.5, -0.7, 0.0, 0.3])
    found = fit_logit(*drawn(weights, 20_000), l2=0)
    assert np.abs(found - weights).max() < 0.05


def test_sparse_and_dense_are_one() -> None:
    features, counts, labels = drawn(np.array([1.0, 0.0, -1.0]), 300)
    features[np.abs(features) < 0.5] = 0
    dense = fit_logit(features, counts, labels)
    assert np.allclose(fit_logit(csr_array(features), counts, labels), dense, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_no_order_shows_and_constants_do_not_matter(seed: int) -> None:
    features, counts, labels = drawn(np.array([1.0, -1.0]), 40, seed)
    rng, ragged = np.random.default_rng(seed), Ragged(counts)
    found = fit_logit(features, counts, labels, l2=1e-2)
    order = rng.permutation(len(counts))
    rows = np.concatenate([ragged.starts[i] + rng.permutation(counts[i]) for i in order])
    moved = features + np.repeat(rng.normal(size=(len(counts), 2)), counts, axis=0)
    again = fit_logit(moved[rows], counts[order], labels[rows], l2=1e-2)
    assert np.allclose(again, found, atol=1e-5)


def test_it_is_the_minimum_that_a_plain_loop_finds() -> None:
    features, counts, labels = drawn(np.array([0.5, 1.0]), 30)
    weights = np.random.default_rng(1).uniform(0.1, 2, 30)
    starts = Ragged(counts).starts

    def loss(at: np.ndarray) -> float:
        total = 0.0
        for start, count, weight in zip(starts, counts, weights, strict=True):
            score = features[start : start + count] @ at
            p = np.exp(score) / np.exp(score).sum()
            total -= weight * np.log(p[labels[start : start + count]].sum())
        return total / weights.sum() + 0.05 * at @ at

    plain = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8})
    assert np.allclose(fit_logit(features, counts, labels, weights, l2=0.1), plain.x, atol=1e-5)


def test_twins_share_the_truth() -> None:
    features = np.array([[1.0], [1.0], [0.0]])
    [found] = fit_logit(features, [3], [1, 1, 0], l2=0.1)
    p = 2 * np.exp(found) / (2 * np.exp(found) + 1)
    assert 0.1 * found == pytest.approx(1 - p, abs=1e-6)  # where the slope of loss and penalty meet


@pytest.mark.parametrize(
    ("counts", "labels", "weights", "said"),
    [
        ([2, 1], [1, 0, 0], None, "list 1 has no labelled"),
        ([2], [1, 0], None, "counts add up to 2, but there are 3"),
        ([3, 0], [1, 0, 0], None, "counts add up to 3"),
        ([2, 1], [1, 0, 1], [1.0], "1 weights for 2 lists"),
        ([2, 1], [1, 0, 1], [0.0, 0.0], "2 weights for 2 lists"),
    ],
)
def test_what_does_not_fit_is_refused(counts, labels, weights, said) -> None:
    with pytest.raises(EvidenceError, match=said):
        fit_logit(np.zeros((3, 2)), counts, labels, weights)
