"""Lists of candidates as decisions read them: checked, weighted, and with equal answers merged."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.errors import DecisionError
from mzseek.ragged import Ragged, Words, read_labels, read_values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WORDS = Words(DecisionError)


def checked_lists(values: npt.ArrayLike, counts: npt.ArrayLike, name: str) -> tuple[Floats, Ragged]:
    """Values of candidates, and the lists that they stand in.

    Raises
    ------
    DecisionError
        A list is empty, the lengths do not fit, or a value is not finite.
    """
    return read_values(values, counts, name, _WORDS, np.float64)


def checked_labels(labels: npt.ArrayLike, lists: Ragged) -> npt.NDArray[np.bool_]:
    """Labels of candidates, of which each list has at least one."""
    return read_labels(labels, lists, _WORDS)


def list_weights(groups: Any, count: int) -> Floats:
    """A weight a list: its group's one, shared among the group's lists; summing to the groups."""
    if groups is None:
        return np.ones(count)
    place, sizes = grouped(groups, count)
    return 1 / sizes[place].astype(np.float64)


def grouped(groups: Any, count: int) -> tuple[Ints, Ints]:
    """The group of each list, as a number in the order of names, and the lists of each group."""
    members = np.asarray(groups)
    if members.shape != (count,):
        raise DecisionError(f"groups have shape {members.shape}, expected ({count},)")
    try:
        _, place, sizes = np.unique(members, return_inverse=True, return_counts=True)
    except TypeError:
        raise DecisionError("groups hold values of several types, expected one") from None
    return place, sizes


def merge_answers(
    probabilities: Floats, counts: Ints, answers: npt.NDArray[Any], labels: npt.NDArray[np.bool_]
) -> tuple[Floats, Ints, npt.NDArray[np.bool_]]:
    """Lists in which candidates that count as the same answer are one, probabilities summed.

    Parameters
    ----------
    probabilities, labels : arrays
        Over all candidates of all lists, concatenated.
    counts : int array, shape (lists,)
    answers : array
        Equal for candidates that are the same answer, such as a number of their fingerprint.

    Returns
    -------
    probabilities, counts, labels : arrays
        Of distinct answers, in the order of the first of each.

    Examples
    --------
    >>> p, counts, labels = merge_answers(
    ...     np.array([0.2, 0.5, 0.3, 1.0]), np.array([3, 1]), np.array([7, 8, 7, 7]),
    ...     np.array([True, False, True, True]))
    >>> p.tolist(), counts.tolist(), labels.tolist()
    ([0.5, 0.5, 1.0], [2, 1], [True, False, True])
    """
    of_list = Ragged(counts).owner
    order = np.lexsort((answers, of_list))
    changed = np.diff(of_list[order]).astype(bool) | (answers[order][1:] != answers[order][:-1])
    group_of_sorted = np.cumsum(np.concatenate([[False], changed]))
    group = np.empty(len(order), np.int64)
    group[order] = group_of_sorted
    first = np.full(int(group_of_sorted[-1]) + 1, len(order))
    np.minimum.at(first, group, np.arange(len(order)))
    kept = np.sort(first)
    place = np.searchsorted(kept, first)[group]
    summed = np.bincount(place, weights=probabilities).astype(np.float64)
    return summed, np.bincount(of_list[kept], minlength=len(counts)), labels[kept]
