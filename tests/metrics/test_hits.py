from itertools import permutations
from math import comb
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import MetricError, MzseekError
from mzseek.metrics import RankCounts, expected_rank, hit_rate, hit_rate_from_counts, rank_counts

RULES = ("pessimistic", "expected", "optimistic")

# One list: (score, label) of each candidate; few different scores, so that many are tied.
candidate = st.tuples(st.integers(-3, 3), st.booleans())
one_list = st.lists(candidate, min_size=1, max_size=12).filter(lambda c: any(x[1] for x in c))
some_lists = st.lists(one_list, min_size=1, max_size=6)


def flat(lists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments of `hit_rate`."""
    scores = np.array([float(score) for each in lists for score, _ in each])
    labels = np.array([label for each in lists for _, label in each])
    return scores, np.array([len(each) for each in lists]), labels


def orders(candidates) -> list[tuple]:
    """All orders of the candidates that the scores allow, each as often."""
    return [o for o in permutations(candidates) if [-c[0] for c in o] == sorted(-c[0] for c in o)]


@given(st.lists(one_list.filter(lambda c: len(c) <= 6), min_size=1, max_size=3), st.integers(1, 7))
def test_every_rule_is_what_all_orders_of_the_tied_say(lists, k: int) -> None:
    hits = [[any(c[1] for c in order[:k]) for order in orders(each)] for each in lists]
    assert hit_rate(*flat(lists), k) == pytest.approx([np.mean(h) for h in hits], abs=1e-12)
    assert hit_rate(*flat(lists), k, ties="optimistic").tolist() == [max(h) for h in hits]
    assert hit_rate(*flat(lists), k, ties="pessimistic").tolist() == [min(h) for h in hits]


@given(st.lists(one_list.filter(lambda c: len(c) <= 6), min_size=1, max_size=3))
def test_the_expected_rank_is_the_mean_over_all_orders(lists) -> None:
    ranks = [[[c[1] for c in o].index(True) + 1 for o in orders(each)] for each in lists]
    assert expected_rank(*flat(lists)) == pytest.approx([np.mean(r) for r in ranks], abs=1e-12)


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.integers(1, 3), st.sampled_from(RULES))
def test_single_candidates_are_hits(scores, k: int, ties) -> None:
    ones = np.ones(len(scores), dtype=int)
    assert hit_rate(scores, ones, ones.astype(bool), k, ties).tolist() == ones.tolist()


@given(st.integers(0, 50), st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 4000))
def test_the_formula_is_exact_where_many_are_tied(b: int, t: int, q: int, k: int) -> None:
    q = min(q, t)
    j = min(k - b, t)
    wanted = 0.0 if k <= b else 1 - comb(t - q, j) / comb(t, j)
    got = hit_rate_from_counts(RankCounts(*(np.array([n]) for n in (b, t, q))), k)
    assert got.item() == pytest.approx(wanted, abs=1e-12)


def test_infinite_scores_are_scores() -> None:
    scores = [-np.inf, -np.inf, np.inf, np.inf]
    assert hit_rate(scores, [2, 2], [True, False] * 2, 1).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, bool])
def test_scores_of_any_type(dtype) -> None:
    scores = np.array([0, 1, 1, 0], dtype=dtype)
    assert hit_rate(scores, [2, 2], np.array([0, 1, 0, 1]), 1).tolist() == [1, 0]


def test_no_queries_have_no_hits() -> None:
    assert hit_rate([], [], [], 1).shape == (0,)
    assert expected_rank([], [], []).shape == (0,)


@pytest.mark.parametrize(
    ("scores", "counts", "labels", "reason"),
    [
        ([1, 2, np.nan], [2, 1], [1, 0, 1], r"not finite \(list 1, candidate 0"),
        ([1, 2, 3], [2, 2], [1, 0, 1], "counts sum to 4, but there are 3"),
        ([1, 2, 3], [2, 1], [1, 0], "labels have shape"),
        ([1, 2, 3], [2, 1], [1, 0, 0], "list 1 has no labelled candidate"),
        ([1, 2, 3, 4], [2, 1, 1], [1, 0, 0, 0], r"list 1 has no .* \(as do 1 more\)"),
        ([1, 2, 3], [2, 0, 1], [1, 0, 1], "list 1 has no candidates"),
        ([1, 2], [3, -1], [1, 0], "list 1 has no candidates"),
        ([1, 2, 3], [1.5, 1.5], [1, 0, 1], "counts whole numbers"),
        ([1, 2, 3], [2, 1], [0, 7, 1], "other values than True and False"),
        ([1, 2, 3], [2, 1], ["a", "b", "c"], "other values than True and False"),
        (["a", "b"], [2], [1, 0], "scores are no numbers"),
        ([[1, 2]], [2], [1, 0], "one-dimensional"),
        ([1, 2], 2, [1, 0], "one-dimensional"),
    ],
)
def test_what_has_no_hit_rate_is_refused(scores, counts, labels, reason: str) -> None:
    with pytest.raises(MetricError, match=reason):
        hit_rate(scores, counts, labels, 1)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(MzseekError, match="k is 0, expected at least 1"):
        hit_rate([1.0], [1], [True], 0)
    with pytest.raises(MzseekError, match=r"k is 1\.5, expected a whole number"):
        hit_rate([1.0], [1], [True], 1.5)
    with pytest.raises(ValueError, match="'random' is unknown, expected one of: expected, optim"):
        hit_rate([1.0], [1], [True], 1, ties="random")


def test_millions_of_candidates_take_a_moment() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 513, size=17_556)
    scores = rng.integers(0, 5000, size=counts.sum()).astype(np.float32)
    labels = rng.random(counts.sum()) < 0.01
    labels[np.cumsum(counts) - counts] = True
    start = perf_counter()
    ranks = rank_counts(scores, counts, labels)
    for k in (1, 5, 20):
        hit_rate_from_counts(ranks, k)
    assert perf_counter() - start < 5, "a loop over queries has crept in"


@pytest.mark.shared
def test_hit_rate_as_published(published) -> None:
    arrays, values, _, _ = published
    lists = arrays["scores_fp_cos_tau1.0"], arrays["candidate_counts"], arrays["labels"]
    for k, wanted in values["hit_rate_from_scores_fp_cos_tau1"].items():
        for ties in RULES:
            assert hit_rate(*lists, int(k), ties).tolist() == wanted
