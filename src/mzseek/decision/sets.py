"""Prediction sets: candidates that contain the truth with a stated probability."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.distribution import Floats, Ints
from mzseek.decision.lists import checked_labels, checked_lists, list_weights
from mzseek.errors import DecisionError

# The same probability computed twice may differ by so much, and one at the threshold is in.
_ROUNDING = 1e-9


def prediction_sets(
    probabilities: npt.ArrayLike, counts: npt.ArrayLike, threshold: float
) -> npt.NDArray[np.bool_]:
    """Which candidates are in their list's prediction set.

    A candidate is in it if its `strength` ``p √n`` is at least the threshold, and the first of a
    list is always in. Neither p alone, which in a long list is small for all, nor p n, which in a
    short list is, treats lists of different lengths alike; their mean does, and gives the smallest
    sets of the three.

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
        One value a candidate; equally probable ones of a list are in or out together.

    Examples
    --------
    >>> prediction_sets([0.6, 0.3, 0.06, 0.04, 1.0], [4, 1], threshold=0.5).tolist()
    [True, True, False, False, True]
    """
    if np.isnan(threshold):
        raise DecisionError("threshold is not a number")
    p, lengths, starts = checked_lists(probabilities, counts, "probabilities")
    first = p == np.repeat(np.maximum.reduceat(p, starts), lengths)
    inside: npt.NDArray[np.bool_] = (strength(p, lengths) >= threshold - _ROUNDING) | first
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
        0, which puts every candidate in, where there are too few lists to promise so much.

    Examples
    --------
    >>> p, counts = [0.7, 0.2, 0.1, 0.0] * 9, [4] * 9
    >>> labels = [1, 0, 0, 0] * 6 + [0, 1, 0, 0] * 3
    >>> [fit_set_threshold(p, counts, labels, coverage) for coverage in (0.6, 0.8, 0.99)]
    [1.4, 0.4, 0.0]
    """
    if not 0 < coverage < 1:
        raise DecisionError(f"coverage is {coverage:g}, expected above 0 and below 1")
    p, lengths, starts = checked_lists(probabilities, counts, "probabilities")
    truth = checked_labels(labels, lengths, starts)
    reached = np.maximum.reduceat(np.where(truth, strength(p, lengths), -np.inf), starts)
    weights = list_weights(groups, len(lengths))
    # The list to come is one group more, and the worst: hence the + 1.
    order = np.argsort(-reached, kind="stable")
    share = np.cumsum(weights[order]) / (weights.sum() + 1)
    enough = share >= coverage - 1e-12
    return float(reached[order][np.argmax(enough)]) if enough.any() else 0.0


def strength(probabilities: Floats, counts: Ints) -> Floats:
    """``p √n``: how probable a candidate is, for the length of its list."""
    return np.asarray(probabilities * np.repeat(np.sqrt(counts.astype(np.float64)), counts))
