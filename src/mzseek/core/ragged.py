"""Ragged arrays: lists of different lengths as one flat array and counts.

Scores of candidates, their labels and their probabilities come in this form. Here it is checked,
summed up list by list, and gathered; `Words` holds how each room says what is wrong with it.
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
class Words:
    """What a room says of lists that will not do: an error, and a text for each fault.

    The texts get what they name in braces; `name` is what the values are, such as "scores".
    """

    error: type[MzseekError]
    dimensions: str = "{name} and counts must be one-dimensional, counts whole numbers"
    whole: str = "{name} and counts must be one-dimensional, counts whole numbers"
    none: str | None = "no lists, expected at least one"  # None where no lists are fine
    empty: str = "list {list} has no candidates"
    length: str = "counts sum to {total:,}, but there are {length:,} {name}"
    numbers: str = "{name} are no numbers"
    missing: str = "{name} hold a value that is not finite"
    label_length: str = "labels have shape {shape}, expected ({total},)"
    label_values: str | None = None  # None where any values are taken as flags
    unlabelled: str = "list {list} has no labelled candidate"

    def refuse(self, fault: str, **facts: Any) -> MzseekError:
        """The error for a fault, worded."""
        text: str = getattr(self, fault)
        return self.error(text.format(**facts))


@dataclass(frozen=True)
class Ragged:
    """The lengths of lists whose values stand one after the other; none but `any` takes empty ones.

    Attributes
    ----------
    counts : int64 array, shape (lists,)
        Values in each list.

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
        """Values in all lists."""
        return int(self.counts.sum())

    @cached_property
    def starts(self) -> Ints:
        """Where each list begins."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def list_index(self) -> Ints:
        """The list that each value is in."""
        return np.repeat(np.arange(len(self)), self.counts)

    def repeat_per_list(self, of_list: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A value of each list, given to all values in it."""
        return np.repeat(of_list, self.counts)

    def sum(self, values: npt.NDArray[Any], dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Sum over each list."""
        if not len(self):
            return np.zeros(0, dtype or values.dtype)
        return np.add.reduceat(values, self.starts, dtype=dtype)

    def max(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Largest of each list."""
        return np.maximum.reduceat(values, self.starts) if len(self) else values[:0]

    def min(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Smallest of each list."""
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
    words: Words,
    dtype: npt.DTypeLike | None = None,
) -> tuple[npt.NDArray[Any], Ragged]:
    """Values of lists, and the lists' lengths, checked.

    Parameters
    ----------
    values, counts : array
    name : str
        What the values are, for messages.
    words : Words
    dtype : numpy type, optional
        What the values become, and must then be finite; by default floats stay as they are, whole
        numbers become float64, and only NaN is refused.

    Raises
    ------
    MzseekError
        A list is empty, the lengths do not fit, or a value is no number: of the type, and in the
        words, that the room has chosen.
    """
    try:
        flat = np.asarray(values, dtype)
        lengths = np.asarray(counts)
    except (TypeError, ValueError):
        raise words.refuse("numbers", name=name, dtype="object") from None
    for which, array in ((name, flat), ("counts", lengths)):
        if array.ndim != 1:
            raise words.refuse("dimensions", name=name, which=which, dimensions=array.ndim)
    lists = _read_counts(lengths, name, words)
    if lists.total != len(flat):
        raise words.refuse("length", name=name, total=lists.total, length=len(flat))
    if flat.dtype.kind != "f":
        if flat.dtype.kind not in "biu" and len(flat):
            raise words.refuse("numbers", name=name, dtype=flat.dtype)
        flat = flat.astype(np.float64)
    missing = np.isnan(flat) if dtype is None else ~np.isfinite(flat)
    if missing.any():
        first = int(missing.argmax())
        owner = int(np.searchsorted(np.cumsum(lists.counts), first, side="right"))
        place = first - int(lists.starts[owner])
        raise words.refuse("missing", name=name, list=owner, place=place, count=int(missing.sum()))
    return flat, lists


def read_labels(labels: npt.ArrayLike, lists: Ragged, words: Words) -> Flags:
    """Labels of values, of which each list has at least one, checked.

    Raises
    ------
    MzseekError
        The length does not fit, or a list has no label.
    """
    given = np.asarray(labels)
    if given.shape != (lists.total,):
        shape, length = given.shape, len(given) if given.ndim else 0
        raise words.refuse("label_length", shape=shape, length=length, total=lists.total)
    countable = given.dtype.kind in "biuf" or not len(given)
    flags = given.astype(bool) if countable or words.label_values is None else None
    if words.label_values is not None and (flags is None or not np.array_equal(flags, given)):
        raise words.refuse("label_values")
    assert flags is not None
    bare = np.flatnonzero(~lists.any(flags))
    if len(bare):
        raise words.refuse("unlabelled", list=bare[0], more=_more(bare))
    return flags


def _read_counts(counts: npt.NDArray[np.generic], name: str, words: Words) -> Ragged:
    if counts.dtype.kind not in "iu" and (len(counts) or words.none is not None):
        raise words.refuse("whole", name=name, dtype=counts.dtype)
    if not len(counts) and words.none is not None:
        raise words.refuse("none")
    whole = counts.astype(np.int64)
    short = np.flatnonzero(whole < 1)
    if len(short):
        raise words.refuse("empty", list=short[0], count=whole[short[0]], more=_more(short))
    return Ragged(whole)


def _more(lists: npt.NDArray[np.intp]) -> str:
    return f" (as do {len(lists) - 1:,} more)" if len(lists) > 1 else ""


def pointers(counts: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Row pointers of lists of these lengths: list i is from ``pointers[i]`` to ``[i + 1]``.

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
    """A few rows of ragged arrays, strung together, with their new row pointers.

    Slices and one copy each: for a batch's some hundred rows this beats an index array.

    Examples
    --------
    >>> ends, (values,) = gather(np.array([0, 2, 2, 5]), (np.arange(5),), np.array([2, 0]))
    >>> ends.tolist(), values.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    starts, ends = indptr[rows].tolist(), indptr[rows + 1].tolist()
    new = pointers(indptr[rows + 1] - indptr[rows], np.int32)
    spans = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    return new, tuple(
        np.concatenate([array[span] for span in spans]) if spans else array[:0] for array in arrays
    )


def gather_indices(
    indptr: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]
) -> tuple[Ints, Ints]:
    """The new pointers of many rows, and where their entries are: `gather` as an index.

    Examples
    --------
    >>> ends, where = gather_indices(np.array([0, 2, 2, 5]), np.array([2, 0]))
    >>> ends.tolist(), where.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    return ranges(indptr[rows], indptr[np.asarray(rows) + 1])


def ranges(starts: npt.NDArray[np.integer], ends: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
    """The pointers of lists that are stretches of whole numbers, and the numbers.

    Examples
    --------
    >>> ends, numbers = ranges(np.array([2, 0]), np.array([5, 2]))
    >>> ends.tolist(), numbers.tolist()
    ([0, 3, 5], [2, 3, 4, 0, 1])
    """
    counts = np.asarray(ends, np.int64) - starts
    new = pointers(counts)
    return new, np.arange(int(new[-1])) + np.repeat(starts - new[:-1], counts)
