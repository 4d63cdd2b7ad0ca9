"""Molecules in Parquet: rows of the few columns needed, batch by batch."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.database.columns import find_columns, record_of, require_columns
from mzseek.database.record import Record
from mzseek.errors import InputError
from mzseek.rejects import Report

MAGIC = b"PAR1"
_BATCH = 4_096


def find_places(path: Path, named: Mapping[str, str]) -> dict[str, int]:
    """Columns by meaning; `InputError` where there are none of molecules."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error
    places = find_columns(names, named)
    require_columns(str(path), names, places, named)
    for place in places.values():
        if names.count(names[place]) > 1:
            raise InputError(path, f"two columns are called {names[place]!r}, expected one")
    return places


def read_parquet(
    path: Path, places: Mapping[str, int], report: Report, origin: str
) -> Iterator[Record]:
    """Records of a Parquet file."""
    number = 0
    for batch in _batches(path, places):
        columns = [batch.column(place).to_pylist() for place in range(batch.num_columns)]
        order = {meaning: place for place, meaning in enumerate(places)}
        for values in zip(*columns, strict=True):
            number += 1
            where = f"{path}: record {number}"
            record = record_of(where, [_text(value) for value in values], order, origin)
            if record is None:
                report(where, "has no molecule")
            else:
                yield record


def _batches(path: Path, places: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """Batches with one column for each meaning, in that order."""
    try:
        # A buffer keeps it from reading a whole group of rows, which may be the whole file.
        with pq.ParquetFile(path, buffer_size=1 << 20) as file:
            names = file.schema_arrow.names
            wanted = list(dict.fromkeys(names[place] for place in places.values()))
            for batch in file.iter_batches(_BATCH, columns=wanted):
                yield batch.select([names[place] for place in places.values()])
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(path, f"damaged or cut short ({str(error).splitlines()[0]})")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():  # a number beside missing ones
        return str(int(value))
    return str(value)
