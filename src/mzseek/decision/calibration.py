"""Turn scores into probabilities: calibrate, pool the spectra of a feature, combine a prior."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar

from mzseek.core.errors import DecisionError
from mzseek.core.ragged import Ragged, read_labels, read_values
from mzseek.decision.distributions import Floats, Ints, distinct

_TINY = 1e-300  # of a probability, so that its logarithm is finite


def checked_lists(values: npt.ArrayLike, counts: npt.ArrayLike, name: str) -> tuple[Floats, Ragged]:
    """Return checked values of candidates, and their lists; DecisionError if they do not fit."""
    return read_values(values, counts, name, DecisionError, np.float64)


def checked_labels(labels: npt.ArrayLike, lists: Ragged) -> npt.NDArray[np.bool_]:
    """Return checked labels of candidates, of which each list has at least one."""
    return read_labels(labels, lists, DecisionError)


def list_weights(groups: Any, count: int) -> Floats:
    """Return a weight for each list: 1 for a group, shared among the lists of the group."""
    if groups is None:
        return np.ones(count)
    group_of, sizes = grouped(groups, count)
    return 1 / sizes[group_of].astype(np.float64)


def grouped(groups: Any, count: int) -> tuple[Ints, Ints]:
    """Return the group of each list, numbered in the order of names, and each group's lists."""
    members = np.asarray(groups)
    if members.shape != (count,):
        raise DecisionError(f"groups have shape {members.shape}, expected ({count},)")
    try:
        _, group_of, sizes = np.unique(members, return_inverse=True, return_counts=True)
    except TypeError:
        raise DecisionError("groups hold values of several types, expected one") from None
    return group_of, sizes


def merge_equal(
    probabilities: Floats, counts: Ints, identities: npt.NDArray[Any], labels: npt.NDArray[np.bool_]
) -> tuple[Floats, Ints, npt.NDArray[np.bool_]]:
    """Merge candidates of equal identity into one answer, with the sum of their probabilities.

    Returns probabilities, counts and labels of distinct answers, in the order of the first of each.

    Examples
    --------
    >>> p, counts, labels = merge_equal(
    ...     np.array([0.2, 0.5, 0.3, 1.0]), np.array([3, 1]), np.array([7, 8, 7, 7]),
    ...     np.array([True, False, True, True]))
    >>> p.tolist(), counts.tolist(), labels.tolist()
    ([0.5, 0.5, 1.0], [2, 1], [True, False, True])
    """
    of_list = Ragged(counts).list_index
    names, number = np.unique(identities, return_inverse=True)
    first, index = distinct(of_list * len(names) + number)
    summed = np.bincount(index, weights=probabilities).astype(np.float64)
    return summed, np.bincount(of_list[first], minlength=len(counts)), labels[first]


# Temperatures are looked for between these multiples of how far scores are below the best: of a
# small distance and of the largest, since one score may be far below all others. At the lower one,
# the best candidate has all the probability; at the upper, all are equally probable.
_COLDEST, _HOTTEST = 1e-4, 1e4
_USUAL_LENGTH = 50.0
_GRID = 21  # dependences of pooled spectra that are tried first
# Least probability in a combination of posteriors: the logarithm of 0 would outweigh all else.
_LEAST = 1e-12
# Holds weights where data say nothing (equal posteriors, or lists of one), and is too small to be
# seen where they do: log-likelihood lost for a weight that is off one by one.
_PULL = 1e-6

# Bins of confidence, wherever calibration is measured, drawn or printed: with other bins, the
# expected calibration error is another number.
BINS = 15
# Bins with fewer lists are off by several points by chance alone.
FULL_BIN = 300


def posterior(scores: npt.ArrayLike, counts: npt.ArrayLike, temperature: float = 1.0) -> Floats:
    """Return probabilities of the candidates of each list: ``softmax(score / T)``.

    Parameters
    ----------
    scores : array
        Over all candidates of all lists, concatenated.
    counts : int array
        Candidates a list.
    temperature : float
        Above 0; infinity gives the uniform posterior.

    Returns
    -------
    float64 array
        Summing to 1 in each list.

    Examples
    --------
    >>> posterior([1.0, 1.0, 0.0, 5.0], [3, 1], temperature=0.5).round(3).tolist()
    [0.468, 0.468, 0.063, 1.0]
    """
    if not temperature > 0:
        raise DecisionError(f"temperature is {temperature:g}, expected above 0")
    flat, lists = checked_lists(scores, counts, "scores")
    return _softmax(flat, lists, temperature)


def _softmax(values: Floats, lists: Ragged, temperature: float = 1.0) -> Floats:
    scaled = np.exp((values - lists.repeat_per_list(lists.max(values))) / temperature)
    return np.asarray(scaled / lists.repeat_per_list(lists.sum(scaled)))


def _log_truth(p: Floats, lists: Ragged, truth: npt.NDArray[np.bool_]) -> Floats:
    """Log-likelihood of the truth of each list."""
    return np.asarray(np.log(np.maximum(lists.sum(np.where(truth, p, 0)), _TINY)))


def fit_temperature(
    scores: npt.ArrayLike, counts: npt.ArrayLike, labels: npt.ArrayLike, groups: Any = None
) -> float:
    """Fit the temperature of the best log-likelihood: the truth is most probable under it.

    Parameters
    ----------
    scores, counts
        As in `posterior`; of a validation fold.
    labels : bool array
        Every candidate that is identical to the truth; at least one a list.
    groups : array, shape (lists,), optional
        The molecule of each list: each molecule then counts once, however many spectra it has.

    Returns
    -------
    float
        1 where the scores say nothing (all equal, or lists of one).

    Examples
    --------
    >>> fit_temperature([2.0, 0.0] * 4, [2] * 4, [1, 0, 1, 0, 1, 0, 0, 1])  # right in 3 of 4
    1.82...
    """
    flat, lists = checked_lists(scores, counts, "scores")
    truth = checked_labels(labels, lists)
    weights = list_weights(groups, len(lists))
    centred = flat - lists.repeat_per_list(lists.max(flat))
    below = -centred[centred < 0]
    if not len(below):
        return 1.0

    def loss(log_t: float) -> float:
        scaled = np.exp(centred / np.exp(log_t))
        all_of_it = lists.sum(scaled)
        of_truth = lists.sum(np.where(truth, scaled, 0))
        return float(weights @ (np.log(all_of_it) - np.log(np.maximum(of_truth, _TINY))))

    edges = np.log(np.quantile(below, 0.1) * _COLDEST), np.log(below.max() * _HOTTEST)
    grid = np.linspace(*edges, int(2 * (edges[1] - edges[0])) + 2)
    best = int(np.argmin([loss(at) for at in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    minimum = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 1e-7})
    return float(np.exp(minimum.x))


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities: a temperature, and two things that it cannot do alone.

    ``p = (1 − floor) · softmax(score / T(n)) + floor / n`` in a list of n candidates, with
    ``T(n) = T · (n / 50)^−power``. A long list spreads its probability over many candidates that
    are alike, and wants a lower temperature than a short one; and a model that is now and then
    quite wrong must not give any candidate next to nothing.

    Attributes
    ----------
    temperature, power, floor : float
        T, power and floor; 1, 0 and 0 leave softmax as it is.
    """

    temperature: float
    power: float = 0.0
    floor: float = 0.0

    def temperature_of(self, length: npt.ArrayLike) -> Any:
        """Return the temperature T(n) of lists of so many candidates."""
        return self.temperature * (np.asarray(length) / _USUAL_LENGTH) ** -self.power

    def posterior(self, scores: npt.ArrayLike, counts: npt.ArrayLike) -> Floats:
        """Return probabilities of the candidates of each list; arguments as in `posterior`."""
        flat, lists = checked_lists(scores, counts, "scores")
        centred = flat - lists.repeat_per_list(lists.max(flat))
        return _probabilities(centred, lists, self)


def fit_calibration(
    scores: npt.ArrayLike, counts: npt.ArrayLike, labels: npt.ArrayLike, groups: Any = None
) -> Calibration:
    """Fit the calibration under which the truth is most probable.

    Parameters
    ----------
    scores, counts, labels, groups
        As in `fit_temperature`, of a validation fold.

    Examples
    --------
    >>> fit_calibration([3.0, 3.0, 1.0], [2, 1], [1, 0, 1])  # nothing to be learnt
    Calibration(temperature=1.0, power=0.0, floor=0.0)
    """
    start = fit_temperature(scores, counts, labels, groups)
    flat, lists = checked_lists(scores, counts, "scores")
    truth = checked_labels(labels, lists)
    weights = list_weights(groups, len(lists))
    centred = flat - lists.repeat_per_list(lists.max(flat))
    if not centred.any():
        return Calibration(start)

    def from_vector(at: Floats) -> Calibration:
        return Calibration(float(start * np.exp(at[0])), float(at[1]), float(at[2]))

    def loss(at: Floats) -> float:
        p = _probabilities(centred, lists, from_vector(at))
        return float(weights @ -_log_truth(p, lists, truth) / weights.sum())

    minimum = minimize(
        loss,
        [0.0, 0.0, 0.05],
        method="L-BFGS-B",
        bounds=[(-3, 3), (-1, 1), (0, 0.95)],
        options={"ftol": 1e-10, "eps": 1e-5},
    )
    return from_vector(minimum.x) if minimum.fun < loss(np.zeros(3)) else Calibration(start)


def _probabilities(centred: Floats, lists: Ragged, calibration: Calibration) -> Floats:
    """Turn scores less the highest of their list into probabilities."""
    n = lists.counts.astype(np.float64)
    inverse = (n / _USUAL_LENGTH) ** calibration.power / calibration.temperature
    scaled = np.exp(centred * lists.repeat_per_list(inverse))
    sums = lists.sum(scaled)
    remaining = 1 - calibration.floor
    return np.asarray(
        scaled * lists.repeat_per_list(remaining / sums)
        + lists.repeat_per_list(calibration.floor / n)
    )


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
        """Return ``n^−b``, the factor of sums of scores over n spectra; 1 for one spectrum."""
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
    """Add up scores of candidates over the lists of each group.

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
        return float(-_log_truth(p, several_lists, labelled).mean())

    grid = np.linspace(0, 1, _GRID)
    losses = [loss(at) for at in grid]
    best = int(np.argmin(losses))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    minimum = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 1e-6})
    # The search never tries the ends, where the best may be.
    return Pooling(float(minimum.x if minimum.fun < losses[best] else grid[best]))


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
        """Return probabilities of the candidates of each list.

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
        of_truth = np.maximum(lists.sum(np.where(truth, p, 0)), _TINY)
        given_truth = np.where(truth, p, 0) / lists.repeat_per_list(of_truth)
        off = weights - 1
        value = -share @ np.log(of_truth) + _PULL * off @ off
        slope = logs @ (lists.repeat_per_list(share) * (p - given_truth)) + 2 * _PULL * off
        return float(value), slope

    options = {"ftol": 1e-12, "gtol": 1e-8}
    minimum = minimize(loss, np.ones(len(logs)), jac=True, method="L-BFGS-B", options=options)
    return Combination(tuple(minimum.x.tolist()))


def _logarithms(
    posteriors: Sequence[npt.ArrayLike], counts: npt.ArrayLike
) -> tuple[Floats, Ragged]:
    """Return logarithms of the posteriors, shape (posteriors, candidates), and the lists."""
    if not len(posteriors):
        raise DecisionError("no posteriors, expected at least one")
    read = [checked_lists(posterior, counts, "probabilities") for posterior in posteriors]
    if any((p < 0).any() for p, _ in read):
        raise DecisionError("probabilities hold a negative value")
    return np.stack([np.log(np.maximum(p, _LEAST)) for p, _ in read]), read[0][1]


@dataclass(frozen=True)
class Reliability:
    """How often the first candidate is right, by how sure the posterior is of it.

    Attributes
    ----------
    edges : float64 array, shape (bins + 1,)
    confidence, accuracy : float64 arrays, shape (bins,)
        Means in each bin; NaN in an empty one.
    share : float64 array, shape (bins,)
        Share of the lists in each bin.
    lists : int64 array, shape (bins,)
        How many they are.
    """

    edges: Floats
    confidence: Floats
    accuracy: Floats
    share: Floats
    lists: Ints

    @property
    def error(self) -> float:
        """Expected calibration error: ``Σ share · |accuracy − confidence|``."""
        filled = self.share > 0
        gap = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float(self.share[filled] @ gap)

    def worst(self, at_least: int = FULL_BIN) -> int | None:
        """Return the bin with the largest error of those with ``at_least`` lists, or None."""
        filled = np.flatnonzero((self.lists >= at_least) & (self.lists > 0))
        if not len(filled):
            return None
        return int(filled[np.argmax(np.abs(self.accuracy[filled] - self.confidence[filled]))])

    def to_list(self) -> list[dict[str, float]]:
        """Return plain data for JSON, one entry for each bin that is not empty."""
        return [
            {
                "from": float(self.edges[at]),
                "to": float(self.edges[at + 1]),
                "lists": int(self.lists[at]),
                "confidence": float(self.confidence[at]),
                "accuracy": float(self.accuracy[at]),
            }
            for at in np.flatnonzero(self.lists > 0)
        ]


def reliability(
    probabilities: npt.ArrayLike,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    bins: int = BINS,
    groups: Any = None,
) -> Reliability:
    """Confidence in the first candidate against how often it is right.

    Parameters
    ----------
    probabilities, counts, labels
        Over all candidates of all lists, concatenated. Candidates that count as the same answer
        should have been merged, or the confidence is too low.
    bins : int
        Of equal width, from 0 to 1.
    groups : array, shape (lists,), optional
        The molecule of each list, so that each molecule counts once.
    """
    if bins < 1:
        raise DecisionError(f"bins is {bins}, expected at least 1")
    confidence, right = first_places(probabilities, counts, labels)
    weights = list_weights(groups, len(confidence))
    weights = weights / weights.sum()
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    share = np.bincount(bin_of, weights=weights, minlength=bins).astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean_confidence = np.bincount(bin_of, weights=weights * confidence, minlength=bins) / share
        accuracy = np.bincount(bin_of, weights=weights * right, minlength=bins) / share
    lists = np.bincount(bin_of, minlength=bins)
    return Reliability(np.linspace(0, 1, bins + 1), mean_confidence, accuracy, share, lists)


def calibration_error(
    probabilities: npt.ArrayLike,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    bins: int = BINS,
    groups: Any = None,
) -> float:
    """Expected calibration error of the first candidate; parameters as in `reliability`.

    Returns
    -------
    float
        A fraction: 0.04 is four points.

    Examples
    --------
    >>> round(calibration_error([0.75, 0.25] * 4, [2] * 4, [1, 0, 1, 0, 1, 0, 0, 1]), 6)
    0.0
    """
    return reliability(probabilities, counts, labels, bins, groups).error


def first_places(
    probabilities: npt.ArrayLike, counts: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Return the highest probability of each list, and whether it is the truth's.

    Where several candidates share the first place, the share of them that is the truth.
    """
    p, lists = checked_lists(probabilities, counts, "probabilities")
    _check_sums(p, lists)
    truth = checked_labels(labels, lists)
    highest = lists.max(p)
    first = p == lists.repeat_per_list(highest)
    tied = lists.sum(first.astype(np.float64))
    return highest, lists.sum((first & truth).astype(np.float64)) / tied


def _check_sums(p: Floats, lists: Ragged) -> None:
    sums = lists.sum(p)
    wrong = (np.abs(sums - 1) > 1e-5) | (lists.min(p) < 0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DecisionError(
            f"list {at} has probabilities that sum to {sums[at]:g} or are negative, expected 1"
        )
