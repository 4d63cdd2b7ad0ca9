"""Read text tables in bounded memory: header, delimiter, columns, cells."""

import codecs
import csv
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mzseek.core.errors import InputError, Reason
from mzseek.core.text import visible as _visible
from mzseek.io.sources import MAX_ROW, LongLine, Source, open_source, text_lines

# Behind apostrophes, too, so that taking one away gives what was there.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_SEPARATOR = "; "
_PARTS = re.compile(r"((?:\\.|(?!; )[^\\])*)(?:; |\Z)", re.DOTALL)


def visible(text: str) -> str:
    r"""Replace each control character, the tab included, by a mark.

    Examples
    --------
    >>> visible("a\x1b[2J\tb")
    'a�[2J�b'
    """
    return _visible(text).replace("\t", "\N{REPLACEMENT CHARACTER}")


def text_cell(text: str) -> str:
    r"""Write free text as a cell: on one line, without control characters, and no formula.

    Examples
    --------
    >>> text_cell("=cmd|' /C calc'!A0"), text_cell("two\nlines"), text_cell("2-propanol")
    ("'=cmd|' /C calc'!A0", 'two lines', '2-propanol')
    """
    shown = visible(" ".join(text.split()))
    return f"'{shown}" if _FORMULA.match(shown) else shown


def cell_text(cell: str) -> str:
    """Return the text of a cell of `text_cell`.

    Examples
    --------
    >>> cell_text("'-carotene"), cell_text("'t Hooft")
    ('-carotene', "'t Hooft")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def list_cell(values: Iterable[str]) -> str:
    r"""Write several texts as one cell, with ``; `` between them.

    Examples
    --------
    >>> list_cell(["caffeine", "Coffein"]), list_cell(["a; b", "c"])
    ('caffeine; Coffein', 'a\\; b; c')
    """
    parts = (value.replace("\\", "\\\\").replace(_SEPARATOR, "\\; ") for value in values)
    return text_cell(_SEPARATOR.join(parts))


def cell_texts(cell: str) -> list[str]:
    r"""Return the texts of a cell of `list_cell`.

    Examples
    --------
    >>> cell_texts("caffeine; Coffein"), cell_texts("a\\; b; c"), cell_texts("")
    (['caffeine', 'Coffein'], ['a; b', 'c'], [])
    """
    texts = [match[1] for match in _PARTS.finditer(cell_text(cell))]
    return [re.sub(r"\\(.)", r"\1", part) for part in texts if part]


Line = tuple[int, str]
Row = tuple[int, list[str]]
Skip = Callable[[int, str], object]  # gets the number of a line and the reason to skip it

DELIMITERS = "\t;,|"
MAX_COLUMNS = 10_000
_MAX_LINES = 50  # of a quoted cell; one that goes on for longer was never closed
_MAX_CELL = 2**31 - 1
_MAX_NAME = 200  # characters of a column's name
_MAX_SHOWN = 12
_TOO_LONG = Reason(f"is longer than {MAX_ROW:,} characters", "too-large")
_MARKS = re.compile(r"[^a-z0-9]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a]")
_csv_limit = threading.Lock()


def normalise_name(name: str) -> str:
    """Return a column's name without case, blanks and marks.

    Examples
    --------
    >>> normalise_name("Canonical SMILES"), normalise_name("precursor_mz"), normalise_name("m/z")
    ('canonicalsmiles', 'precursormz', 'mz')
    """
    return _MARKS.sub("", name.lower()) if len(name) <= _MAX_NAME else name


def find_column(
    file: object, names: Sequence[str], preferred: Sequence[str], *, exact: bool = False
) -> int | None:
    """Return the index of the first of several names that a header has, or None.

    ``preferred`` is ordered by preference and written as by `normalise_name`, unless ``exact``.

    Raises
    ------
    InputError
        Two columns have the name that is taken.

    Examples
    --------
    >>> find_column("a.csv", ["Name", "isomeric_smiles", "SMILES"], ("smiles", "isomericsmiles"))
    2
    >>> find_column("a.csv", ["smiles", "name", "SMILES"], ("smiles",))
    Traceback (most recent call last):
    ...
    mzseek.core.errors.InputError: a.csv: columns 1 ('smiles') and 3 ('SMILES') have one name, \
expected one column of it
    """
    if len(names) > MAX_COLUMNS:
        raise InputError(file, f"has {len(names):,} columns, expected at most {MAX_COLUMNS:,}")
    indices_of: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        indices_of.setdefault(name.strip() if exact else normalise_name(name), []).append(index)
    for name in filter(None, preferred):
        indices = indices_of.get(name, [])
        if len(indices) > 1:
            shown = [f"{i + 1} ({names[i].strip()[:40]!r})" for i in indices[:4]]
            more = len(indices) - len(shown)
            listed = f"{', '.join(shown)} and {more} more" if more else " and ".join(shown)
            raise InputError(file, f"columns {listed} have one name, expected one column of it")
        if indices:
            return indices[0]
    return None


def format_names(names: Sequence[str]) -> str:
    """List the first few names of columns for a message."""
    shown = ", ".join(repr(name.strip()[:40]) for name in names[:_MAX_SHOWN])
    more = len(names) - _MAX_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def require_text(source: Source, expected: str) -> bytes:
    """Return the beginning of a file; raise `InputError` where it is empty or no text."""
    head = source.head()
    if not head.strip():
        raise InputError(source.name, "the file is empty")
    if _BINARY.search(head) and not head.startswith(_UTF16):
        raise InputError(source.name, f"is not a text file; {expected}")
    return head


@dataclass(frozen=True)
class TextTable:
    """A table in a text file: its delimiter and the names of its columns, as written."""

    source: Source
    delimiter: str
    names: list[str]

    def rows(self, skip: Skip) -> Iterator[Row]:
        """Yield the cells of each row, as many as it has, with the number of its line."""
        with self.source.open() as stream:
            lines = bounded_lines(text_lines(stream), skip)
            next(lines, None)
            yield from table_rows(lines, self.delimiter, len(self.names), skip)

    def whole_rows(self, skip: Skip) -> Iterator[Row]:
        """Yield rows with a cell for each column; skip others, unless all further cells are empty.

        See `rows`.
        """
        width = len(self.names)
        for number, cells in self.rows(skip):
            if len(cells) < width or any(cells[width:]):
                reason = f"has {len(cells)} columns, expected {width}"
                skip(number, Reason(reason, "malformed"))
            else:
                yield number, cells[:width]


def open_table(source: Source, fits: Callable[[Sequence[str]], bool]) -> TextTable | None:
    """Open a table with a header, by whichever delimiter gives column names that ``fits`` accepts.

    Returns None where the first line holds no such names.
    """
    header = first_line(source)
    if header is None:
        return None
    for delimiter in DELIMITERS:
        names = split_row(header, delimiter)
        if names is not None and len(names) > 1 and fits(names):
            return TextTable(source, delimiter, names)
    names = split_row(header, "\t")
    return TextTable(source, "\t", names) if names is not None and fits(names) else None


Columns = TypeVar("Columns")


def require_table(
    path: Path, columns_of: Callable[[Sequence[str]], Columns | None], expected: str
) -> tuple[TextTable, Columns]:
    """Open a table whose header has the columns that are expected.

    Parameters
    ----------
    path : Path
    columns_of : callable
        Returns the columns, given the names of the header; None where they are missing.
    expected : str
        For the message: what the table must have.

    Raises
    ------
    InputError
        The file is missing, empty or no text, or lacks a column.
    """
    source = open_source(path)
    require_text(source, expected)
    table = open_table(source, lambda names: columns_of(names) is not None)
    columns = columns_of(table.names) if table else None
    if table is None or columns is None:
        names = header_names(first_line(source) or "")
        raise InputError(path, f"{expected}; it has {format_names(names)}")
    return table, columns


def first_line(source: Source) -> str | None:
    """Return the first line that is not blank, without the mark of a comment; None if all are."""
    with source.open() as stream:
        for number, line in text_lines(stream):
            if _is_too_long(line):
                raise InputError(f"{source.name}: line {number}", _TOO_LONG)
            if line.strip():
                return line.strip("\r\n").lstrip("#")
    return None


def header_names(header: str) -> list[str]:
    """Return the names in a header that no table was recognised by, for messages."""
    delimiter = next((mark for mark in DELIMITERS if mark in header), None)
    return (split_row(header, delimiter) if delimiter else None) or [header]


def bounded_lines(lines: Iterator[Line], skip: Skip) -> Iterator[Line]:
    """Yield lines that are not blank; one that is too long is skipped, whole."""
    for number, text in lines:
        if _is_too_long(text):
            skip(number, _TOO_LONG)
        elif text.strip():
            yield number, text


def table_rows(lines: Iterator[Line], delimiter: str, width: int, skip: Skip) -> Iterator[Row]:
    """Yield the cells of each row with the number of its first line.

    Rows whose quotation marks do not fit together are skipped; ``width`` is the number of columns.
    """
    ahead: deque[Line] = deque()
    while line := ahead.popleft() if ahead else next(lines, None):
        number, text = line
        cells = split_row(text, delimiter)
        if cells is None and delimiter == "\t":
            # In tables of tabs a quotation mark is often a prime of a name and quotes nothing.
            plain = text.strip("\r\n").split("\t")
            cells = plain if len(plain) == width else None
        if cells is None:  # a quoted cell may run on over lines
            cells, used = _parse_quoted(_lines_of_row(text, lines, ahead), delimiter)
            for _ in range(used - 1 if cells is not None else 0):
                ahead.popleft()
        if cells is None:
            skip(number, Reason("has a quotation mark that is not closed", "malformed"))
        else:
            yield number, cells


def _lines_of_row(text: str, lines: Iterator[Line], ahead: deque[Line]) -> Iterator[str]:
    """Yield lines that a row may run over; those behind the first stay in ``ahead``."""
    yield text
    size = len(text)
    for index in range(_MAX_LINES):
        if index == len(ahead):
            line = next(lines, None)
            if line is None:
                return
            ahead.append(line)
        size += len(ahead[index][1])
        if size > MAX_ROW:
            return
        yield ahead[index][1]


def split_row(text: str, delimiter: str) -> list[str] | None:
    r"""Return the cells of a row; None where its quotation marks do not fit together.

    Examples
    --------
    >>> split_row('"butane, 2-methyl-",CCC(C)C,5" rod\n', ",")
    ['butane, 2-methyl-', 'CCC(C)C', '5" rod']
    >>> split_row('"never closed,CCO', ",") is None
    True
    """
    if '"' not in text:
        return text.rstrip("\r\n").split(delimiter)
    return _parse_quoted([text], delimiter)[0]


def _parse_quoted(lines: Iterable[str], delimiter: str) -> tuple[list[str] | None, int]:
    """Return the cells of the first row (None if malformed) and the number of lines it takes."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    with _csv_limit:  # the longest cell is set for the whole process; callers bound lines
        before = csv.field_size_limit(_MAX_CELL)
        try:
            return next(reader), reader.line_num
        except (csv.Error, StopIteration):
            return None, reader.line_num
        finally:
            csv.field_size_limit(before)


def _is_too_long(line: str) -> bool:
    return len(line) > MAX_ROW or isinstance(line, LongLine)
