"""Molecules in workbooks of Excel and LibreOffice: the first sheet that has a column of them."""

import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from mzseek.database.formats.columns import (
    MOLECULE,
    find_columns,
    holds_molecules,
    record_of,
    require_columns,
)
from mzseek.database.record import MoleculeRecord
from mzseek.errors import InputError
from mzseek.files import Source
from mzseek.files.limits import MAX_ROW, MAX_WORKBOOK
from mzseek.files.streams.table import shown_names
from mzseek.rejects import Report

_ZIP = b"PK\x03\x04"
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # .xls, and any workbook that has a password
_PARTS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}


def reader_of(
    source: Source, named: Mapping[str, str]
) -> Callable[[Report, str], Iterator[MoleculeRecord]] | None:
    """Reader of a workbook (.xlsx, .xlsm, .xlsb, .xls, .ods), which must not be packed once more.

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
            places = find_columns(path, header, named)
            if holds_molecules(places):
                require_columns(str(path), header, places, named)
                return partial(_read, path, sheet, places)
    wanted = next((repr(named[m]) for m in MOLECULE if named.get(m)), "smiles, inchi or the like")
    shown = "; ".join(f"{sheet!r} has {shown_names(names)}" for sheet, names in headers.items())
    raise InputError(path, f"no sheet has a column that is called {wanted}: {shown[:500]}")


def _is_workbook(path: Path) -> bool:
    """Whether the file, as it lies on the disk, is a workbook, by the parts in its archive."""
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


def _read(
    path: Path, sheet: str, places: Mapping[str, int], report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Records of a sheet, row by row."""
    with _opened(path) as book:
        rows = _rows(book, sheet)
        next(rows)
        for number, cells in rows:
            where = f"{path}: row {number}"
            if sum(map(len, cells)) > MAX_ROW:
                report(where, f"is longer than {MAX_ROW:,} characters")
                continue
            record = record_of(where, cells, places, origin)
            if record is None:
                report(where, "has no molecule")
            else:
                yield record


@contextmanager
def _opened(path: Path) -> Iterator[CalamineWorkbook]:
    """A workbook; damage that is met is an `InputError`."""
    try:
        with path.open("rb") as file, CalamineWorkbook.from_filelike(file) as book:
            yield book
    except PasswordError as error:
        raise InputError(path, "has a password, expected a workbook without one") from error
    except (CalamineError, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(path, f"is damaged, or no workbook ({reason[:200]})") from error


def _rows(book: CalamineWorkbook, sheet: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, with their numbers as the program shows them."""
    opened = book.get_sheet_by_name(sheet)
    first = opened.start[0] + 1 if opened.start else 1
    for number, row in enumerate(opened.iter_rows(), first):
        cells = [_text(value) for value in row]
        if any(cells):
            yield number, cells


def _text(value: Any) -> str:
    """Text of a cell; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
