"""Packed fingerprints laid out for counting common bits: nearest neighbours, and mining.

Molecules stand in the order of the store. Blocks of 8,192 of them hold word 0 of all, then word 1
of all, and so on: counting runs over contiguous memory, and words in which a query has no bit are
not read at all. With a bits in the query and b in a molecule, Tanimoto is at most
min(a, b) / max(a, b): blocks whose counts cannot qualify are skipped; light and heavy molecules,
which are in blocks of their own, have few bits and many.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from mzseek.errors import DatabaseError
from mzseek.similarity import tanimoto_of
from mzseek.work import Progress

BLOCK = 8_192
WORDS, COUNTS = "nearest.words.npy", "nearest.counts.npy"
FILES = (WORDS, COUNTS)
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def build_index(molecules: Path, folder: Path, progress: Progress) -> None:
    """Write the index of a Parquet file of molecules, a block at a time.

    Parameters
    ----------
    molecules : Path
        With the columns ``bits`` and ``fingerprint``.
    folder : Path
        Where the two files go.
    progress : callable of (stage, done, total)
    """
    file = pq.ParquetFile(molecules)
    total = file.metadata.num_rows
    width = file.schema_arrow.field("fingerprint").type.byte_width
    np.save(folder / COUNTS, file.read(["bits"])["bits"].to_numpy().astype(np.uint16))
    shape = (-(-total // BLOCK), width // 8, BLOCK)
    done = 0
    with (folder / WORDS).open("wb") as sink:
        header = {"descr": "<u8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(sink, header)
        for rows in _of_blocks(file, width):
            block = np.zeros(shape[1:], "<u8")
            block[:, : len(rows)] = rows.T
            sink.write(block.tobytes())
            done += len(rows)
            progress("indexing", done, total)


def _of_blocks(file: pq.ParquetFile, width: int) -> Iterator[Words]:
    """Fingerprints as words, a block's rows at a time: batches may end with row groups."""
    waiting = np.empty((0, width // 8), "<u8")
    for batch in file.iter_batches(BLOCK, columns=["fingerprint"]):
        waiting = np.concatenate([waiting, as_words(batch.column(0), width)])
        while len(waiting) >= BLOCK:
            yield waiting[:BLOCK]
            waiting = waiting[BLOCK:]
    if len(waiting):
        yield waiting


def as_words(column: Any, width: int) -> Words:
    """A column of fixed size as words, shape (rows, width / 8)."""
    buffer = np.frombuffer(column.buffers()[1], np.uint8)
    start = column.offset * width
    packed = buffer[start : start + len(column) * width]
    return packed.view("<u8").reshape(-1, width // 8)


class Nearest:
    """The index of a store, memory-mapped.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.words = np.load(folder / WORDS, mmap_mode="r")
            self.counts = np.asarray(np.load(folder / COUNTS), np.float64)
        except (OSError, ValueError) as error:
            raise DatabaseError(f"{folder}: its index of bits cannot be read ({error})") from error

    def similarities(self, queries: Words, start: int, end: int) -> Floats:
        """Tanimoto of queries with the molecules from one place to another.

        Parameters
        ----------
        queries : uint64 array, shape (queries, words)
        start, end : int

        Returns
        -------
        float64 array, shape (queries, end - start)
        """
        common = np.zeros((len(queries), end - start), np.uint16)
        used = np.flatnonzero(queries.any(axis=0))
        for block in range(start // BLOCK, -(-end // BLOCK)):
            low, high = max(start, block * BLOCK), min(end, (block + 1) * BLOCK)
            part = self.words[block, :, low - block * BLOCK : high - block * BLOCK]
            here = common[:, low - start : high - start]
            both = np.empty(here.shape, np.uint64)
            bits = np.empty(here.shape, np.uint8)
            for word in used:
                np.bitwise_and(part[word], queries[:, word, None], out=both)
                np.bitwise_count(both, out=bits)
                here += bits
        sizes = np.bitwise_count(queries).sum(axis=1, dtype=np.float64)
        return np.asarray(tanimoto_of(common.astype(float), sizes[:, None], self.counts[start:end]))

    def search(
        self, fingerprint: npt.NDArray[np.uint8], count: int, least: float = 0.0
    ) -> tuple[Ints, Floats]:
        """The places most alike, and their similarities, falling; equal ones in the store's order.

        Parameters
        ----------
        fingerprint : uint8 array
            Packed.
        count : int
            How many at the most.
        least : float
            Smallest similarity of interest.
        """
        query = np.ascontiguousarray(fingerprint).view("<u8")[None]
        places, values = np.empty(0, np.int64), np.empty(0)
        for block, reach in self._by_promise(int(np.bitwise_count(query).sum())):
            needed = max(least, values[-1] if len(values) == count else 0.0)
            if reach < needed:
                break
            start = block * BLOCK
            found = self.similarities(query, start, min(start + BLOCK, len(self.counts)))[0]
            fits = np.flatnonzero(found >= needed)
            places = np.concatenate([places, fits + start])
            values = np.concatenate([values, found[fits]])
            order = np.lexsort((places, -values))[:count]
            places, values = places[order], values[order]
        return places, values

    def _by_promise(self, size: int) -> Iterator[tuple[int, float]]:
        """Blocks, the most promising first, with the highest similarity that each can have."""
        if not len(self.counts):
            return
        starts = np.arange(0, len(self.counts), BLOCK)
        nearest = np.clip(
            size, np.minimum.reduceat(self.counts, starts), np.maximum.reduceat(self.counts, starts)
        )
        reach = tanimoto_of(np.minimum(nearest, size), np.full(len(nearest), float(size)), nearest)
        for block in np.argsort(-reach, kind="stable"):
            yield int(block), float(reach[block])
