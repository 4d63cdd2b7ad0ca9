"""Ragged lists of candidates, as 1-D arrays and counts."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.distribution import Floats, Ints
from mzseek.errors import DecisionError


def checked_lists(
    values: npt.ArrayLike, counts: npt.ArrayLike, name: str
) -> tuple[Floats, Ints, Ints]:
    """Values of candidates, counts of the lists, and where each list starts.

    Raises
    ------
    DecisionError
        A list is empty, the lengths do not fit, or a value is not finite.
    """
    try:
        flat = np.asarray(values, np.float64)
        lengths = np.asarray(counts)
    except (TypeError, ValueError):
        raise DecisionError(f"{name} are no numbers") from None
    if flat.ndim != 1 or lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise DecisionError(f"{name} and counts must be one-dimensional, counts whole numbers")
    lengths = lengths.astype(np.int64)
    if not len(lengths):
        raise DecisionError("no lists, expected at least one")
    if (lengths < 1).any():
        raise DecisionError(f"list {int(np.argmax(lengths < 1))} has no candidates")
    if lengths.sum() != len(flat):
        raise DecisionError(f"counts sum to {lengths.sum():,}, but there are {len(flat):,} {name}")
    if not np.isfinite(flat).all():
        raise DecisionError(f"{name} hold a value that is not finite")
    return flat, lengths, np.cumsum(lengths) - lengths


def checked_labels(labels: npt.ArrayLike, counts: Ints, starts: Ints) -> npt.NDArray[np.bool_]:
    """Labels of candidates, of which each list has at least one."""
    flags = np.asarray(labels)
    if flags.shape != (counts.sum(),):
        raise DecisionError(f"labels have shape {flags.shape}, expected ({counts.sum()},)")
    flags = flags.astype(bool)
    found = np.logical_or.reduceat(flags, starts)
    if not found.all():
        raise DecisionError(f"list {int(np.argmin(found))} has no labelled candidate")
    return flags


def list_weights(groups: Any, count: int) -> Floats:
    """A weight a list: its group's one, shared among the group's lists; summing to the groups."""
    if groups is None:
        return np.ones(count)
    members = np.asarray(groups)
    if members.shape != (count,):
        raise DecisionError(f"groups have shape {members.shape}, expected ({count},)")
    _, place, sizes = np.unique(members, return_inverse=True, return_counts=True)
    return 1 / sizes[place].astype(np.float64)
