"""The conditional logit and the ranker."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged, pointers
from mzseek.evidence.queries import Molecules, Queries
from mzseek.evidence.ranker import Ranker, fit_logit, fit_ranker
from mzseek.spectra import Spectrum


def drawn(weights: np.ndarray, lists: int, seed: int = 0) -> tuple:
    """Lists whose truth is drawn with probability softmax(features · weights)."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 9, lists)
    features = rng.normal(size=(counts.sum(), len(weights)))
    ragged = Ragged(counts)
    noisy = features @ weights + rng.gumbel(size=len(features))
    return features, counts, noisy == ragged.repeat_per_list(ragged.max(noisy))


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
    ("counts", "labels", "weights", "message"),
    [
        ([2, 1], [1, 0, 0], None, "list 1 has no labelled"),
        ([2], [1, 0], None, "counts add up to 2, but there are 3"),
        ([3, 0], [1, 0, 0], None, "counts add up to 3"),
        ([2, 1], [1, 0, 1], [1.0], "1 weights for 2 lists"),
        ([2, 1], [1, 0, 1], [0.0, 0.0], "2 weights for 2 lists"),
    ],
)
def test_bad_lists_are_refused(counts, labels, weights, message: str) -> None:
    with pytest.raises(EvidenceError, match=message):
        fit_logit(np.zeros((3, 2)), counts, labels, weights)


LABELS, NAMES = ("one", "two"), (("a", "b"), ("c",))
SCALES = np.array([1.0, 10.0, 0.1])
POSITIVE, NEGATIVE = np.array([1.0, -0.5, 0.0]), np.array([-1.0, 0.5, 1.0])


def simulated(weights: dict[int, np.ndarray], lists: int) -> tuple[list[np.ndarray], Queries]:
    """Features of two channels, and truths drawn with the weights of each ion mode."""
    rng = np.random.default_rng(0)
    ragged = Ragged(rng.integers(2, 9, lists))
    modes = rng.choice(list(weights), lists)
    shifts = np.repeat(rng.normal(size=(lists, 3)), ragged.counts, axis=0)
    features = rng.normal(size=(ragged.total, 3)) + shifts
    noisy = rng.gumbel(size=ragged.total)
    for mode, own in weights.items():
        rows = ragged.repeat_per_list(modes == mode)
        noisy[rows] += features[rows] @ own
    spectra = [Spectrum(np.array([50.0]), np.array([1.0]), 99.0, None, int(m), "x") for m in modes]
    queries = Queries(
        spectra, np.arange(lists), pointers(ragged.counts), np.arange(ragged.total),
        Molecules(["C"] * ragged.total),
        labels=noisy == ragged.repeat_per_list(ragged.max(noisy)),
        inchikey14=np.array([f"{n:014d}" for n in range(lists)], "S14"),
    )  # fmt: skip
    scaled = features * SCALES
    return [scaled[:, :2], scaled[:, 2:]], queries


def test_weights_are_recovered_for_each_mode() -> None:
    features, queries = simulated({1: POSITIVE, -1: NEGATIVE}, 20_000)
    ranker = fit_ranker(LABELS, NAMES, features, queries, l2=0)
    for mode, expected in (("positive", POSITIVE), ("negative", NEGATIVE)):
        found = ranker.weights[mode] / ranker.scale * SCALES
        assert np.abs(found - expected).max() < 0.06
        assert ranker.by_mode[mode]


def test_a_mode_of_few_molecules_has_the_weights_of_both() -> None:
    features, queries = simulated({1: POSITIVE}, 400)
    queries.spectra[0] = replace(queries.spectra[0], charge=-1)
    ranker = fit_ranker(LABELS, NAMES, features, queries)
    assert ranker.molecules == {"positive": 399, "negative": 1}
    assert ranker.by_mode == {"positive": True, "negative": False}
    both = fit_ranker(LABELS, NAMES, features, queries, min_molecules=1000)
    assert np.array_equal(ranker.weights["negative"], both.weights["negative"])
    assert np.array_equal(both.weights["positive"], both.weights["negative"])


def test_contributions_add_up_to_log_odds_whatever_lists_are_beside() -> None:
    features, queries = simulated({1: POSITIVE, -1: NEGATIVE}, 300)
    ranker = fit_ranker(LABELS, NAMES, features, queries)
    ragged, whole = queries.ragged, np.hstack(features)
    together = {
        centred: ranker.contributions(features, queries.modes, queries.counts, centred=centred)
        for centred in (True, False)
    }
    assert together[True].shape == (ragged.total, 2)
    assert np.abs(ragged.sum(together[True].sum(1))).max() < 1e-4  # against the average of a list
    for number, (start, count) in enumerate(zip(ragged.starts, ragged.counts, strict=True)):
        own, mode = slice(start, start + count), queries.modes[number]
        weights = ranker.weights["positive" if mode > 0 else "negative"] / ranker.scale
        score = whole[own] @ weights
        assert np.allclose(together[True][own].sum(1), score - score.mean(), atol=1e-4)
        for centred, values in together.items():
            given = [column[own] for column in features]
            alone = ranker.contributions(given, [mode], [count], centred=centred)
            assert np.array_equal(alone, values[own])


def test_plain_data_comes_back_and_damage_is_refused() -> None:
    ranker = fit_ranker(LABELS, NAMES, *simulated({1: POSITIVE}, 200))
    fields = json.loads(json.dumps(ranker.to_dict()))
    again = Ranker.from_dict(fields)
    assert np.array_equal(again.scale, ranker.scale)
    assert np.array_equal(again.weights["positive"], ranker.weights["positive"])
    assert again.features == ranker.features
    table = ranker.to_table()
    assert table.columns["feature"] == ["a", "b", "c"]
    assert table.columns["channel"] == ["one", "one", "two"]
    for name in ("spread", "weights", "molecules", "own"):
        with pytest.raises(EvidenceError, match=name):
            Ranker.from_dict({key: value for key, value in fields.items() if key != name})
        with pytest.raises(EvidenceError):
            Ranker.from_dict(fields | {name: {}})


def test_molecules_with_many_spectra_count_once_or_not() -> None:
    features, queries = simulated({1: POSITIVE}, 300)
    keys = np.where(np.arange(300) < 200, queries.inchikey14[0], queries.inchikey14)
    repeated = replace(queries, inchikey14=keys)
    once = fit_ranker(LABELS, NAMES, features, repeated)
    many = fit_ranker(LABELS, NAMES, features, repeated, by_molecule=False)
    assert not np.allclose(once.weights["positive"], many.weights["positive"])
    distinct = fit_ranker(LABELS, NAMES, features, queries, by_molecule=False)
    assert np.array_equal(many.weights["positive"], distinct.weights["positive"])


@pytest.fixture
def reranking(monkeypatch: pytest.MonkeyPatch) -> tuple[list[np.ndarray], Queries, Ranker]:
    """A ranker whose second channel scores only three candidates of each list."""
    monkeypatch.setattr("mzseek.evidence.ranker.SHORTLIST", 3)
    features, queries = simulated({1: POSITIVE, -1: NEGATIVE}, 4_000)
    return features, queries, fit_ranker(LABELS, NAMES, features, queries, reranking=1)


def test_ranking_a_shortlist_again_leaves_its_probability(reranking) -> None:
    features, queries, ranker = reranking
    lists, counts = queries.ragged, queries.counts
    inside = ranker.shortlist(features[:1], queries.modes, counts)
    assert np.array_equal(lists.sum(inside, np.int64), np.minimum(counts, 3))
    for centred in (True, False):
        first = ranker.first.contributions(features[:1], queries.modes, counts, centred=centred)
        both = ranker.contributions(features, queries.modes, counts, centred=centred)
        assert np.array_equal(both[:, :1], first)
        assert not both[~inside, 1].any()
        of_first, of_both = (
            lists.sum(np.where(inside, np.exp(values.sum(1, dtype=float)), 0))
            for values in (first, both)
        )
        assert np.allclose(of_first, of_both, rtol=1e-4)
    # What the second channel says of the other candidates is not read.
    hidden = [features[0], np.where(inside[:, None], features[1], np.nan)]
    assert np.array_equal(ranker.contributions(hidden, queries.modes, counts, centred=False), both)


def test_ranking_again_finds_more_truths(reranking) -> None:
    features, queries, ranker = reranking
    best = [
        queries.ragged.max(np.where(queries.labels, total, -np.inf)) == queries.ragged.max(total)
        for total in (
            ranker.contributions(features, queries.modes, queries.counts).sum(1),
            ranker.first.contributions(features[:1], queries.modes, queries.counts).sum(1),
        )
    ]
    assert best[0].mean() > best[1].mean() + 0.03


def test_a_ranker_that_ranks_again_comes_back(reranking) -> None:
    _, _, ranker = reranking
    fields = json.loads(json.dumps(ranker.to_dict()))
    again = Ranker.from_dict(fields)
    assert again.first is not None
    assert again.to_dict() == ranker.to_dict()
    table = ranker.to_table()
    assert table.columns["candidates"] == ["all"] * 2 + ["shortlist"] * 4
    assert table.columns["feature"] == ["a", "b", "a", "b", "c", "c, standardised"]
    other = fields["first"] | {"spread": {"another": fields["first"]["spread"]["one"]}}
    with pytest.raises(EvidenceError):
        Ranker.from_dict(fields | {"first": other})
