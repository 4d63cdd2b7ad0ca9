"""Parquet, Feather and Arrow files with a spectrum a row, its peaks in columns of lists."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types

from mzseek.core.errors import InputError, Reason
from mzseek.core.text import shorten
from mzseek.io import Source
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra.formats.tables import (
    TableColumns,
    fill,
    find_columns,
    numbers_of_text,
    without_peaks,
)
from mzseek.spectra.records import Record

_MANY = 1_000_000  # values of a column, from which on its size in the file counts
_ROWS = 64  # that are held at a time, with their lists
_DAMAGE = (pa.ArrowException, OSError, ValueError)
_STRINGS = (types.is_string, types.is_large_string, types.is_string_view)
_SCALARS = (
    *_STRINGS, types.is_integer, types.is_floating, types.is_boolean, types.is_decimal,
    types.is_null,
)  # fmt: skip
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list)


def read_parquet(source: Source, columns: Mapping[str, str]) -> Iterator[Record]:
    """Read one record a row of a Parquet file."""
    path = _plain_file(source, "Parquet")
    try:
        # A buffer keeps it from reading a whole group of rows, which may be the whole file.
        with pq.ParquetFile(path, buffer_size=1 << 20) as file:
            found = _columns(path, file.schema_arrow, columns)
            _check_sizes(path, file.metadata)
            names = [name for name in found.names if name]
            batches = file.iter_batches(_ROWS, columns=list(dict.fromkeys(names)))
            yield from _records(path, file.schema_arrow, found, batches)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def read_arrow(source: Source, columns: Mapping[str, str]) -> Iterator[Record]:
    """Read one record a row of an Arrow file (Feather) or stream."""
    path = _plain_file(source, "Arrow")
    try:
        with pa.memory_map(str(path)) as mapped:
            is_file = mapped.read(6) == b"ARROW1"
            mapped.seek(0)
            if is_file:
                reader = pa.ipc.open_file(mapped)
                batches = map(reader.get_batch, range(reader.num_record_batches))
            else:
                reader = pa.ipc.open_stream(mapped)
                batches = iter(reader)
            found = _columns(path, reader.schema, columns)
            small = (
                batch.slice(start, _ROWS)
                for batch in batches
                for start in range(0, batch.num_rows, _ROWS)
            )
            yield from _records(path, reader.schema, found, small)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def _plain_file(source: Source, kind: str) -> Path:
    """Return the path of a file that is read at any place: not packed, and in no archive."""
    path = Path(source.name)
    magic = source.head(4)
    if path.is_file():
        with path.open("rb") as file:
            if file.read(4) == magic:
                return path
    raise InputError(source.name, f"is {kind} in an archive or packed once more: unpack it first")


def _columns(path: Path, schema: pa.Schema, columns: Mapping[str, str]) -> TableColumns:
    """Return which column holds what; others than texts and numbers are passed over."""
    found = find_columns(path, schema.names, columns, plain=False)
    if found is None:
        raise InputError(path, without_peaks(schema.names))
    of_peaks = {index for index in (found.mz, found.intensity, found.peaks) if index >= 0}
    for index in of_peaks:
        kind = schema.field(index).type
        if not any(fits(kind) for fits in (*_LISTS, *_STRINGS)):
            raise InputError(
                path, f"column {schema.names[index]!r} holds {kind}, expected lists of numbers"
            )
    fields = {
        index: field
        for index, field in found.fields.items()
        if any(fits(_value_type(schema.field(index).type)) for fits in _SCALARS)
    }
    names = [name if index in of_peaks or index in fields else ""
             for index, name in enumerate(schema.names)]  # fmt: skip
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise InputError(path, f"has two columns {twice!r}, expected one column of a name")
    return TableColumns(tuple(names), found.mz, found.intensity, found.peaks, fields)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if types.is_dictionary(kind) else kind


def _check_sizes(path: Path, metadata: Any) -> None:
    """Refuse a file whose lists unfold without end: fewer than a bit for each of many values."""
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            part = metadata.row_group(group).column(column)
            if part.num_values > max(_MANY, 8 * part.total_uncompressed_size):
                raise InputError(
                    path, f"column {part.path_in_schema!r} unfolds to {part.num_values:,} values "
                    f"from {part.total_uncompressed_size:,} bytes: given up",
                )  # fmt: skip


def _records(
    path: Path, schema: pa.Schema, columns: TableColumns, batches: Iterator[pa.RecordBatch]
) -> Iterator[Record]:
    number = 0
    for batch in batches:
        cells: dict[int, list[Any]] = {}
        for index, name in enumerate(columns.names):
            if name:
                values = batch.column(batch.schema.get_field_index(name))
                is_peaks = index not in columns.fields
                cells[index] = _peak_cells(values) if is_peaks else _text_cells(values)
        for row in range(batch.num_rows):
            number += 1
            where = f"{path}: row {number}"
            record = Record(where, fallback_name=f"record {number}")
            bad = next((i for i in columns.fields if isinstance(cells[i][row], Reason)), None)
            if bad is not None:
                record.problem = cells[bad][row]
            else:
                in_row = [cells[index][row] if index in cells else ""
                          for index in range(len(columns.names))]  # fmt: skip
                fill(record, columns, in_row, _numbers)
            yield record


def _text_cells(values: pa.Array) -> list[Any]:
    """Return the texts of a column; a `Reason` in place of a value that is no text."""
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if any(fits(values.type) for fits in _STRINGS):
        return [_decoded(value) for value in values.cast(pa.large_binary()).to_pylist()]
    return list(map(_number_text, values.to_pylist()))


def _decoded(value: bytes | None) -> str | Reason:
    try:
        return "" if value is None else value.decode("utf-8")
    except UnicodeDecodeError as error:
        return Reason(f"holds text that is no UTF-8 (at byte {error.start + 1})", "malformed")


def _number_text(value: Any) -> str:
    """Return the text of a number, whole ones without a point: 1.0 is a charge of 1."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _peak_cells(values: pa.Array) -> list[Any]:
    """Return a value for each row that `_numbers` takes: an Arrow scalar."""
    return [values[index] for index in range(len(values))]


def _numbers(cell: Any) -> "np.ndarray[Any, Any]":
    """Return the numbers of a list, or the pairs of a list of pairs or of records."""
    if any(fits(cell.type) for fits in _STRINGS):
        return numbers_of_text(cell.as_py() or "")
    values = cell.values
    if values is None:
        return np.empty(0)
    are_pairs = types.is_struct(values.type) or any(fits(values.type) for fits in _LISTS)
    if len(values) > MAX_PEAKS:  # refused by its number, without making the numbers
        return np.broadcast_to(0.0, (len(values), 2) if are_pairs else len(values))
    if types.is_struct(values.type):
        if values.type.num_fields != 2:
            raise ValueError(f"{values.type}, expected two fields, m/z and intensity")
        return np.column_stack([_floats(values.field(place)) for place in range(2)])
    if are_pairs:
        pairs = values.to_pylist()
        if any(pair is None or len(pair) != 2 for pair in pairs):
            raise ValueError("a list that is no pair")
        return np.array(pairs, np.float64).reshape(-1, 2)
    return _floats(values)


def _floats(values: pa.Array) -> "np.ndarray[Any, Any]":
    if values.null_count:
        raise ValueError("a value is missing")
    try:
        return np.asarray(values.cast(pa.float64()))
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _damaged(path: Path, error: Exception) -> InputError:
    reason = shorten(str(error) or type(error).__name__, 200)
    return InputError(path, f"damaged or cut short ({reason})")
