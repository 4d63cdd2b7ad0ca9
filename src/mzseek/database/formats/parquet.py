"""Molecules in Parquet: rows of the few columns needed, batch by batch."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types

from mzseek.database.formats.columns import MOLECULE, find_columns, record_of, require_columns
from mzseek.database.record import MoleculeRecord
from mzseek.errors import InputError
from mzseek.files import Source
from mzseek.files.streams.table import MOST_CHARACTERS, sole_column
from mzseek.rejects import Report

MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_BATCH = 1_024  # rows that are unpacked at a time: text of any length may stand in them
_TEXTS = (
    types.is_string, types.is_large_string, types.is_string_view, types.is_binary,
    types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary,
)  # fmt: skip
_NUMBERS = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)


def reader_of(
    source: Source, named: Mapping[str, str]
) -> Callable[[Report, str], Iterator[MoleculeRecord]] | None:
    """Reader of a Parquet file, which must not be packed once more."""
    head, path = source.head(), Path(source.name)
    if head.startswith(_ENCRYPTED):
        raise InputError(path, "is encrypted Parquet, expected it open")
    if not head.startswith(MAGIC):
        return None
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(path, "is Parquet packed once more, expected it as it is")
    return partial(_read, path, _find_places(path, named))


def _find_places(path: Path, named: Mapping[str, str]) -> dict[str, int]:
    """Columns by meaning; `InputError` where there are none of molecules, or hold something else.

    Molecules are text; identifiers, names and sources are text or numbers.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error
    names = schema.names
    places = find_columns(path, names, named)
    require_columns(str(path), names, places, named)
    for meaning, place in places.items():
        sole_column(path, names, [names[place].strip()], exact=True)  # since they are read by name
        fitting = _TEXTS if meaning in MOLECULE else _TEXTS + _NUMBERS
        kind = schema.field(place).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not types.is_null(kind) and not any(fits(kind) for fits in fitting):
            expected = "text" if meaning in MOLECULE else "text or numbers"
            raise InputError(path, f"column {names[place]!r} holds {kind}, expected {expected}")
    return places


def _read(
    path: Path, places: Mapping[str, int], report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Records of a Parquet file; rows whose text is no UTF-8, or far too long, are set aside."""
    number = 0
    order = {meaning: place for place, meaning in enumerate(places)}
    for batch in _batches(path, places):
        columns = [_values(path, column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            number += 1
            where = f"{path}: record {number}"
            try:
                cells = [_text(value) for value in values]
            except ValueError as error:
                report(where, str(error))
                continue
            record = record_of(where, cells, order, origin)
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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _values(path: Path, column: pa.Array) -> list[Any]:
    """Values of a column; those of text as bytes, since Parquet does not promise UTF-8."""
    try:
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if types.is_string(column.type) or types.is_string_view(column.type):
            column = column.cast(pa.binary())
        elif types.is_large_string(column.type):
            column = column.cast(pa.large_binary())
        return list(column.to_pylist())
    except (pa.ArrowException, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(path, f"damaged or cut short ({reason[:200]})")


def _text(value: Any) -> str:
    """Text of a value; `ValueError` with the reason where it has none."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        if len(value) > MOST_CHARACTERS:
            raise ValueError(f"holds a text longer than {MOST_CHARACTERS:,} characters")
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"holds text that is no UTF-8 (at byte {error.start + 1})") from error
    if isinstance(value, float) and value.is_integer():  # a number beside missing ones
        return str(int(value))
    return str(value)
