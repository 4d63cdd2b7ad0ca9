"""Pool the spectra of a feature, and combine a prior with evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar

from mzseek.core.errors import DecisionError
from mzseek.core.ragged import Ragged
from mzseek.decision.calibration import (
    Calibration,
    Floats,
    Ints,
    checked_labels,
    checked_lists,
    grouped,
    list_weights,
)

# What a probability is at least: the logarithm of nothing would outweigh everything.
_LEAST = 1e-12
# Holds weights where data say nothing (equal posteriors, or lists of one), and is too small to be
# seen where they do: log-likelihood lost for a weight that is off one by one.
_PULL = 1e-6


@dataclass(frozen=True)
class Combination:
    """Posteriors combined: ``p ∝ Π p_i^weight_i``, a conditional logit over their logarithms.

    Weights of 1 are right for posteriors that are calibrated and independent given the truth.
    A weight near 0 belongs to one that says nothing that the others do not.

    Attributes
    ----------
    weights : tuple of float
        One for each posterior.
    """

    weights: tuple[float, ...]

    def posterior(self, posteriors: Sequence[npt.ArrayLike], counts: npt.ArrayLike) -> Floats:
        """Probabilities of the candidates of each list.

        Parameters
        ----------
        posteriors : sequence of arrays
            As many as there are weights; each over all candidates of all lists, concatenated.
        counts : int array
            Candidates a list.

        Returns
        -------
        float64 array
            Summing to 1 in each list.

        Examples
        --------
        >>> Combination((1.0, 1.0)).posterior([[0.8, 0.2], [0.5, 0.5]], [2]).round(3).tolist()
        [0.8, 0.2]
        """
        logs, lists = _logarithms(posteriors, counts)
        if len(logs) != len(self.weights):
            raise DecisionError(f"{len(logs)} posteriors for {len(self.weights)} weights")
        return _softmax(np.array(self.weights) @ logs, lists)


def fit_combination(
    posteriors: Sequence[npt.ArrayLike],
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    groups: Any = None,
) -> Combination:
    """Fit the weights under which the truth is most probable.

    Parameters
    ----------
    posteriors, counts
        As in `Combination.posterior`; of molecules that did not make them.
    labels : bool array
        Every candidate that is identical to the truth; at least one a list.
    groups : array, shape (lists,), optional
        The molecule of each list: each molecule then counts once.

    Examples
    --------
    >>> even, sure = [0.5, 0.5] * 4, [0.75, 0.25] * 4
    >>> found = fit_combination([even, sure], [2] * 4, [1, 0] * 3 + [0, 1])  # right in 3 of 4
    >>> [round(weight, 3) for weight in found.weights]
    [1.0, 1.0]
    """
    logs, lists = _logarithms(posteriors, counts)
    truth = checked_labels(labels, lists)
    share = list_weights(groups, len(lists))
    share = share / share.sum()

    def loss(weights: Floats) -> tuple[float, Floats]:
        p = _softmax(weights @ logs, lists)
        of_truth = np.maximum(lists.sum(np.where(truth, p, 0)), 1e-300)
        given_truth = np.where(truth, p, 0) / lists.repeat_per_list(of_truth)
        off = weights - 1
        value = -share @ np.log(of_truth) + _PULL * off @ off
        return float(value), logs @ (
            lists.repeat_per_list(share) * (p - given_truth)
        ) + 2 * _PULL * off

    minimum = minimize(loss, np.ones(len(logs)), jac=True, method="L-BFGS-B",
                     options={"ftol": 1e-12, "gtol": 1e-8})  # fmt: skip
    return Combination(tuple(float(weight) for weight in minimum.x))


def _logarithms(
    posteriors: Sequence[npt.ArrayLike], counts: npt.ArrayLike
) -> tuple[Floats, Ragged]:
    """Logarithms of the posteriors, shape (posteriors, candidates), and the lists."""
    if not len(posteriors):
        raise DecisionError("no posteriors, expected at least one")
    read = [checked_lists(posterior, counts, "probabilities") for posterior in posteriors]
    if any((p < 0).any() for p, _ in read):
        raise DecisionError("probabilities hold a negative value")
    return np.stack([np.log(np.maximum(p, _LEAST)) for p, _ in read]), read[0][1]


def _softmax(values: Floats, lists: Ragged) -> Floats:
    scaled = np.exp(values - lists.repeat_per_list(lists.max(values)))
    return np.asarray(scaled / lists.repeat_per_list(lists.sum(scaled)))


_GRID = 21


@dataclass(frozen=True)
class Pooling:
    """Weight of n pooled spectra: ``n^(1 − dependence)`` times their mean score.

    Attributes
    ----------
    dependence : float
        b, from 0 (each spectrum is news) to 1 (all are copies of one).
    """

    dependence: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not 0 <= self.dependence <= 1:
            raise DecisionError(f"dependence is {self.dependence:g}, expected 0 to 1")

    def factor(self, spectra: npt.ArrayLike) -> Floats:
        """``n^−b``: what sums of scores over so many spectra are multiplied by; 1 for one."""
        return np.asarray(spectra, np.float64) ** -self.dependence


@dataclass(frozen=True)
class Pooled:
    """One list for each group of spectra.

    Attributes
    ----------
    scores : float64 array
        Over all candidates of all groups, concatenated; groups are in the order of their names.
    counts : int64 array, shape (groups,)
        Candidates of each.
    first : int64 array, shape (groups,)
        A list of each group: the first that was given.
    spectra : int64 array, shape (groups,)
        Lists that were added up.
    """

    scores: Floats
    counts: Ints
    first: Ints
    spectra: Ints


def pool_scores(
    scores: npt.ArrayLike, counts: npt.ArrayLike, groups: Any, pooling: Pooling | None = None
) -> Pooled:
    """Scores of candidates, added up over the lists of each group.

    Parameters
    ----------
    scores : array
        Over all candidates of all lists, concatenated.
    counts : int array, shape (lists,)
        Candidates a list.
    groups : array, shape (lists,)
        The feature or molecule of each list. Lists of one group have the same candidates, in the
        same order.
    pooling : Pooling, optional
        From `fit_pooling`. Without it, sums are left as they are: their order within a list is
        the same.

    Returns
    -------
    Pooled
        Not a bit of it depends on the order of the lists, `first` aside.

    Raises
    ------
    DecisionError
        Lists of one group have different lengths.

    Examples
    --------
    >>> found = pool_scores([1.0, 0.0, 3.0, 2.0, 5.0], [2, 2, 1], ["a", "a", "b"], Pooling(0.5))
    >>> found.scores.round(3).tolist(), found.counts.tolist(), found.spectra.tolist()
    ([2.828, 1.414, 5.0], [2, 1], [2, 1])
    """
    flat, lists = checked_lists(scores, counts, "scores")
    group_of, spectra = grouped(groups, len(lists))
    order = np.argsort(group_of, kind="stable")
    first = order[np.cumsum(spectra) - spectra]
    uneven = lists.counts != lists.counts[first][group_of]
    if uneven.any():
        at = int(np.argmax(uneven))
        raise DecisionError(
            f"list {at} has {lists.counts[at]:,} candidates and another of its group "
            f"{lists.counts[first][group_of][at]:,}, expected the same candidates"
        )
    factors = (pooling or Pooling(0.0)).factor(spectra)
    sums, start = [], 0
    for factor, number in zip(factors, spectra, strict=True):
        members = order[start : start + number]
        length = int(lists.counts[members[0]])
        inside = lists.starts[members][:, None] + np.arange(length)
        # Sorted, so that sums are the same to the last bit in any order of spectra.
        sums.append(np.sort(flat[inside], axis=0).sum(axis=0) * factor)
        start += int(number)
    return Pooled(np.concatenate(sums), lists.counts[first], first, spectra)


def fit_pooling(
    scores: npt.ArrayLike,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    groups: Any,
    calibration: Calibration,
) -> Pooling:
    """Fit the dependence under which the truth of each group is most probable.

    The calibration of single spectra stays as it is, so that a group of one spectrum has the
    probabilities that the spectrum has alone.

    Parameters
    ----------
    scores, counts, groups
        As in `pool_scores`; of a validation fold. Each group counts once.
    labels : bool array
        Every candidate that is identical to the truth.
    calibration : Calibration
        Of single spectra.

    Returns
    -------
    Pooling
        With a dependence of 1, which promises nothing, where no group has two lists.

    Examples
    --------
    >>> from mzseek.decision import Calibration
    >>> twice = [2.0, 0.0] * 2  # two spectra a molecule, of which the second repeats the first
    >>> fit_pooling(twice * 4, [2] * 8, [1, 0] * 6 + [0, 1] * 2, list("aabbccdd"),
    ...             Calibration(2 / np.log(3))).dependence  # right in 3 of 4
    1.0
    """
    flat, lists = checked_lists(scores, counts, "scores")
    truth = checked_labels(labels, lists)
    sums = pool_scores(flat, lists.counts, groups)
    several = sums.spectra > 1
    if not several.any():
        return Pooling(1.0)
    whole = Ragged(sums.counts)
    inside = whole.repeat_per_list(several)
    starts = lists.starts[sums.first]
    labelled = truth[np.repeat(starts - whole.starts, sums.counts) + np.arange(whole.total)][inside]
    pooled, spectra = sums.scores[inside], sums.spectra[several]
    several_lists = Ragged(sums.counts[several])

    def loss(dependence: float) -> float:
        factor = several_lists.repeat_per_list(Pooling(dependence).factor(spectra))
        p = calibration.posterior(pooled * factor, several_lists.counts)
        of_truth = several_lists.sum(np.where(labelled, p, 0))
        return float(-np.log(np.maximum(of_truth, 1e-300)).mean())

    grid = np.linspace(0, 1, _GRID)
    losses = [loss(at) for at in grid]
    best = int(np.argmin(losses))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    minimum = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 1e-6})
    # The search never tries the ends, where the best may be.
    return Pooling(float(minimum.x if minimum.fun < losses[best] else grid[best]))
