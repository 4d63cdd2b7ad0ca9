"""Molecules in text tables, workbooks and Parquet files."""

import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types
from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from mzseek.core.errors import InputError, MzseekError, Reason
from mzseek.core.registry import check_name
from mzseek.core.text import shorten
from mzseek.database.records import MoleculeRecord, Reader
from mzseek.io import Source
from mzseek.io.skipped import Report
from mzseek.io.sources import MAX_ROW, MAX_WORKBOOK
from mzseek.io.text_tables import (
    TextTable,
    find_column,
    format_names,
    normalise_name,
    open_table,
)

# By preference, written without case, blanks and marks: "Canonical SMILES" is canonicalsmiles.
KNOWN = {
    "smiles": (
        "smiles", "canonicalsmiles", "isomericsmiles", "isosmiles", "connectivitysmiles",
        "moleculesmiles", "compoundsmiles", "structuresmiles", "structure",
    ),
    "inchi": ("inchi", "standardinchi", "stdinchi"),
    "id": (
        "id", "dtxsid", "identifier", "accession", "pubchemcompoundcid", "databaseid", "cid",
        "pubchemcid", "compoundcid", "hmdbid", "chebiid", "chemblid", "moleculechemblid", "lmid",
        "drugbankid", "zincid", "compoundid", "moleculeid", "catalogid",
    ),
    "name": (
        "name", "title", "compoundname", "cmpdname", "genericname", "commonname", "preferredname",
        "prefname", "chemblprefname", "chebiname", "chemicalname", "moleculename", "compound",
        "pubchemiupacname", "iupacname", "systematicname",
    ),
    "source": ("source", "database"),
    # CompTox: desalted, neutral and without stereo, beside the substance as it is registered.
    "ms_ready_smiles": ("msreadysmiles",),
    # The feature that a candidate is for; looked for only where `named` has the meaning.
    "feature": (
        "feature", "featureid", "mappingfeatureid", "rowid", "scans", "scan", "query", "spectrum",
    ),
}  # fmt: skip
# By preference: the first that a row has is its molecule.
MOLECULE = ("ms_ready_smiles", "smiles", "inchi")
FEATURE = "feature"
# Value of `named` for a column that is looked for by its usual names.
USUAL = ""
# Columns of what `mzseek database export` and `search` write, where a molecule has all its names.
EXPORTED = ("smiles", "formula", "mass", "key", "sources", "identifiers", "names")
NOTHING = {"", "-", "na", "n/a", "nan", "none", "null"}


def check_named(named: Mapping[str, str]) -> None:
    """Refuse names of columns for unknown fields."""
    for meaning in named:
        check_name(KNOWN, meaning, "a column for", MzseekError)


def find_columns(file: object, names: Sequence[str], named: Mapping[str, str]) -> dict[str, int]:
    """Return the indices of the columns that are there, by meaning.

    Of several names for one thing the first of `KNOWN` is taken.

    Parameters
    ----------
    file : object
        For the message.
    names : sequence of str
        Names of the table's columns.
    named : mapping of str to str
        Names that the user gave; for these meanings no other name is tried. ``{"feature": ""}``
        looks for a column of features by its usual names.

    Raises
    ------
    InputError
        Two columns have the name that is taken.

    Examples
    --------
    >>> find_columns("a.csv", ["CID", "Canonical SMILES", "Titel"], {"name": "Titel"})
    {'smiles': 1, 'id': 0, 'name': 2}
    """
    by_user = any(meaning in named for meaning in MOLECULE)
    columns = {}
    for meaning, usual in KNOWN.items():
        if name := named.get(meaning, USUAL):
            column = find_column(file, names, [name.strip()], exact=True)
            if column is None:
                column = find_column(file, names, [normalise_name(name)])
        elif (by_user and meaning in MOLECULE) or (meaning == FEATURE and FEATURE not in named):
            continue
        else:
            column = find_column(file, names, usual)
        if column is not None:
            columns[meaning] = column
    return columns


def holds_molecules(columns: Mapping[str, int]) -> bool:
    """Whether a column of molecules was found."""
    return any(meaning in columns for meaning in MOLECULE)


def require_columns(
    file: str, names: Sequence[str], columns: Mapping[str, int], named: Mapping[str, str]
) -> None:
    """Refuse a table without molecules, or without a column that the user named."""
    for meaning, name in named.items():
        if name and meaning not in columns:
            raise InputError(file, f"no column is called {name!r}; it has {format_names(names)}")
    if not holds_molecules(columns):
        raise InputError(
            file,
            "no column is called smiles, canonical_smiles, isomeric_smiles, structure or inchi; "
            f"it has {format_names(names)}; name the column with --smiles-column",
        )


def record_of(
    where: str, cells: Sequence[str], columns: Mapping[str, int], source: str
) -> MoleculeRecord | None:
    """Return the record of a row; None if the row has no molecule.

    The molecule is the first of `MOLECULE` that the row has.
    """
    texts = (molecule_text(cells[columns[m]]) for m in MOLECULE if m in columns)
    text = next(filter(None, texts), "")
    if not text:
        return None
    identifier, name, own_source, feature = (
        one_line(cells[columns[meaning]]) if meaning in columns else ""
        for meaning in ("id", "name", "source", FEATURE)
    )
    return MoleculeRecord(
        where, text, identifier, name, own_source or source,
        feature=feature if FEATURE in columns else None,
    )  # fmt: skip


def molecule_text(cell: str) -> str:
    """Return the SMILES or InChI of a cell without a CXSMILES extension; empty if there is none."""
    text = cell.strip()
    if " |" in text:
        text = text.partition(" |")[0].rstrip()
    return "" if len(text) <= 4 and text.lower() in NOTHING else text


def one_line(text: str) -> str:
    """Return a text with single blanks for white space: names must not break tables."""
    return " ".join(text.split())


# Of a table that mzseek wrote itself.
_EXPORTED_COLUMNS = {"smiles": "smiles", "id": "identifiers", "name": "names", "source": "sources"}


def text_reader(source: Source, named: Mapping[str, str]) -> Reader | None:
    """Return a reader of a table with a column of molecules; a table of one column is a list."""

    def fits(names: Sequence[str]) -> bool:
        if len(names) < 2:
            return False
        return _is_export(names, named) or holds_molecules(find_columns(source.name, names, named))

    table = open_table(source, fits)
    if table is None:
        return None
    if _is_export(table.names, named):
        exported = _EXPORTED_COLUMNS | {meaning: USUAL for meaning in named if meaning == FEATURE}
        columns = find_columns(source.name, table.names, exported)
        return partial(_read, table, columns, True)
    columns = find_columns(source.name, table.names, named)
    require_columns(source.name, table.names, columns, named)
    return partial(_read, table, columns, False)


def _is_export(names: Sequence[str], named: Mapping[str, str]) -> bool:
    return tuple(names[: len(EXPORTED)]) == EXPORTED and not any(named.values())


def _read(
    table: TextTable, columns: Mapping[str, int], is_listed: bool, report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Yield records of a table, line by line."""
    file = table.source.name

    def skip(number: int, reason: str) -> None:
        report(f"{file}: line {number}", reason)

    rows = ((f"{file}: line {number}", cells) for number, cells in table.whole_rows(skip))
    for record in _records(rows, columns, report, origin):
        yield record._replace(is_listed=True) if is_listed else record


def _records(
    rows: Iterable[tuple[str, Sequence[str]]],
    columns: Mapping[str, int],
    report: Report,
    origin: str,
) -> Iterator[MoleculeRecord]:
    """Yield records of rows, given their positions and cells."""
    for where, cells in rows:
        record = record_of(where, cells, columns, origin)
        if record is None:
            report(where, Reason("has no molecule", "no-molecule"))
        else:
            yield record


_ZIP = b"PK\x03\x04"
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # .xls, and any workbook that has a password
_PARTS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}


def workbook_reader(source: Source, named: Mapping[str, str]) -> Reader | None:
    """Return a reader of a workbook (.xlsx, .xlsm, .xlsb, .xls, .ods), not packed once more.

    The header of a sheet is its first row that is not empty. Of several sheets the first with a
    column of molecules is read: CompTox puts a cover sheet before its data.
    """
    path = Path(source.name)
    if not _is_workbook(path):
        return None
    headers: dict[str, list[str]] = {}
    with _opened(path) as book:
        for sheet in book.sheet_names:
            headers[sheet] = header = next(_rows(book, sheet), (0, []))[1]
            columns = find_columns(path, header, named)
            if holds_molecules(columns):
                require_columns(str(path), header, columns, named)
                return partial(_read_workbook, path, sheet, columns)
    expected = next((repr(named[m]) for m in MOLECULE if named.get(m)), "smiles, inchi or the like")
    shown = "; ".join(f"{sheet!r} has {format_names(names)}" for sheet, names in headers.items())
    raise InputError(path, f"no sheet has a column that is called {expected}: {shown[:500]}")


def _is_workbook(path: Path) -> bool:
    """Whether a file is a workbook, by the parts of its archive."""
    with path.open("rb") as file:
        head = file.read(len(_OLD))
        if head == _OLD:
            return True
        if not head.startswith(_ZIP):
            return False
        try:
            parts = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
            return False
    if not _PARTS & {part.filename for part in parts}:
        return False
    size = sum(part.file_size for part in parts)
    if size > MAX_WORKBOOK:
        raise InputError(
            path,
            f"unfolds to {size:,} bytes, expected at most {MAX_WORKBOOK:,}; save the sheet as CSV",
        )
    return True


def _read_workbook(
    path: Path, sheet: str, columns: Mapping[str, int], report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Yield records of a sheet, row by row."""

    def rows(book: CalamineWorkbook) -> Iterator[tuple[str, Sequence[str]]]:
        for number, cells in islice(_rows(book, sheet), 1, None):
            where = f"{path}: row {number}"
            if sum(map(len, cells)) > MAX_ROW:
                report(where, Reason(f"is longer than {MAX_ROW:,} characters", "too-large"))
            else:
                yield where, cells

    with _opened(path) as book:
        yield from _records(rows(book), columns, report, origin)


@contextmanager
def _opened(path: Path) -> Iterator[CalamineWorkbook]:
    """Open a workbook; damage is an `InputError`."""
    try:
        with path.open("rb") as file, CalamineWorkbook.from_filelike(file) as book:
            yield book
    except PasswordError as error:
        raise InputError(path, "has a password, expected a workbook without one") from error
    except (CalamineError, OSError, ValueError) as error:
        reason = shorten(str(error) or type(error).__name__, 200)
        raise InputError(path, f"is damaged, or no workbook ({reason})") from error


def _rows(book: CalamineWorkbook, sheet: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not empty, with their numbers as spreadsheet programs show them."""
    opened = book.get_sheet_by_name(sheet)
    first = opened.start[0] + 1 if opened.start else 1
    for number, row in enumerate(opened.iter_rows(), first):
        cells = [_text(value) for value in row]
        if any(cells):
            yield number, cells


def _text(value: Any) -> str:
    """Return the text of a cell, whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_BATCH = 1_024  # rows that are unpacked at a time: text of any length may stand in them
_STRINGS = (types.is_string, types.is_large_string, types.is_string_view)
_TEXTS = (
    *_STRINGS, types.is_binary, types.is_large_binary, types.is_binary_view,
    types.is_fixed_size_binary,
)  # fmt: skip
_NUMBERS = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)


def parquet_reader(source: Source, named: Mapping[str, str]) -> Reader | None:
    """Return a reader of a Parquet file, which must not be packed once more."""
    head, path = source.head(), Path(source.name)
    if head.startswith(_ENCRYPTED):
        raise InputError(path, "is encrypted Parquet, expected it open")
    if not head.startswith(MAGIC):
        return None
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(path, "is Parquet packed once more, expected it as it is")
    return partial(_read_parquet, path, _find_columns(path, named))


def _find_columns(path: Path, named: Mapping[str, str]) -> dict[str, int]:
    """Find columns by meaning; `InputError` if there are no molecules, or values of another type.

    Molecules are text; identifiers, names and sources are text or numbers.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error
    names = schema.names
    columns = find_columns(path, names, named)
    require_columns(str(path), names, columns, named)
    for meaning, column in columns.items():
        find_column(path, names, [names[column].strip()], exact=True)  # since they are read by name
        fitting = _TEXTS if meaning in MOLECULE else _TEXTS + _NUMBERS
        kind = schema.field(column).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not types.is_null(kind) and not any(fits(kind) for fits in fitting):
            expected = "text" if meaning in MOLECULE else "text or numbers"
            raise InputError(path, f"column {names[column]!r} holds {kind}, expected {expected}")
    return columns


def _read_parquet(
    path: Path, columns: Mapping[str, int], report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Yield records of a Parquet file; rows with text that is no UTF-8 or too long are skipped."""

    def rows() -> Iterator[tuple[str, Sequence[str]]]:
        number = 0
        for batch in _batches(path, columns):
            for values in zip(*(_values(path, column) for column in batch.columns), strict=True):
                number += 1
                where = f"{path}: record {number}"
                try:
                    yield where, [_text_parquet(value) for value in values]
                except ValueError as error:
                    report(where, Reason(str(error), "malformed"))

    order = {meaning: index for index, meaning in enumerate(columns)}
    yield from _records(rows(), order, report, origin)


def _batches(path: Path, columns: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield batches with one column for each meaning, in that order."""
    try:
        # A buffer keeps it from reading a whole group of rows, which may be the whole file.
        with pq.ParquetFile(path, buffer_size=1 << 20) as file:
            names = file.schema_arrow.names
            selected = list(dict.fromkeys(names[column] for column in columns.values()))
            for batch in file.iter_batches(_BATCH, columns=selected):
                yield batch.select([names[column] for column in columns.values()])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _values(path: Path, column: pa.Array) -> list[Any]:
    """Return the values of a column; text as bytes, since Parquet does not promise UTF-8."""
    try:
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        is_text = any(fits(column.type) for fits in _STRINGS)
        return list((column.cast(pa.large_binary()) if is_text else column).to_pylist())
    except (pa.ArrowException, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    reason = shorten(str(error) or type(error).__name__, 200)
    return InputError(path, f"damaged or cut short ({reason})")


def _text_parquet(value: Any) -> str:
    """Return the text of a value; raise `ValueError` with the reason if it has none."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        if len(value) > MAX_ROW:
            raise ValueError(f"holds a text longer than {MAX_ROW:,} characters")
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"holds text that is no UTF-8 (at byte {error.start + 1})") from error
    return _text(value)
