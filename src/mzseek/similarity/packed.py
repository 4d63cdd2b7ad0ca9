"""Tanimoto of fingerprints that are packed, 64 bits a word: all rows with all others."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.compiled import compiled, is_plain

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
WORD = 64


def pack_words(rows: csr_array) -> Words:
    """0/1 rows to words, shape (rows, ⌈bits / 64⌉), the first bit lowest.

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
    """Words back to 0/1 rows of so many bits."""
    flags = np.unpackbits(packed.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    row, bit = np.nonzero(flags[:, :bits])
    starts = np.searchsorted(row, np.arange(len(packed) + 1))
    ones = np.ones(len(bit), np.int32)
    return csr_array((ones, bit.astype(np.int32), starts), shape=(len(packed), bits))


def packed_tanimoto(rows: Words, others: Words) -> npt.NDArray[np.float32]:
    """Tanimoto similarities, shape (rows, others); two empty fingerprints are equal.

    Examples
    --------
    >>> words = pack_words(csr_array(np.array([[1, 1, 0], [0, 1, 1]])))
    >>> packed_tanimoto(words, words).round(2).tolist()
    [[1.0, 0.33000001311302185], [0.33000001311302185, 1.0]]
    """
    found = np.empty((len(rows), len(others)), np.float32)
    fill = _fill_by_rows if is_plain() else _fill
    fill(rows, others, _sizes(rows), _sizes(others), found)
    return found


def _sizes(rows: Words) -> Ints:
    return np.asarray(np.bitwise_count(rows).sum(1), np.int64)


def _fill_by_rows(
    rows: Words, others: Words, row_bits: Ints, other_bits: Ints, found: npt.NDArray[np.float32]
) -> None:
    """As `_fill`, by numpy: three loops of Python's own would take minutes."""
    for row, bits in enumerate(row_bits.tolist()):
        common = np.bitwise_count(rows[row] & others).sum(1, dtype=np.int64)
        either = bits + other_bits - common
        found[row] = np.where(either > 0, common / np.maximum(either, 1), 1.0)


@compiled
def _fill(
    rows: Words, others: Words, row_bits: Ints, other_bits: Ints, found: npt.NDArray[np.float32]
) -> None:
    for row in range(len(rows)):
        for other in range(len(others)):
            common = np.int64(0)
            for word in range(rows.shape[1]):
                common += bit_count(rows[row, word] & others[other, word])
            either = row_bits[row] + other_bits[other] - common
            found[row, other] = common / either if either > 0 else 1.0


@compiled
def bit_count(word: np.uint64) -> np.int64:
    """Bits that are set, by halves: compilers know this form, and put one instruction for it."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
