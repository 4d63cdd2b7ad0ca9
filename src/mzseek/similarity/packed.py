"""Tanimoto of bit-packed fingerprints: all pairs, blocks, fixed references."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.compiled import compiled, is_plain
from mzseek.core.ragged import pointers
from mzseek.similarity.rows import tanimoto_of

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
WORD = 64


def pack_words(rows: csr_array) -> Words:
    """Pack 0/1 rows into words, shape (rows, ⌈bits / 64⌉), the first bit lowest.

    Examples
    --------
    >>> pack_words(csr_array(np.array([[1, 0, 1], [0, 1, 0]]))).tolist()
    [[5], [2]]
    """
    count, bits = rows.shape
    packed = np.zeros((count, -(-bits // WORD)), np.uint64)
    row = np.repeat(np.arange(count), np.diff(rows.indptr))
    bit = rows.indices.astype(np.uint64)
    np.bitwise_or.at(packed, (row, rows.indices // WORD), np.uint64(1) << bit % np.uint64(WORD))
    return packed


def unpack_words(packed: Words, bits: int) -> csr_array:
    """Unpack words into 0/1 rows of so many bits."""
    flags = np.unpackbits(packed.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    row, bit = np.nonzero(flags[:, :bits])
    starts = np.searchsorted(row, np.arange(len(packed) + 1))
    ones = np.ones(len(bit), np.int32)
    return csr_array((ones, bit.astype(np.int32), starts), shape=(len(packed), bits))


def packed_tanimoto(rows: Words, others: Words) -> npt.NDArray[np.float32]:
    """Return Tanimoto similarities, shape (rows, others); two empty fingerprints are equal.

    Examples
    --------
    >>> words = pack_words(csr_array(np.array([[1, 1, 0], [0, 1, 1]])))
    >>> packed_tanimoto(words, words).round(2).tolist()
    [[1.0, 0.33000001311302185], [0.33000001311302185, 1.0]]
    """
    similarities = np.empty((len(rows), len(others)), np.float32)
    if is_plain():
        for row, words in enumerate(rows):
            similarities[row] = _row_tanimoto(words, others, _sizes(others))
    else:
        _fill(rows, others, _sizes(rows), _sizes(others), similarities)
    return similarities


def _sizes(rows: Words) -> Ints:
    return np.asarray(np.bitwise_count(rows).sum(1), np.int64)


def _row_tanimoto(row: Words, others: Words, other_bits: Ints) -> Floats:
    """Return similarities of one row by numpy, where loops are not compiled."""
    common = np.bitwise_count(row & others).sum(1, dtype=np.int64)
    either = np.bitwise_count(row).sum(dtype=np.int64) + other_bits - common
    return np.where(either > 0, common / np.maximum(either, 1), 1.0)


@compiled
def _fill(
    rows: Words,
    others: Words,
    row_bits: Ints,
    other_bits: Ints,
    similarities: npt.NDArray[np.float32],
) -> None:
    for row in range(len(rows)):
        for other in range(len(others)):
            common = np.int64(0)
            for word in range(rows.shape[1]):
                common += bit_count(rows[row, word] & others[other, word])
            either = row_bits[row] + other_bits[other] - common
            similarities[row, other] = common / either if either > 0 else 1.0


@compiled
def bit_count(word: np.uint64) -> np.int64:
    """Count set bits, by halves: compilers replace this form by one instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


_ROWS = 512


def tanimoto_blocks(
    rows: csr_array, others: csr_array
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Compare all rows with all others, a few hundred rows at a time.

    Two empty fingerprints are equal: their similarity is 1.

    Takes CSR of 0/1, shapes (n, bits) and (m, bits); yields the first row of each block, and the
    float32 similarities of its rows, shape (rows of the block, m).

    Examples
    --------
    >>> both = csr_array(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> [(start, block.round(2).tolist()) for start, block in tanimoto_blocks(both, both)]
    [(0, [[1.0, 0.33000001311302185], [0.33000001311302185, 1.0]])]
    """
    # Counts of bits are exact in float32, and keep the blocks at half the size of float64.
    row_bits = np.diff(rows.indptr).astype(np.float32)
    other_bits = np.diff(others.indptr).astype(np.float32)
    transposed = others.astype(np.float32).T.tocsc()
    for start in range(0, rows.shape[0], _ROWS):
        block = rows[start : start + _ROWS].astype(np.float32)
        common = (block @ transposed).toarray()
        sizes = row_bits[start : start + _ROWS, None]
        yield start, tanimoto_of(common, sizes, other_bits[None, :])


_DENSE = 8  # words of frequent bits
_LANES = 8  # partial sums, which processors add at once


class ReferenceSimilarity:
    """Reference molecules that others are compared with.

    Parameters
    ----------
    references : uint64 array, shape (references, words)
        Their fingerprints, packed.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> words = pack_words(csr_array(np.array([[1, 1, 0], [0, 1, 1]])))
    >>> weights, yes, no = np.ones((2, 1), np.float32), np.ones(2, bool), np.zeros(2, bool)
    >>> sums, selected = ReferenceSimilarity(words).to_rows(words, weights, yes, maybe_same=no)
    >>> sums[:, 0].round(2).tolist(), selected.shape
    ([[1.33, 1.11], [1.33, 1.11]], (2, 0))
    """

    def __init__(self, references: Words) -> None:
        self.references = np.ascontiguousarray(references)

    def __len__(self) -> int:
        return len(self.references)

    def to_rows(
        self,
        rows: Words,
        weights: npt.NDArray[np.float32],
        included: Flags,
        maybe_same: Flags,
        same: float = 1.0,
        selected: Ints | None = None,
    ) -> tuple[Floats, Floats]:
        """Sum the similarities of rows to the references, and their squares, by weights.

        Parameters
        ----------
        rows : uint64 array, shape (rows, words)
        weights : float32 array, shape (references, sums)
        included : bool array, shape (references,)
            Whether each is counted at all.
        maybe_same : bool array, shape (references,)
            Whether each may be the very molecule of a row: it does not count for a row that it is
            as similar to as `same`, or more.
        same : float
        selected : int array, optional
            References whose similarities are returned too, with 0 for those that do not count.

        Returns
        -------
        float64 arrays, shapes (rows, sums, 2) and (rows, selected)
        """
        selected = np.zeros(0, np.int64) if selected is None else np.asarray(selected, np.int64)
        sums = np.zeros((len(rows), weights.shape[1], 2))
        similarities = np.zeros((len(rows), len(selected)))
        if not is_plain():
            _fill_sums(
                np.ascontiguousarray(rows), *self._prepared, np.ascontiguousarray(weights.T),
                included, maybe_same, same, selected, sums, similarities,
            )  # fmt: skip
            return sums, similarities
        sizes = _sizes(self.references)
        for row, words in enumerate(rows):
            values = _row_tanimoto(words, self.references, sizes)
            values[~included | (maybe_same & (values >= same))] = 0
            for column, of_sum in enumerate(weights.T):
                weighted = values * of_sum
                sums[row, column] = _sum_in_lanes(weighted), _sum_in_lanes(weighted * values)
            similarities[row] = values[selected]
        return sums, similarities

    @cached_property
    def hashes(self) -> Words:
        """A number for each reference, as `fingerprint_hashes` gives it."""
        return fingerprint_hashes(self.references)

    @cached_property
    def _prepared(self) -> tuple[Ints, Words, Ints, Ints, Ints]:
        """Rank bits by frequency; words of the frequent ones, references that have the others."""
        bits = self.references.shape[1] * WORD
        flags = unpack_words(self.references, bits)
        frequent = np.argsort(-np.bincount(flags.indices, minlength=bits), kind="stable")
        rank = np.empty(bits, np.int64)
        rank[frequent] = np.arange(bits)
        dense = min(_DENSE * WORD, bits)
        by_rank = flags[:, frequent]
        words = pack_words(by_rank[:, :dense])
        rare = by_rank[:, dense:].tocsc()
        starts = np.concatenate([np.zeros(dense, np.int64), pointers(np.diff(rare.indptr))])
        sizes = np.asarray(np.diff(flags.indptr), np.int64)
        return rank, np.ascontiguousarray(words.T), starts, rare.indices.astype(np.int64), sizes


def fingerprint_hashes(rows: Words) -> Words:
    """Hash fingerprints: equal ones have the same number, and others hardly ever do."""
    odd = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    return np.asarray((rows * odd).sum(1, dtype=np.uint64))


@compiled
def _fill_sums(
    rows: Words, rank: Ints, words: Words, starts: Ints, references: Ints, sizes: Ints,
    weights: npt.NDArray[np.float32], included: Flags, maybe_same: Flags, same: float,
    selected: Ints, sums: Floats, similarities: Floats,
) -> None:  # fmt: skip
    values, common = np.zeros(len(sizes)), np.zeros(len(sizes), np.int64)
    for row in range(len(rows)):
        size = _count_common(rows[row], rank, words, starts, references, common)
        for other in range(len(sizes)):
            either = size + sizes[other] - common[other]
            value = common[other] / either if either > 0 else 1.0
            is_same = maybe_same[other] and value >= same
            values[other] = 0.0 if is_same or not included[other] else value
        for column in range(len(weights)):
            _add_up(values, weights[column], sums[row, column])
        for column in range(len(selected)):
            similarities[row, column] = values[selected[column]]


@compiled
def _count_common(
    row: Words, rank: Ints, words: Words, starts: Ints, references: Ints, common: Ints
) -> np.int64:
    """Count the bits of a row, and those in common with each reference, into `common`."""
    size = np.int64(0)
    common[:] = 0
    dense = np.zeros(len(words), np.uint64)
    for word in range(len(row)):
        left, bit = row[word], word * 64
        while left:
            if left & np.uint64(1):
                position = rank[bit]
                size += 1
                if position < len(words) * 64:
                    dense[position // 64] |= np.uint64(1) << np.uint64(position % 64)
                else:
                    for other in range(starts[position], starts[position + 1]):
                        common[references[other]] += 1
            left >>= np.uint64(1)
            bit += 1
    for word in range(len(words)):
        for other in range(len(common)):
            common[other] += bit_count(words[word, other] & dense[word])
    return size


def _sum_in_lanes(values: Floats) -> float:
    """Sum values in the order of `_add_up`."""
    lanes = np.zeros(-(-len(values) // _LANES) * _LANES)
    lanes[: len(values)] = values
    return float(sum(lanes.reshape(-1, _LANES).cumsum(0)[-1].tolist()))


@compiled
def _add_up(values: Floats, weights: npt.NDArray[np.float32], sums: Floats) -> None:
    """Add values and their squares by weights, in lanes."""
    plain, square = np.zeros(_LANES), np.zeros(_LANES)
    whole = len(values) // _LANES * _LANES
    for first in range(0, whole, _LANES):
        for lane in range(_LANES):
            weighted = values[first + lane] * weights[first + lane]
            plain[lane] += weighted
            square[lane] += weighted * values[first + lane]
    for index in range(whole, len(values)):
        weighted = values[index] * weights[index]
        plain[index - whole] += weighted
        square[index - whole] += weighted * values[index]
    for lane in range(_LANES):
        sums[0] += plain[lane]
        sums[1] += square[lane]
