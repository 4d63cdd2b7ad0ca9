"""The network over pairs."""

import numpy as np
import pytest

from mzseek.evidence.fragments import (
    SHAPES,
    Lesson,
    PairInputs,
    _drawn,
    _forward,
    _gradient,
    pair_scores,
    train_pairs,
)
from mzseek.evidence.queries import Queries
from mzseek.metrics import hit_rate


def loss(weights, inputs: PairInputs, labels, spectra) -> float:
    scores = pair_scores(weights, inputs).astype(np.float64)
    total = 0.0
    for each in spectra:
        own = slice(inputs.row_ends[each], inputs.row_ends[each + 1])
        p = np.exp(scores[own] - scores[own].max())
        total -= np.log(p[labels[own]].sum() / p.sum())
    return total / len(spectra)


def test_the_gradient_is_the_slope_of_the_loss(asked: Queries, inputs: PairInputs) -> None:
    rng = np.random.default_rng(0)
    weights = {name: w.astype(np.float64) for name, w in _drawn(rng).items()}
    weights["totals"] = rng.normal(size=3)
    spectra = np.array([5, 0, 11])
    slope = _gradient(weights, inputs, spectra, asked.labels, np.ones(3, np.float32))
    for name, values in weights.items():
        at = tuple(rng.integers(0, size) for size in values.shape)
        step, kept = 1e-3, values[at]
        values[at] = kept + step
        up = loss(weights, inputs, asked.labels, spectra)
        values[at] = kept - step
        down = loss(weights, inputs, asked.labels, spectra)
        values[at] = kept
        assert slope[name][at] == pytest.approx((up - down) / (2 * step), rel=2e-2, abs=2e-4)


def test_it_learns(asked: Queries, inputs: PairInputs) -> None:
    weights = train_pairs(inputs, asked.labels, np.ones(len(asked)), Lesson(epochs=40, lr=1e-2))
    assert {name: value.shape for name, value in weights.items()} == SHAPES
    hits = hit_rate(pair_scores(weights, inputs), asked.counts, asked.labels, 1)
    assert hits.mean() > 0.5  # by chance 0.17


def test_the_same_seed_gives_the_same_weights(asked: Queries, inputs: PairInputs) -> None:
    one, same, other = (
        train_pairs(inputs, asked.labels, np.ones(len(asked)), Lesson(1, seed=seed))
        for seed in (1, 1, 2)
    )
    assert all(np.array_equal(one[name], same[name]) for name in SHAPES)
    assert not np.array_equal(one["first"], other["first"])


def test_a_score_is_the_sum_of_its_pairs_and_totals(inputs: PairInputs) -> None:
    weights = _drawn(np.random.default_rng(3))
    weights["totals"] = np.array([0.1, 0.2, 0.3], np.float32)
    own = slice(inputs.pair_ends[4], inputs.pair_ends[5])
    rows = slice(inputs.row_ends[4], inputs.row_ends[5])
    _, _, kept = _forward(weights, inputs, np.array([4]))
    worth = kept.values * kept.shares
    summed = np.bincount(inputs.pairs.row[own] - rows.start, worth, rows.stop - rows.start)
    summed += inputs.totals[rows] @ weights["totals"]
    assert np.allclose(pair_scores(weights, inputs)[rows], summed, atol=1e-5)


def test_scores_do_not_depend_on_the_spectra_beside(asked: Queries, inputs_of) -> None:
    weights = _drawn(np.random.default_rng(0))
    together = inputs_of(asked)
    scores = pair_scores(weights, together)
    for spectrum in range(len(together)):
        alone = pair_scores(weights, inputs_of(asked.only(np.array([spectrum]))))
        own = slice(together.row_ends[spectrum], together.row_ends[spectrum + 1])
        assert np.array_equal(alone, scores[own])
