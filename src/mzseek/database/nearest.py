"""Packed fingerprints laid out for counting common bits: nearest neighbours, and mining.

Molecules stand in the order of the store. Blocks of 65,536 of them hold word 0 of all, then word 1
of all, and so on: counting runs over contiguous memory, and words in which a query has no bit are
not read at all. With a bits in the query and b in a molecule, Tanimoto is at most
min(a, b) / max(a, b): blocks whose counts cannot qualify are skipped; light and heavy molecules,
which are in blocks of their own, have few bits and many.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from mzseek.core.errors import DatabaseError
from mzseek.io.arrays import check_range, load_array, save_array
from mzseek.parallel import Progress
from mzseek.similarity import tanimoto_of

BLOCK = 65_536
_SMALL = 2_048  # comparisons that are made in one go
WORDS, COUNTS = "nearest.words.npy", "nearest.counts.npy"
FILES = (WORDS, COUNTS)
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def build_index(molecules: Path, folder: Path, progress: Progress) -> None:
    """Write the index of a Parquet file of molecules into a folder, a block at a time.

    The file has the columns ``bits`` and ``fingerprint``.
    """
    file = pq.ParquetFile(molecules)
    total = file.metadata.num_rows
    width = file.schema_arrow.field("fingerprint").type.byte_width
    save_array(folder / COUNTS, file.read(["bits"])["bits"].to_numpy().astype(np.uint16))
    size = min(BLOCK, max(total, 1))  # a small store is one block of its own size
    shape = (-(-total // size), width // 8, size)
    done = 0
    with (folder / WORDS).open("wb") as sink:
        header = {"descr": "<u8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(sink, header)
        for rows in _of_blocks(file, width, size):
            block = np.zeros(shape[1:], "<u8")
            block[:, : len(rows)] = rows.T
            sink.write(block.tobytes())
            done += len(rows)
            progress("indexing", done, total)


def _of_blocks(file: pq.ParquetFile, width: int, size: int) -> Iterator[Words]:
    """Yield fingerprints as words, a block at a time: batches may end with row groups."""
    waiting: list[Words] = []
    for batch in file.iter_batches(8_192, columns=["fingerprint"]):
        waiting.append(as_words(batch.column(0), width))
        if sum(map(len, waiting)) >= size:
            rows = np.concatenate(waiting)
            for start in range(0, len(rows) - size + 1, size):
                yield rows[start : start + size]
            waiting = [rows[len(rows) // size * size :]]
    if waiting and sum(map(len, waiting)):
        yield np.concatenate(waiting)


def as_words(column: Any, width: int) -> Words:
    """View a column of fixed size as words, shape (rows, width / 8)."""
    buffer = np.frombuffer(column.buffers()[1], np.uint8)
    start = column.offset * width
    packed = buffer[start : start + len(column) * width]
    return packed.view("<u8").reshape(-1, width // 8)


def _add_up(part: Words, queries: Words, used: Ints, common: npt.NDArray[Any]) -> None:
    """Count common bits word by word, in arrays that are allocated once."""
    both = np.empty(common.shape, np.uint64)
    bits = np.empty(common.shape, np.uint8)
    for word in used:
        np.bitwise_and(part[word], queries[:, word, None], out=both)
        np.bitwise_count(both, out=bits)
        common += bits


class Nearest:
    """The index of a store, memory-mapped.

    Parameters
    ----------
    folder : Path
    path : callable of a name, optional
        Paths of its files by name; those in the folder by default.
    molecules, words : int, optional
        Expected number of molecules, and of words in a fingerprint.
    """

    def __init__(
        self,
        folder: Path,
        path: Callable[[str], Path] | None = None,
        *,
        molecules: int | None = None,
        words: int | None = None,
    ) -> None:
        path = path or folder.joinpath
        again = "build it again"
        counts = load_array(
            path(COUNTS), np.uint16, [molecules], DatabaseError, again, folder / COUNTS
        )
        size = min(BLOCK, max(len(counts), 1))
        self.words = load_array(
            path(WORDS), "<u8", [-(-len(counts) // size), words, size], DatabaseError, again,
            folder / WORDS,
        )  # fmt: skip
        bits = 64 * self.words.shape[1]
        check_range(counts, 0, bits + 1, folder / COUNTS, DatabaseError, again)
        self.counts = np.asarray(counts, np.float64)
        self.size = size

    def similarities(self, queries: Words, start: int, end: int) -> Floats:
        """Return Tanimoto of queries (uint64, shape (queries, words)) with rows from start to end.

        The result is float64, shape (queries, end - start).
        """
        sizes = np.bitwise_count(queries).sum(axis=1, dtype=np.float64)
        counter = np.uint8 if sizes.max(initial=0) <= 255 else np.uint16  # small ones add up faster
        common = np.zeros((len(queries), end - start), counter)
        used = np.flatnonzero(queries.any(axis=0))
        for block in range(start // self.size, -(-end // self.size)):
            first = block * self.size
            low, high = max(start, first), min(end, first + self.size)
            part = self.words[block, :, low - first : high - first]
            here = common[:, low - start : high - start]
            if here.size <= _SMALL:
                both = part[used] & queries[:, used, None]
                np.add.reduce(np.bitwise_count(both), axis=1, out=here, dtype=counter)
            else:
                _add_up(part, queries, used, here)
        return np.asarray(
            tanimoto_of(common.astype(np.float64), sizes[:, None], self.counts[start:end])
        )

    def fingerprints(self, rows: Ints) -> Words:
        """Return packed fingerprints of molecules, shape (rows, words)."""
        return np.asarray(self.words[rows // self.size, :, rows % self.size])

    def search(
        self, fingerprint: npt.NDArray[np.uint8], count: int, least: float = 0.0
    ) -> tuple[Ints, Floats]:
        """Return rows of the most similar molecules and their falling similarities; ties by row.

        The fingerprint is packed; at most ``count`` rows, none less similar than ``least``.
        """
        if count < 1:
            raise DatabaseError(f"{count} nearest were asked for, expected at least 1")
        query = np.ascontiguousarray(fingerprint).view("<u8")[None]
        rows, values = np.empty(0, np.int64), np.empty(0)
        promising = self._by_promise(int(np.bitwise_count(query).sum()))
        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:  # counting releases the GIL
            while wave := list(islice(promising, 2 * threads)):
                needed = max(least, values[-1] if len(values) == count else 0.0)
                blocks = [block for block, reach in wave if reach >= needed]
                if not blocks:
                    break
                best = pool.map(partial(self._of_block, query, needed, count), blocks)
                block_rows, block_values = zip(*best, strict=True)
                rows = np.concatenate([rows, *block_rows])
                values = np.concatenate([values, *block_values])
                order = np.lexsort((rows, -values))[:count]
                rows, values = rows[order], values[order]
        return rows, values

    def _of_block(self, query: Words, needed: float, count: int, block: int) -> tuple[Ints, Floats]:
        """Return the rows of a block that may be among the best, and their similarities."""
        start = block * self.size
        similarity = self.similarities(query, start, min(start + self.size, len(self.counts)))[0]
        if len(similarity) > count:  # keep ties with the last: the first row of them is taken
            needed = max(needed, float(np.partition(similarity, -count)[-count]))
        fits = np.flatnonzero(similarity >= needed)
        return fits + start, similarity[fits]

    def _by_promise(self, size: int) -> Iterator[tuple[int, float]]:
        """Yield blocks and the highest similarity possible in each, the highest first."""
        if not len(self.counts):
            return
        starts = np.arange(0, len(self.counts), self.size)
        nearest = np.clip(
            size, np.minimum.reduceat(self.counts, starts), np.maximum.reduceat(self.counts, starts)
        )
        reach = tanimoto_of(np.minimum(nearest, size), np.full(len(nearest), float(size)), nearest)
        for block in np.argsort(-reach, kind="stable"):
            yield int(block), float(reach[block])
