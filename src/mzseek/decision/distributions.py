"""Distributions over fingerprints, and expected utilities under them."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from mzseek.core.errors import DecisionError, SimilarityError
from mzseek.core.ragged import gather_indices, pointers
from mzseek.decision.utilities import utility_named
from mzseek.similarity import checked_rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_SUM_TOLERANCE = 1e-6
_FEW_ROWS = 8


@dataclass(frozen=True)
class Distribution:
    """A distribution over fingerprints: distinct rows, none twice.

    Made by `distribution`. Rows that are equal are one outcome, for no utility can tell them
    apart; their probabilities are summed.

    Attributes
    ----------
    width : int
        Bits of a fingerprint, m in the paper.
    indptr, indices : int64 arrays
        The set bits of each distinct row, rising.
    probabilities : float64 array, shape (distinct rows,)
    rows : int64 array, shape (distinct rows,)
        The most probable of the given rows that are equal (the first of those).
    """

    width: int
    indptr: Ints
    indices: Ints
    probabilities: Floats
    rows: Ints

    def __len__(self) -> int:
        return len(self.probabilities)

    @cached_property
    def sizes(self) -> Floats:
        """Bits that each row has."""
        return np.diff(self.indptr).astype(np.float64)

    @cached_property
    def row_of_entry(self) -> Ints:
        """The row that each set bit is in."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @cached_property
    def marginals(self) -> Floats:
        """Probability of each bit, shape (width,)."""
        return self.weighted_bits(self.probabilities)

    @cached_property
    def probability_of_zero(self) -> float:
        """Probability of the fingerprint without bits."""
        return float(self.probabilities[self.sizes == 0].sum())

    @cached_property
    def overlaps(self) -> Floats:
        """Bits that each pair of rows has in common, shape (rows, rows)."""
        # A bit that many rows have is cheap in a dense product, one that few have in a sparse one.
        rows_with = np.bincount(self.indices, minlength=self.width)
        dense = self.dense_bits(np.flatnonzero(rows_with > _FEW_ROWS))
        common = (dense @ dense.T).astype(np.float64)  # counts are exact in float32
        is_rare = rows_with[self.indices] <= _FEW_ROWS
        indptr = pointers(is_rare)[self.indptr]
        indices = self.indices[is_rare]
        ones = np.ones(len(indices), np.float32)
        rare = csr_array((ones, indices, indptr), shape=(len(self), self.width))
        return np.asarray(common + (rare @ rare.T).toarray())

    @cached_property
    def used(self) -> npt.NDArray[np.bool_]:
        """Bits that some row has."""
        used: npt.NDArray[np.bool_] = np.bincount(self.indices, minlength=self.width) > 0
        return used

    @cached_property
    def by_size(self) -> tuple[Floats, Floats]:
        """The sizes there are, rising, and the probability of each."""
        sizes, size_index = np.unique(self.sizes, return_inverse=True)
        return sizes, np.bincount(size_index, weights=self.probabilities).astype(np.float64)

    def weighted_bits(self, weights: Floats) -> Floats:
        """Sum over the rows that have a bit of a weight of each row, shape (width,)."""
        return np.bincount(
            self.indices, weights=weights[self.row_of_entry], minlength=self.width
        ).astype(np.float64)

    def sums_over_bits(self, values: Floats) -> Floats:
        """Sum over the bits that a row has of a value of each bit, shape (rows,)."""
        return np.bincount(
            self.row_of_entry, weights=values[self.indices], minlength=len(self)
        ).astype(np.float64)

    def dense_bits(self, columns: Ints) -> npt.NDArray[np.float32]:
        """Return the rows with these bits alone, shape (rows, columns)."""
        column_of = np.full(self.width, -1)
        column_of[columns] = np.arange(len(columns))
        dense = np.zeros((len(self), len(columns)), np.float32)
        at = column_of[self.indices]
        dense[self.row_of_entry[at >= 0], at[at >= 0]] = 1
        return dense

    def bits_of(self, row: int) -> npt.NDArray[np.uint8]:
        """Return one row as a 0/1 array."""
        bits = np.zeros(self.width, np.uint8)
        bits[self.indices[self.indptr[row] : self.indptr[row + 1]]] = 1
        return bits

    def place_of(self, bits: npt.NDArray[np.uint8]) -> int | None:
        """Return which distinct row has just these bits."""
        size = int(bits.sum())
        same_size = np.flatnonzero(self.sizes == size)
        if not len(same_size):
            return None
        common = self.sums_over_bits(bits.astype(np.float64))[same_size]
        equal = same_size[common == size]
        return int(equal[0]) if len(equal) else None


def distribution(fingerprints: Any, probabilities: npt.ArrayLike) -> Distribution:
    """Check candidates and their probabilities, and merge rows that are equal.

    Parameters
    ----------
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
    probabilities : array, shape (candidates,)
        Not negative, summing to 1.

    Raises
    ------
    DecisionError
        There is no candidate, a value is neither 0 nor 1, or the probabilities are none.

    Examples
    --------
    >>> merged = distribution([[1, 0], [0, 1], [1, 0]], [0.2, 0.5, 0.3])
    >>> merged.probabilities.tolist(), merged.rows.tolist()
    ([0.5, 0.5], [2, 1])
    """
    indptr, indices, width = binary_rows(fingerprints)
    p = checked_probabilities(probabilities, len(indptr) - 1)
    return merged(indptr, indices, width, p)


def merged(indptr: Ints, indices: Ints, width: int, p: Floats) -> Distribution:
    """`distribution` of rows that are known to be well: bits rising in each, probabilities 1."""
    count = len(p)
    first, group = distinct(row_keys(indptr, indices, width))
    if len(first) == count:
        return Distribution(width, indptr, indices, p, np.arange(count))
    _check_equal(indptr, indices, first[group])
    summed = np.minimum(np.bincount(group, weights=p), 1.0)  # a sum may round to just above 1
    best = np.lexsort((np.arange(count), -p, group))
    rows = best[np.r_[True, np.diff(group[best]) > 0]]
    ends, take = gather_indices(indptr, first)
    return Distribution(width, ends, indices[take], summed, rows)


def distinct(keys: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Index of the first of each distinct key, rising, and which of these each key is."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.sort(first), rank[group]


def binary_rows(fingerprints: Any) -> tuple[Ints, Ints, int]:
    """Set bits of 0/1 rows, rising in each row, and the width."""
    try:
        matrix = checked_rows(fingerprints, "fingerprints")
    except SimilarityError as error:
        raise DecisionError(str(error)) from None
    except ValueError:
        raise DecisionError("fingerprints are rows of different lengths") from None
    if matrix.shape[0] == 0:
        raise DecisionError("no candidates, expected at least one fingerprint")
    if not issparse(matrix):
        wrong = (matrix != 0) & (matrix != 1)
        if wrong.any():
            raise DecisionError(f"fingerprints hold {matrix[wrong][0]}, expected 0 or 1")
        matrix = csr_array(matrix != 0)
    if not matrix.has_canonical_format or (len(matrix.data) and (matrix.data != 1).any()):
        matrix = _tidied(matrix)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.shape[1]


def checked_probabilities(probabilities: npt.ArrayLike, count: int) -> Floats:
    """Check the probabilities of ``count`` candidates and return them."""
    try:
        p = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise DecisionError("probabilities are no numbers") from None
    if p.shape != (count,):
        raise DecisionError(f"probabilities have shape {p.shape}, expected ({count},)")
    if not np.isfinite(p).all():
        raise DecisionError("probabilities hold a value that is not finite")
    if (p < 0).any():
        raise DecisionError(f"probability {p.min():g} is negative")
    total = float(p.sum())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise DecisionError(f"probabilities sum to {total:g}, expected 1")
    return p / total


def _tidied(matrix: csr_array) -> csr_array:
    matrix = csr_array(matrix, copy=True)
    if matrix.dtype != bool:  # a flag given twice is set; small integers would overflow
        matrix = matrix.astype(np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if (matrix.data != 1).any():
        value = matrix.data[matrix.data != 1][0]
        raise DecisionError(f"fingerprints hold {value:g}, expected 0 or 1")
    return matrix


def row_keys(indptr: Ints, indices: Ints, width: int) -> npt.NDArray[np.uint64]:
    """Return a number for each row, the same for equal rows: a sum of numbers of its bits."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_bit_numbers(width)[indices])])
    keys: npt.NDArray[np.uint64] = sums[indptr[1:]] - sums[indptr[:-1]]  # wraps around, rightly
    return keys


@cache
def _bit_numbers(width: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(width).integers(2**64, size=width, dtype=np.uint64)


def _check_equal(indptr: Ints, indices: Ints, twin: Ints) -> None:
    """Make sure that rows of one key are equal: two of 2^64 numbers could meet by chance."""
    for row in np.flatnonzero(twin != np.arange(len(twin))):
        mine = indices[indptr[row] : indptr[row + 1]]
        other = indices[indptr[twin[row]] : indptr[twin[row] + 1]]
        if not np.array_equal(mine, other):  # pragma: no cover - one in 10^19 pairs
            raise DecisionError("two different fingerprints have the same key; reorder the bits")


def expected_utility(
    utility: str, prediction: Any, fingerprints: Any, probabilities: npt.ArrayLike
) -> float:
    """Expected utility of a prediction: ``Σ U(prediction, y) p(y)``.

    Parameters
    ----------
    utility : str
        "hit", "bits", "tanimoto", "cosine" or "f1".
    prediction : 0/1 array or CSR of one row, shape (bits,)
        Any fingerprint, a candidate or not.
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
    probabilities : array, shape (candidates,)

    Examples
    --------
    >>> candidates = [[1, 1, 0], [0, 1, 1]]
    >>> round(expected_utility("tanimoto", [0, 1, 0], candidates, [0.5, 0.5]), 3)
    0.5
    """
    candidates = distribution(fingerprints, probabilities)
    return expected(utility, checked_prediction(prediction, candidates.width), candidates)


def expected(utility: str, bits: npt.NDArray[np.uint8], candidates: Distribution) -> float:
    """`expected_utility` of a 0/1 array under a checked distribution."""
    common = candidates.sums_over_bits(bits.astype(np.float64))
    values = utility_named(utility).rules.of(
        common, float(bits.sum()), candidates.sizes, candidates.width
    )
    return float(values @ candidates.probabilities)


def expected_of_candidates(utility: str, candidates: Distribution) -> Floats:
    """Expected utility of deciding for each of the distinct candidates."""
    rules = utility_named(utility).rules
    if rules.of_candidates is not None:
        return rules.of_candidates(candidates)
    p, sizes = candidates.probabilities, candidates.sizes
    utilities = rules.of(candidates.overlaps, sizes[:, None], sizes[None, :], candidates.width)
    # Not `@`: the order in which a matrix product adds depends on the number of threads.
    return np.asarray(np.einsum("ij,j->i", utilities, p))


def checked_prediction(prediction: Any, width: int) -> npt.NDArray[np.uint8]:
    """Return a prediction as a 0/1 array of the right length."""
    _, indices, own_width = binary_rows(prediction)
    rows = np.shape(prediction)[0] if np.ndim(prediction) == 2 else 1
    if own_width != width or rows != 1:
        raise DecisionError(
            f"prediction has shape {np.shape(prediction)}, expected one row of {width} bits"
        )
    bits = np.zeros(width, np.uint8)
    bits[indices] = 1
    return bits
