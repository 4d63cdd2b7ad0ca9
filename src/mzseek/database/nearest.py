"""Nearest by Tanimoto: packed fingerprints in the order of their bit counts.

Blocks of 8,192 molecules hold word 0 of all, then word 1 of all, and so on: counting common bits
then runs over contiguous memory, and words in which the query has no bit are not read at all. With
a bits in the query and b in a molecule, Tanimoto is at most min(a, b) / max(a, b): blocks whose
counts cannot qualify are skipped.
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
WORDS, ROWS, COUNTS = "nearest.words.npy", "nearest.rows.npy", "nearest.counts.npy"
FILES = (WORDS, ROWS, COUNTS)
Words = npt.NDArray[np.uint64]


def build_index(molecules: Path, folder: Path, progress: Progress) -> None:
    """Write the index of a Parquet file of molecules, with bounded memory.

    Parameters
    ----------
    molecules : Path
        With the columns ``bits`` and ``fingerprint``.
    folder : Path
        Where the three files go.
    progress : callable of (stage, done, total)
    """
    file = pq.ParquetFile(molecules)
    counts = file.read(["bits"])["bits"].to_numpy().astype(np.uint16)
    order = np.argsort(counts, kind="stable")
    np.save(folder / ROWS, order.astype(np.uint32))
    np.save(folder / COUNTS, counts[order])
    width = file.schema_arrow.field("fingerprint").type.byte_width
    blocks = -(-len(counts) // BLOCK)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    sorted_rows = folder / "nearest.sorted.partial"
    try:
        _write_sorted(file, sorted_rows, place, width, progress)
        shape = (blocks, width // 8, BLOCK)
        with (folder / WORDS).open("wb") as sink, sorted_rows.open("rb") as source:
            header = {"descr": "<u8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(sink, header)
            for _ in range(blocks):
                rows = np.frombuffer(source.read(BLOCK * width), "<u8").reshape(-1, width // 8)
                block = np.zeros(shape[1:], "<u8")
                block[:, : len(rows)] = rows.T
                sink.write(block.tobytes())
    finally:
        sorted_rows.unlink(missing_ok=True)


def _write_sorted(
    file: pq.ParquetFile,
    path: Path,
    place: npt.NDArray[np.int64],
    width: int,
    progress: Progress,
) -> None:
    """Fingerprints in the order of their places, written run by run."""
    total, start = len(place), 0
    with path.open("wb") as sink:
        sink.truncate(total * width)
        for batch in file.iter_batches(BLOCK, columns=["fingerprint"]):
            rows = _packed(batch.column(0), width)
            here = place[start : start + len(rows)]
            by_place = np.argsort(here)
            here, rows = here[by_place], rows[by_place]
            runs = np.flatnonzero(np.concatenate([[True], np.diff(here) != 1]))
            for low, high in zip(runs, np.append(runs[1:], len(here)), strict=True):
                sink.seek(int(here[low]) * width)
                sink.write(rows[low:high].tobytes())
            start += len(rows)
            progress("indexing", start, total)


def _packed(column: Any, width: int) -> npt.NDArray[np.uint8]:
    """Bytes of a column of fixed size, shape (rows, width)."""
    buffer = np.frombuffer(column.buffers()[1], np.uint8)
    start = column.offset * width
    return buffer[start : start + len(column) * width].reshape(-1, width)


class Nearest:
    """The index of a store, memory-mapped.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.words = np.load(folder / WORDS, mmap_mode="r")
            self.rows = np.load(folder / ROWS, mmap_mode="r")
            self.counts = np.asarray(np.load(folder / COUNTS))
        except (OSError, ValueError) as error:
            raise DatabaseError(
                f"{folder}: its nearest-neighbour index cannot be read ({error})"
            ) from error

    def search(
        self, fingerprint: npt.NDArray[np.uint8], count: int, least: float = 0.0
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The rows most alike, and their similarities, falling; equal ones in the store's order.

        Parameters
        ----------
        fingerprint : uint8 array
            Packed.
        count : int
            How many at the most.
        least : float
            Smallest similarity of interest.
        """
        query = np.ascontiguousarray(fingerprint).view("<u8")
        size = int(np.bitwise_count(query).sum())
        best_rows = np.empty(0, np.int64)
        best = np.empty(0)
        for block, reach in self._by_promise(size):
            if reach < max(least, best[-1] if len(best) == count else 0.0):
                break
            rows, values = self._block(block, query, size)
            fits = values >= max(least, best[-1] if len(best) == count else 0.0)
            best_rows = np.concatenate([best_rows, rows[fits]])
            best = np.concatenate([best, values[fits]])
            order = np.lexsort((best_rows, -best))[:count]
            best_rows, best = best_rows[order], best[order]
        return best_rows, best

    def _by_promise(self, size: int) -> Iterator[tuple[int, float]]:
        """Blocks, the most promising first, with the highest similarity that each can have."""
        low = self.counts[::BLOCK].astype(np.float64)
        high = self.counts[np.minimum(np.arange(len(low)) * BLOCK + BLOCK, len(self.counts)) - 1]
        nearest = np.clip(size, low, high)
        both_empty = (nearest == 0) & (size == 0)
        reach = np.where(
            both_empty, 1.0, np.minimum(nearest, size) / np.maximum(np.maximum(nearest, size), 1)
        )
        for block in np.argsort(-reach, kind="stable"):
            yield int(block), float(reach[block])

    def _block(
        self, block: int, query: Words, size: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        start = block * BLOCK
        rows = self.rows[start : start + BLOCK].astype(np.int64)
        counts = self.counts[start : start + BLOCK]
        common = np.zeros(BLOCK, np.uint16)
        words = self.words[block]
        for word in np.flatnonzero(query):
            common += np.bitwise_count(words[word] & query[word])
        return rows, tanimoto_of(
            common[: len(rows)].astype(float), float(size), counts.astype(float)
        )
