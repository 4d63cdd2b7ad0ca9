"""Prediction sets: candidates that contain the truth with a stated probability."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.distribution import Floats
from mzseek.decision.lists import checked_labels, checked_lists, list_weights
from mzseek.errors import DecisionError

# Sums of the same probabilities may differ by so much, and a candidate at the threshold is in.
_ROUNDING = 1e-9


def prediction_sets(
    probabilities: npt.ArrayLike, counts: npt.ArrayLike, threshold: float
) -> npt.NDArray[np.bool_]:
    """Which candidates are in their list's prediction set.

    A candidate is in it if the candidates that are more probable hold no more than ``threshold`` of
    the probability. The first is always in; equally probable ones are in together; and since
    probability is shared out within a list, long and short lists are treated alike.

    Parameters
    ----------
    probabilities : array
        Over all candidates of all lists, concatenated.
    counts : int array
        Candidates a list.
    threshold : float
        From `fit_set_threshold`.

    Returns
    -------
    bool array
        One value a candidate.

    Examples
    --------
    >>> prediction_sets([0.6, 0.3, 0.1, 0.5, 0.5], [3, 2], threshold=0.6).tolist()
    [True, True, False, True, True]
    """
    if np.isnan(threshold):
        raise DecisionError("threshold is not a number")
    ahead = probability_ahead(probabilities, counts)
    inside: npt.NDArray[np.bool_] = (ahead <= threshold + _ROUNDING) | (ahead == 0)
    return inside


def fit_set_threshold(
    probabilities: npt.ArrayLike,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    coverage: float,
    groups: Any = None,
) -> float:
    """The threshold under which `prediction_sets` contain the truth as often as wanted.

    Split conformal prediction: if the lists to come are exchangeable with these, their sets contain
    the truth with at least the stated probability, however wrong the posterior is.

    Parameters
    ----------
    probabilities, counts, labels
        Of a validation fold, over all candidates of all lists, concatenated.
    coverage : float
        Above 0 and below 1.
    groups : array, shape (lists,), optional
        The molecule of each list. The guarantee is then for a spectrum of a new molecule, which is
        what spectra of one molecule, being alike, can support.

    Returns
    -------
    float
        Infinity where there are too few lists to promise so much.

    Examples
    --------
    >>> p, counts = [0.7, 0.2, 0.1] * 9, [3] * 9
    >>> labels = [1, 0, 0] * 6 + [0, 1, 0] * 3
    >>> [fit_set_threshold(p, counts, labels, coverage) for coverage in (0.6, 0.8)]
    [0.0, 0.7]
    """
    if not 0 < coverage < 1:
        raise DecisionError(f"coverage is {coverage:g}, expected above 0 and below 1")
    _, lengths, starts = checked_lists(probabilities, counts, "probabilities")
    truth = checked_labels(labels, lengths, starts)
    ahead = np.where(truth, probability_ahead(probabilities, counts), np.inf)
    needed = np.minimum.reduceat(ahead, starts)
    weights = list_weights(groups, len(lengths))
    # The list to come is one group more, at infinity: hence the + 1.
    order = np.argsort(needed, kind="stable")
    reached = np.cumsum(weights[order]) / (weights.sum() + 1)
    enough = reached >= coverage - 1e-12
    return float(needed[order][np.argmax(enough)]) if enough.any() else float("inf")


def probability_ahead(probabilities: npt.ArrayLike, counts: npt.ArrayLike) -> Floats:
    """For each candidate, the probability of those that are more probable in its list."""
    p, lengths, starts = checked_lists(probabilities, counts, "probabilities")
    ahead = np.empty(len(p))
    for start, count in zip(starts, lengths, strict=True):  # one sum a list: no rounding crosses
        here = p[start : start + count]
        order = np.argsort(-here, kind="stable")
        ranked = here[order]
        before = np.concatenate([[0.0], np.cumsum(ranked)[:-1]])
        # Equally probable ones have the same ahead of them: that of the first of them.
        first = np.searchsorted(-ranked, -ranked, side="left")
        ahead[start + order] = before[first]
    return ahead
