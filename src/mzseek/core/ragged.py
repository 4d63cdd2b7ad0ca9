"""Ragged arrays: lists of different lengths as one flat array and counts.

Scores of candidates, their labels and their probabilities come in this form.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import MzseekError

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ragged:
    """Lengths of lists whose values are concatenated; only `any` accepts empty lists.

    Examples
    --------
    >>> lists = Ragged(np.array([2, 1]))
    >>> lists.starts.tolist(), lists.list_index.tolist(), lists.sum(np.array([1, 2, 5])).tolist()
    ([0, 2], [0, 0, 1], [3, 5])
    >>> flags = np.array([True, False, False])
    >>> lists.repeat_per_list(np.array([7, 8])).tolist(), lists.any(flags).tolist()
    ([7, 7, 8], [True, False])
    """

    counts: Ints

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        """Number of values in all lists."""
        return int(self.counts.sum())

    @cached_property
    def starts(self) -> Ints:
        """Index of the first value of each list."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def list_index(self) -> Ints:
        """Index of the list that each value is in."""
        return np.repeat(np.arange(len(self)), self.counts)

    def repeat_per_list(self, of_list: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat one value per list for all values of the list."""
        return np.repeat(of_list, self.counts)

    def sum(self, values: npt.NDArray[Any], dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Sum over each list."""
        if not len(self):
            return np.zeros(0, dtype or values.dtype)
        return np.add.reduceat(values, self.starts, dtype=dtype)

    def max(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the maximum of each list."""
        return np.maximum.reduceat(values, self.starts) if len(self) else values[:0]

    def min(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the minimum of each list."""
        return np.minimum.reduceat(values, self.starts) if len(self) else values[:0]

    def any(self, flags: Flags) -> Flags:
        """Whether each list has a flag; an empty list has none."""
        before = pointers(flags)
        has_flag: Flags = before[self.starts + self.counts] > before[self.starts]
        return has_flag


def read_values(
    values: npt.ArrayLike,
    counts: npt.ArrayLike,
    name: str,
    error: type[MzseekError],
    dtype: npt.DTypeLike | None = None,
    *,
    allow_no_lists: bool = False,
) -> tuple[npt.NDArray[Any], Ragged]:
    """Check the values of lists and the lists' lengths; messages call the values ``name``.

    With ``dtype`` values are converted and must be finite. By default floats keep their type,
    whole numbers become float64, and only NaN is refused.

    Raises
    ------
    error
        A list is empty, the lengths do not fit, or a value is no number.
    """
    try:
        flat = np.asarray(values, dtype)
        lengths = np.asarray(counts)
    except (TypeError, ValueError):
        raise error(f"{name} are no numbers") from None
    is_whole = lengths.dtype.kind in "iu" or (allow_no_lists and not lengths.size)
    if flat.ndim != 1 or lengths.ndim != 1 or not is_whole:
        raise error(f"{name} and counts must be one-dimensional, counts whole numbers")
    if not len(lengths) and not allow_no_lists:
        raise error("no lists, expected at least one")
    lists = Ragged(lengths.astype(np.int64))
    empty = np.flatnonzero(lists.counts < 1)
    if len(empty):
        raise error(f"list {empty[0]} has no candidates{_and_more(empty)}")
    if lists.total != len(flat):
        raise error(f"counts sum to {lists.total:,}, but there are {len(flat):,} {name}")
    if flat.dtype.kind != "f":
        if flat.dtype.kind not in "biu" and len(flat):
            raise error(f"{name} are no numbers")
        flat = flat.astype(np.float64)
    missing = np.isnan(flat) if dtype is None else ~np.isfinite(flat)
    if missing.any():
        first = int(missing.argmax())
        at = int(lists.list_index[first])
        raise error(
            f"{name} hold a value that is not finite (list {at}, candidate "
            f"{first - int(lists.starts[at])}; {int(missing.sum()):,} in all)"
        )
    return flat, lists


def read_labels(labels: npt.ArrayLike, lists: Ragged, error: type[MzseekError]) -> Flags:
    """Check labels (0 or 1), of which each list must have at least one.

    Raises
    ------
    error
        The length does not fit, a value is neither 0 nor 1, or a list has no label.
    """
    array = np.asarray(labels)
    if array.shape != (lists.total,):
        raise error(f"labels have shape {array.shape}, expected ({lists.total},)")
    if len(array) and (array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all()):
        raise error("labels hold other values than True and False")
    flags: Flags = array.astype(bool)
    bare = np.flatnonzero(~lists.any(flags))
    if len(bare):
        raise error(f"list {bare[0]} has no labelled candidate{_and_more(bare)}")
    return flags


def _and_more(lists: npt.NDArray[np.intp]) -> str:
    return f" (as do {len(lists) - 1:,} more)" if len(lists) > 1 else ""


def pointers(counts: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Return row pointers: list i is from ``pointers[i]`` to ``pointers[i + 1]``.

    Examples
    --------
    >>> pointers([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    lengths = np.asarray(counts)
    ends = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, dtype=dtype, out=ends[1:])
    return ends


def gather(
    indptr: npt.NDArray[np.integer],
    arrays: tuple[npt.NDArray[Any], ...],
    rows: npt.NDArray[np.integer],
) -> tuple[npt.NDArray[np.int32], tuple[npt.NDArray[Any], ...]]:
    """Concatenate a few rows of ragged arrays; returns their new row pointers and the arrays.

    Slices and one copy each: for a batch's some hundred rows this beats an index array.

    Examples
    --------
    >>> ends, (values,) = gather(np.array([0, 2, 2, 5]), (np.arange(5),), np.array([2, 0]))
    >>> ends.tolist(), values.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    starts, ends = indptr[rows].tolist(), indptr[rows + 1].tolist()
    new = pointers(indptr[rows + 1] - indptr[rows], np.int32)
    slices = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    return new, tuple(
        np.concatenate([array[part] for part in slices]) if slices else array[:0]
        for array in arrays
    )


def gather_indices(
    indptr: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]
) -> tuple[Ints, Ints]:
    """Return the new row pointers of many rows and the indices of their entries.

    Examples
    --------
    >>> ends, indices = gather_indices(np.array([0, 2, 2, 5]), np.array([2, 0]))
    >>> ends.tolist(), indices.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    return ranges(indptr[rows], indptr[np.asarray(rows) + 1])


def ranges(starts: npt.NDArray[np.integer], ends: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Concatenate ranges of whole numbers; returns row pointers and the numbers.

    Examples
    --------
    >>> ends, numbers = ranges(np.array([2, 0]), np.array([5, 2]))
    >>> ends.tolist(), numbers.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    counts = np.asarray(ends, np.int64) - starts
    new = pointers(counts)
    return new, np.arange(int(new[-1])) + np.repeat(starts - new[:-1], counts)
