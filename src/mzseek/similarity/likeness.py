"""Tanimoto similarities to molecules that stay the same: prepared once, asked again and again.

What two fingerprints have in common is counted in two parts. Bits that many of the molecules have
are few, and are packed in words, as in `mzseek.similarity.packed`. Bits that hardly any has are
many, and for each of these there is a list of those that have it. The counts are those that all
words together would give.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled, is_plain
from mzseek.ragged import pointers
from mzseek.similarity.packed import (
    WORD,
    Flags,
    Ints,
    Words,
    bit_count,
    pack_words,
    packed_tanimoto,
    unpack_words,
)

Floats = npt.NDArray[np.float64]
_DENSE = 8  # words of frequent bits


class Likeness:
    """Molecules that others are held against.

    Parameters
    ----------
    known : uint64 array, shape (known, words)
        Their fingerprints, packed.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> words = pack_words(csr_array(np.array([[1, 1, 0], [0, 1, 1]])))
    >>> weights, yes, no = np.ones((2, 1), np.float32), np.ones(2, bool), np.zeros(2, bool)
    >>> sums, alike = Likeness(words).to_rows(words, weights, lends=yes, itself=no)
    >>> sums[:, 0].round(2).tolist(), alike.shape
    ([[1.33, 1.11], [1.33, 1.11]], (2, 0))
    """

    def __init__(self, known: Words) -> None:
        self.known = np.ascontiguousarray(known)

    def __len__(self) -> int:
        return len(self.known)

    def to_rows(
        self,
        rows: Words,
        weights: npt.NDArray[np.float32],
        *,
        lends: Flags,
        itself: Flags,
        same: float = 1.0,
        wanted: Ints | None = None,
    ) -> tuple[Floats, Floats]:
        """Similarities of rows to the known and their squares, summed by weights; and some of them.

        Parameters
        ----------
        rows : uint64 array, shape (rows, words)
        weights : float32 array, shape (known, sums)
        lends : bool array, shape (known,)
            Whether each is counted at all.
        itself : bool array, shape (known,)
            Whether each may be the very molecule of a row: it does not count for a row that it is
            as similar to as `same`, or more.
        same : float
        wanted : int array, optional
            Places of known molecules whose similarities are returned too, with 0 for those that do
            not count.

        Returns
        -------
        float64 arrays, shapes (rows, sums, 2) and (rows, wanted)
        """
        places = np.zeros(0, np.int64) if wanted is None else np.asarray(wanted, np.int64)
        sums = np.zeros((len(rows), weights.shape[1], 2))
        alike = np.zeros((len(rows), len(places)))
        if is_plain():
            for row in range(len(rows)):
                own = packed_tanimoto(rows[row : row + 1], self.known)[0].astype(np.float64)
                own[~lends | (itself & (own >= same))] = 0
                sums[row, :, 0], sums[row, :, 1] = own @ weights, own**2 @ weights
                alike[row] = own[places]
            return sums, alike
        by_sum = np.ascontiguousarray(weights.T)
        _fill(np.ascontiguousarray(rows), *self._prepared, by_sum, lends, itself, same, places,
              sums, alike)  # fmt: skip
        return sums, alike

    @cached_property
    def marks(self) -> Words:
        """A number for each known fingerprint, as `marks` gives it."""
        return marks(self.known)

    @cached_property
    def _prepared(self) -> tuple[Ints, Words, Ints, Ints, Ints]:
        """Rank of each bit by how many have it, words of the first ones, who has the others."""
        bits = self.known.shape[1] * WORD
        flags = unpack_words(self.known, bits)
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


def marks(rows: Words) -> Words:
    """A number for each fingerprint: equal ones have the same, and others hardly ever do."""
    odd = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    return np.asarray((rows * odd).sum(1, dtype=np.uint64))


@compiled
def _fill(
    rows: Words,
    rank: Ints,
    words: Words,
    starts: Ints,
    having: Ints,
    sizes: Ints,
    weights: npt.NDArray[np.float32],
    lends: Flags,
    itself: Flags,
    same: float,
    wanted: Ints,
    sums: Floats,
    alike: Floats,
) -> None:
    own, common = np.zeros(len(sizes)), np.zeros(len(sizes), np.int64)
    for row in range(len(rows)):
        size = _count_common(rows[row], rank, words, starts, having, common)
        for other in range(len(sizes)):
            either = size + sizes[other] - common[other]
            value = common[other] / either if either > 0 else 1.0
            own[other] = 0.0 if (itself[other] and value >= same) or not lends[other] else value
        for place in range(len(weights)):
            _add_up(own, weights[place], sums[row, place])
        for place in range(len(wanted)):
            alike[row, place] = own[wanted[place]]


@compiled
def _count_common(
    row: Words, rank: Ints, words: Words, starts: Ints, having: Ints, common: Ints
) -> np.int64:
    """Bits that a row has in common with each of the known, into `common`; and its own."""
    size = np.int64(0)
    common[:] = 0
    dense = np.zeros(len(words), np.uint64)
    for word in range(len(row)):
        left, bit = row[word], word * 64
        while left:
            if left & np.uint64(1):
                place = rank[bit]
                size += 1
                if place < len(words) * 64:
                    dense[place // 64] |= np.uint64(1) << np.uint64(place % 64)
                else:
                    for other in range(starts[place], starts[place + 1]):
                        common[having[other]] += 1
            left >>= np.uint64(1)
            bit += 1
    for word in range(len(words)):
        for other in range(len(common)):
            common[other] += bit_count(words[word, other] & dense[word])
    return size


@compiled
def _add_up(values: Floats, weights: npt.NDArray[np.float32], sums: Floats) -> None:
    """Values and their squares by weights, summed in lanes."""
    plain, square = np.zeros(8), np.zeros(8)
    whole = len(values) // 8 * 8
    for first in range(0, whole, 8):
        for lane in range(8):
            weighted = values[first + lane] * weights[first + lane]
            plain[lane] += weighted
            square[lane] += weighted * values[first + lane]
    for place in range(whole, len(values)):
        weighted = values[place] * weights[place]
        plain[place - whole] += weighted
        square[place - whole] += weighted * values[place]
    for lane in range(8):
        sums[0] += plain[lane]
        sums[1] += square[lane]
