"""Two posteriors over the same candidates as one: a prior and evidence, each with its weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.decision.confidence.lists import (
    Floats,
    checked_labels,
    checked_lists,
    list_weights,
)
from mzseek.errors import DecisionError
from mzseek.ragged import Ragged

# What a probability is at least: the logarithm of nothing would outweigh everything.
_LEAST = 1e-12
# Holds weights where data say nothing (equal posteriors, or lists of one), and is too small to be
# seen where they do: in nats, for a weight that is off one by one.
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
    """The weights under which the truth is most probable.

    Parameters
    ----------
    posteriors, counts
        As in `Combination.posterior`; of molecules that did not make them.
    labels : bool array
        Every candidate that is identical to the truth; at least one a list.
    groups : array, shape (lists,), optional
        The molecule of each list: each molecule then counts once.

    Returns
    -------
    Combination

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
        given_truth = np.where(truth, p, 0) / lists.spread(of_truth)
        off = weights - 1
        value = -share @ np.log(of_truth) + _PULL * off @ off
        return float(value), logs @ (lists.spread(share) * (p - given_truth)) + 2 * _PULL * off

    found = minimize(loss, np.ones(len(logs)), jac=True, method="L-BFGS-B",
                     options={"ftol": 1e-12, "gtol": 1e-8})  # fmt: skip
    return Combination(tuple(float(weight) for weight in found.x))


def _logarithms(
    posteriors: Sequence[npt.ArrayLike], counts: npt.ArrayLike
) -> tuple[Floats, Ragged]:
    """Logarithms of the posteriors, shape (posteriors, candidates), and the lists."""
    if not len(posteriors):
        raise DecisionError("no posteriors, expected at least one")
    read = [checked_lists(each, counts, "probabilities") for each in posteriors]
    if any((p < 0).any() for p, _ in read):
        raise DecisionError("probabilities hold a negative value")
    return np.stack([np.log(np.maximum(p, _LEAST)) for p, _ in read]), read[0][1]


def _softmax(values: Floats, lists: Ragged) -> Floats:
    scaled = np.exp(values - lists.spread(lists.max(values)))
    return np.asarray(scaled / lists.spread(lists.sum(scaled)))
