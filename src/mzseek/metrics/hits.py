"""Hit rate at k: is the true molecule among the first k candidates, and what if scores are tied.

Candidates with equal scores have no order, so a rule has to say what a hit is. All of it follows
from three counts a query. Take the best-scored candidate that is labelled as the truth: b
candidates are strictly better, t have its score (itself included), and q of those are labelled.

- ``expected``: the mean over all orders of the tied ones. The first k places hold
  j = min(k − b, t) of them, and all j are wrong with probability C(t−q, j) / C(t, j).
- ``optimistic``: a labelled one comes first among the tied ones.
- ``pessimistic``: all unlabelled ones come first.
"""

from operator import index
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import MetricError
from mzseek.core.ragged import read_labels, read_values
from mzseek.core.registry import TIES, Ties, check_name

Values = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class RankCounts(NamedTuple):
    """Where the best-scored labelled candidate of each query stands.

    Attributes
    ----------
    better : int64 array, shape (queries,)
        Candidates with a strictly better score.
    tied : int64 array, shape (queries,)
        Candidates with the same score, itself included: at least 1.
    tied_labelled : int64 array, shape (queries,)
        Labelled ones among the tied, itself included: at least 1.
    """

    better: Counts
    tied: Counts
    tied_labelled: Counts


def hit_rate(
    scores: npt.ArrayLike,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    k: int,
    ties: Ties = "expected",
) -> Values:
    """Hit rate at k of each query: 1, 0, or between the two where scores are tied.

    Parameters
    ----------
    scores : array, shape (candidates of all queries,)
        Higher is better. The lists stand one after the other.
    counts : int array, shape (queries,)
        Candidates of each query, at least 1 each.
    labels : bool array, shape (candidates of all queries,)
        Marks every candidate that is identical to the truth, at least one a query.
    k : int
        How many candidates are looked at.
    ties : "expected", "optimistic" or "pessimistic"
        What equal scores count for.

    Returns
    -------
    float64 array, shape (queries,)
        The (expected) hit of each query; its mean is the hit rate of the model. A list with a
        single candidate has 1.

    Raises
    ------
    MetricError
        Where a score is not a number, lengths do not fit, or a list has no candidates or no label.

    Examples
    --------
    >>> scores = [0.9, 0.5, 0.1, 0.7, 0.7]
    >>> labels = [False, True, False, True, False]
    >>> hit_rate(scores, [3, 2], labels, k=1).tolist()
    [0.0, 0.5]
    >>> hit_rate(scores, [3, 2], labels, k=1, ties="pessimistic").tolist()
    [0.0, 0.0]
    >>> hit_rate(scores, [3, 2], labels, k=2).tolist()
    [1.0, 1.0]
    """
    return hit_rate_from_counts(rank_counts(scores, counts, labels), k, ties)


def hit_rate_from_counts(ranks: RankCounts, k: int, ties: Ties = "expected") -> Values:
    """Hit rate at k of each query, from `rank_counts`: one count serves every k and tie rule.

    Returns
    -------
    float64 array, shape (queries,)
        As `hit_rate` returns it.

    Examples
    --------
    >>> ranks = rank_counts([2.0, 2.0, 2.0, 1.0], [4], [True, False, False, False])
    >>> [hit_rate_from_counts(ranks, k).round(3).item() for k in (1, 2, 3)]
    [0.333, 0.667, 1.0]
    """
    k = _checked_k(k)
    check_name(TIES, ties, "tie rule", MetricError)
    better, tied, tied_labelled = ranks
    if ties == "optimistic":
        return (better < k).astype(np.float64)
    if ties == "pessimistic":
        return (better + tied - tied_labelled < k).astype(np.float64)
    positions = np.clip(k - better, 0, tied)
    return 1.0 - _all_wrong(positions, tied, tied_labelled)


def expected_rank(scores: npt.ArrayLike, counts: npt.ArrayLike, labels: npt.ArrayLike) -> Values:
    """Expected rank of the first labelled candidate of each query, from 1.

    Over all orders of t tied candidates, the first of q labelled ones stands at (t+1)/(q+1).

    Parameters are those of `hit_rate`.

    Returns
    -------
    float64 array, shape (queries,)

    Examples
    --------
    >>> expected_rank([0.9, 0.5, 0.7, 0.7], [2, 2], [False, True, True, False]).tolist()
    [2.0, 1.5]
    """
    better, tied, tied_labelled = rank_counts(scores, counts, labels)
    return better + (tied + 1) / (tied_labelled + 1)


def rank_counts(scores: npt.ArrayLike, counts: npt.ArrayLike, labels: npt.ArrayLike) -> RankCounts:
    """Return the three counts a query from which every hit rate and rank follows.

    Parameters are those of `hit_rate`.

    Returns
    -------
    RankCounts
        The arrays ``better``, ``tied`` and ``tied_labelled``, one value for each query each.

    Examples
    --------
    >>> ranks = rank_counts([0.9, 0.5, 0.7, 0.7], [2, 2], [False, True, True, False])
    >>> [each.tolist() for each in ranks]
    [[1, 0], [1, 2], [1, 1]]
    """
    scores, lists = read_values(scores, counts, "scores", MetricError, allow_no_lists=True)
    labels = read_labels(labels, lists, MetricError)
    level = lists.repeat_per_list(lists.max(np.where(labels, scores, -np.inf)))
    tied = scores == level
    # No labelled candidate is better than the best labelled one, so these are all unlabelled.
    better = scores > level
    return RankCounts(*(lists.sum(flags, np.int64) for flags in (better, tied, tied & labels)))


def _all_wrong(positions: Counts, tied: Counts, labelled: Counts) -> Values:
    """Probability C(t−q, j) / C(t, j) that j places hold none of q labelled among t tied."""
    # As a product it has j factors, or q with j and q exchanged, which leaves it the same. The
    # loop runs over factors, of which there are as few as k or as the twins of a molecule.
    fewer, more = np.minimum(positions, labelled), np.maximum(positions, labelled)
    wrong = np.ones(len(tied))
    for i in range(int(fewer.max(initial=0))):
        left = np.maximum(tied - more - i, 0) / np.maximum(tied - i, 1)
        wrong = np.where(i < fewer, wrong * left, wrong)
    return wrong


def _checked_k(k: int) -> int:
    try:
        whole = index(k)
    except TypeError:
        raise MetricError(f"k is {k!r}, expected a whole number") from None
    if whole < 1:
        raise MetricError(f"k is {whole}, expected at least 1")
    return whole
