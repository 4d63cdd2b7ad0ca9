"""The second half of a build: parts become one Parquet file, sorted by mass, each molecule once."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mzseek.work import Progress

ROW_GROUP = 16_384
_SLICE = 200_000  # rows that are sorted and merged at a time
_SAMPLE = 512
_LISTS = ("sources", "identifiers", "names")


def merge_parts(tables: Sequence[pa.Table], path: Path, progress: Progress) -> int:
    """Write the molecules of all parts into one file; returns how many there are.

    Molecules with the same key and mass are one, described as by the record that came first, with
    the sources, identifiers and names of all.

    Parameters
    ----------
    tables : sequence of Table
        Each sorted by mass.
    path : Path
        The Parquet file to make.
    progress : callable of (stage, done, total)
    """
    total = sum(table.num_rows for table in tables)
    masses = [table["mass"].to_numpy() for table in tables]
    schema = tables[0].schema.remove(tables[0].schema.get_field_index("place"))
    written = seen = 0
    waiting = schema.empty_table()
    with pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=6, write_page_index=True,
        use_dictionary=["formula", "sources.list.element"],
        write_statistics=["mass", "formula", "key"],
    ) as writer:  # fmt: skip
        for low, high in _slices(masses, total):
            piece = merge_equal(_rows_between(tables, masses, low, high)).drop_columns(["place"])
            seen += sum(_between(each, low, high)[2] for each in masses)
            waiting = pa.concat_tables([waiting, piece]).combine_chunks()
            whole = waiting.num_rows - waiting.num_rows % ROW_GROUP
            if whole:
                writer.write_table(waiting.slice(0, whole), row_group_size=ROW_GROUP)
                written += whole
                waiting = waiting.slice(whole).combine_chunks()
            progress("merging", seen, total)
        if waiting.num_rows or not written:
            writer.write_table(waiting, row_group_size=ROW_GROUP)
            written += waiting.num_rows
    return written


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
            known: set[str] = set()
            for place, value in enumerate(values[low:high].to_pylist(), low):
                keep[place] = value not in known
                known.add(value)
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        offsets, values = kept_before[offsets], values.filter(pa.array(keep))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _slices(masses: Sequence[npt.NDArray[np.float64]], total: int) -> Iterator[tuple[float, float]]:
    """Ranges of mass that hold about the same number of rows; equal masses are never parted."""
    sample = np.sort(np.concatenate([np.empty(0), *(each[::_SAMPLE] for each in masses)]))
    pieces = max(1, -(-total // _SLICE))
    cuts: list[float] = []
    if len(sample):
        cuts = np.unique(sample[(np.arange(1, pieces) * len(sample)) // pieces]).tolist()
    yield from pairwise([-np.inf, *cuts, np.inf])


def _between(masses: npt.NDArray[np.float64], low: float, high: float) -> tuple[int, int, int]:
    start, end = np.searchsorted(masses, [low, high])
    return int(start), int(end), int(end - start)


def _rows_between(
    tables: Sequence[pa.Table], masses: Sequence[npt.NDArray[np.float64]], low: float, high: float
) -> pa.Table:
    parts = []
    for table, each in zip(tables, masses, strict=True):
        start, _, count = _between(each, low, high)
        parts.append(table.slice(start, count))
    return pa.concat_tables(parts)
