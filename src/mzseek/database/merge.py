"""The second half of a build: parts become one Parquet file, sorted by mass, each molecule once."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mzseek.errors import DatabaseError
from mzseek.ragged import pointers
from mzseek.work import Progress

ROW_GROUP = 4_096
_SLICE = 50_000  # rows that are sorted and merged at a time
_SAMPLE = 512
Floats = npt.NDArray[np.float64]
_LISTS = ("sources", "identifiers", "names")


class MergedPart(Protocol):
    """Described molecules, sorted by mass, of which any run can be read."""

    @property
    def masses(self) -> Floats:
        """Their masses, rising."""

    def rows(self, start: int, end: int) -> pa.Table:
        """Molecules from one place to another."""


def merge_parts(
    parts: Sequence[MergedPart], schema: pa.Schema, path: Path, progress: Progress
) -> Floats:
    """Write the molecules of all parts into one file; returns their masses.

    Molecules with the same key and mass are one, described as by the record that came first, with
    the sources, identifiers and names of all.

    Parameters
    ----------
    parts : sequence of MergedPart
    schema : pyarrow.Schema
        Of the parts.
    path : Path
        The Parquet file to make.
    progress : callable of (stage, done, total)
    """
    schema = schema.remove(schema.get_field_index("place"))
    masses = [part.masses for part in parts]
    total, seen = sum(map(len, masses)), 0
    written: list[Floats] = []
    waiting = schema.empty_table()
    with pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=6, write_page_index=True,
        use_dictionary=["formula", "sources.list.element"],
        write_statistics=["mass", "formula", "key"],
    ) as writer:  # fmt: skip
        for low, high in _slices(masses, total):
            runs = [np.searchsorted(of_part, [low, high]).tolist() for of_part in masses]
            rows = [part.rows(*run) for part, run in zip(parts, runs, strict=True)]
            piece = merge_equal(pa.concat_tables(rows)).drop_columns(["place"])
            written.append(piece["mass"].to_numpy())
            waiting = pa.concat_tables([waiting, piece]).combine_chunks()
            whole = waiting.num_rows - waiting.num_rows % ROW_GROUP
            if whole:
                writer.write_table(waiting.slice(0, whole), row_group_size=ROW_GROUP)
                waiting = waiting.slice(whole).combine_chunks()
            seen += sum(end - start for start, end in runs)
            progress("merging", seen, total)
        if waiting.num_rows:
            writer.write_table(waiting, row_group_size=ROW_GROUP)
    if seen != total:  # masses that do not rise, or are no numbers, fall between the slices
        raise DatabaseError(
            f"{seen:,} of {total:,} described molecules were merged; build it again"
        )
    return np.concatenate([np.empty(0), *written])


def merge_equal(table: pa.Table) -> pa.Table:
    """Rows sorted by mass, key and place, with those of one key and mass merged."""
    order = [("mass", "ascending"), ("key", "ascending"), ("place", "ascending")]
    table = table.take(pc.sort_indices(table, order)).combine_chunks()
    if table.num_rows < 2:
        return table
    mass = table["mass"].to_numpy()
    key = table["key"].combine_chunks()
    same_key = pc.equal(key[1:], key[:-1]).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.concatenate([[True], ~same_key | (np.diff(mass) != 0)]))
    if len(starts) == table.num_rows:
        return table
    first = table.take(starts).combine_chunks()
    borders = np.append(starts, table.num_rows)
    for name in _LISTS:
        lists = _joined(table[name].combine_chunks(), borders)
        first = first.set_column(
            first.schema.get_field_index(name), first.schema.field(name), lists
        )
    return first


def _joined(lists: pa.ListArray, borders: npt.NDArray[np.int64]) -> pa.ListArray:
    """The lists of each run of rows strung together, no value twice."""
    offsets = lists.offsets.to_numpy()[borders].astype(np.int64)
    values = lists.values
    several = np.flatnonzero((np.diff(borders) > 1) & (np.diff(offsets) > 1))
    if len(several):
        keep = np.ones(len(values), bool)
        for run in several:
            low, high = int(offsets[run]), int(offsets[run + 1])
            seen: set[str] = set()
            for place, value in enumerate(values[low:high].to_pylist(), low):
                keep[place] = value not in seen
                seen.add(value)
        kept_before = pointers(keep)
        offsets, values = kept_before[offsets], values.filter(pa.array(keep))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _slices(masses: Sequence[Floats], total: int) -> Iterator[tuple[float, float]]:
    """Ranges of mass that hold about the same number of rows; equal masses are never parted."""
    sample = np.sort(np.concatenate([np.empty(0), *(of_part[::_SAMPLE] for of_part in masses)]))
    pieces = max(1, -(-total // _SLICE))
    cuts: list[float] = []
    if len(sample):
        cuts = np.unique(sample[(np.arange(1, pieces) * len(sample)) // pieces]).tolist()
    yield from pairwise([-np.inf, *cuts, np.inf])
