"""Read text tables in bounded memory: header, delimiter, columns, cells."""

import codecs
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mzseek.core.errors import InputError
from mzseek.io.sources import MAX_ROW, LongLine, Source, text_lines

# All of Unicode's controls, its line and paragraph ends, the marks that turn the direction of text
# around, and halves of characters, which no file can hold.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Behind apostrophes, too, so that taking one away gives what was there.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_BETWEEN = "; "
_PARTS = re.compile(r"((?:\\.|(?!; )[^\\])*)(?:; |\Z)", re.DOTALL)


def visible(text: str) -> str:
    r"""Text with each control character as a mark.

    Examples
    --------
    >>> visible("a\x1b[2Jb")
    'a�[2Jb'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def text_cell(text: str) -> str:
    r"""A cell of free text: on one line, without control characters, and no formula.

    Examples
    --------
    >>> text_cell("=cmd|' /C calc'!A0"), text_cell("two\nlines"), text_cell("2-propanol")
    ("'=cmd|' /C calc'!A0", 'two lines', '2-propanol')
    """
    shown = visible(" ".join(text.split()))
    return f"'{shown}" if _FORMULA.match(shown) else shown


def cell_text(cell: str) -> str:
    """What `text_cell` made a cell of.

    Examples
    --------
    >>> cell_text("'-carotene"), cell_text("'t Hooft")
    ('-carotene', "'t Hooft")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def list_cell(values: Iterable[str]) -> str:
    r"""Several texts in one cell, with ``; `` between them.

    Examples
    --------
    >>> list_cell(["caffeine", "Coffein"]), list_cell(["a; b", "c"])
    ('caffeine; Coffein', 'a\\; b; c')
    """
    parts = (value.replace("\\", "\\\\").replace(_BETWEEN, "\\; ") for value in values)
    return text_cell(_BETWEEN.join(parts))


def cell_texts(cell: str) -> list[str]:
    r"""What `list_cell` made a cell of.

    Examples
    --------
    >>> cell_texts("caffeine; Coffein"), cell_texts("a\\; b; c"), cell_texts("")
    (['caffeine', 'Coffein'], ['a; b', 'c'], [])
    """
    texts = [match[1] for match in _PARTS.finditer(cell_text(cell))]
    return [re.sub(r"\\(.)", r"\1", part) for part in texts if part]


Line = tuple[int, str]
Row = tuple[int, list[str]]
SetAside = Callable[[int, str], object]

DELIMITERS = "\t;,|"
MAX_COLUMNS = 10_000
# A quoted cell may run on over lines; one that goes on for longer was never closed.
_MOST_LINES = 50
_INSIDE_QUOTES = re.compile(r'(?:[^"]++|"")*+')
_LONGEST_NAME = 200  # of a column that is known
_SHOWN = 12
_SHOWN_TWINS = 4
_MARKS = re.compile(r"[^a-z0-9]")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a]")


def normalise_name(name: str) -> str:
    """A column's name without case, blanks and marks.

    Examples
    --------
    >>> normalise_name("Canonical SMILES"), normalise_name("precursor_mz"), normalise_name("m/z")
    ('canonicalsmiles', 'precursormz', 'mz')
    """
    return _MARKS.sub("", name.lower()) if len(name) <= _LONGEST_NAME else name


def find_column(
    file: object, names: Sequence[str], wanted: Sequence[str], *, exact: bool = False
) -> int | None:
    """Place of the first of several names that a header has; two columns of that name are refused.

    Parameters
    ----------
    file : object
        For the message.
    names : sequence of str
        The header's.
    wanted : sequence of str
        By preference, as `normalise_name` writes them.
    exact : bool
        Compare names as they are, but for blanks around them.

    Returns
    -------
    int or None
        None where no column has any of the names.

    Raises
    ------
    InputError
        Two columns have the name that is taken: which of them is meant cannot be known.

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
    places_of: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places_of.setdefault(name.strip() if exact else normalise_name(name), []).append(place)
    for name in wanted:
        places = places_of.get(name, []) if name else []
        if len(places) > 1:
            shown = [f"{p + 1} ({names[p].strip()[:40]!r})" for p in places[:_SHOWN_TWINS]]
            more = f" and {len(places) - len(shown)} more" if len(places) > len(shown) else ""
            listed = ", ".join(shown) + more if more else " and ".join(shown)
            reason = f"columns {listed} have one name, expected one column of it"
            raise InputError(file, reason)
        if places:
            return places[0]
    return None


def format_names(names: Sequence[str]) -> str:
    """Names of columns for a message, the first few of them."""
    shown = ", ".join(repr(name.strip()[:40]) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def require_text(source: Source, expected: str) -> bytes:
    """The beginning of a file; `InputError` where it is empty or shows that this is no text."""
    head = source.head()
    if not head.strip():
        raise InputError(source.name, "the file is empty")
    if _NO_TEXT.search(head) and not head.startswith(_WIDE):
        raise InputError(source.name, f"is not a text file; {expected}")
    return head


@dataclass(frozen=True)
class TextTable:
    """A table in a text file, by its header.

    Attributes
    ----------
    source : Source
    delimiter : str
        Between cells; a table of one column has none, and gets a tab.
    names : list of str
        Of the columns, as they are written.
    """

    source: Source
    delimiter: str
    names: list[str]

    def rows(self, set_aside: SetAside) -> Iterator[Row]:
        """Cells of each row with the number of its line; as many as the row has."""
        with self.source.open() as stream:
            lines = bounded_lines(text_lines(stream), set_aside)
            next(lines, None)
            yield from table_rows(lines, self.delimiter, len(self.names), set_aside)


def open_table(source: Source, fits: Callable[[Sequence[str]], bool]) -> TextTable | None:
    """The table that a file holds: tabs, semicolons, commas or bars, a header, plain or packed.

    Parameters
    ----------
    source : Source
    fits : callable of the names of columns
        Whether they are those of the table that is looked for: this tells the delimiter.

    Returns
    -------
    TextTable or None
        None where the first line holds no such names.
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


def first_line(source: Source) -> str | None:
    """The first line that is not blank, without the mark of a comment; None if all are."""
    with source.open() as stream:
        for number, line in text_lines(stream):
            if is_too_long(line):
                raise InputError(f"{source.name}: line {number}", _too_long())
            if line.strip():
                return line.strip("\r\n").lstrip("#")
    return None


def header_names(header: str) -> list[str]:
    """Names in a header that no table was recognised by, for the message that says so."""
    delimiter = next((mark for mark in DELIMITERS if mark in header), None)
    return (split_row(header, delimiter) if delimiter else None) or [header]


def bounded_lines(lines: Iterator[Line], set_aside: SetAside) -> Iterator[Line]:
    """Lines that are not blank; one that is too long is set aside, whole."""
    for number, text in lines:
        if is_too_long(text):
            set_aside(number, _too_long())
        elif text.strip():
            yield number, text


def table_rows(
    lines: Iterator[Line], delimiter: str, width: int, set_aside: SetAside
) -> Iterator[Row]:
    """Cells of each row, with the number of its first line.

    Parameters
    ----------
    lines : iterator of (int, str)
        Numbered lines, of `bounded_lines`.
    delimiter : str
    width : int
        Columns of the table.
    set_aside : callable of a number and a reason
        For rows whose quotation marks do not fit together.
    """
    ahead: deque[Line] = deque()
    while line := ahead.popleft() if ahead else next(lines, None):
        number, text = line
        if '"' not in text:  # as in most
            yield number, text.rstrip("\r\n").split(delimiter)
            continue
        row = _Row(delimiter)
        row.add(text)
        cells = row.cells if row.is_whole else None
        if cells is None and delimiter == "\t":
            # In tables of tabs a quotation mark is often a prime of a name and quotes nothing.
            plain = text.strip("\r\n").split("\t")
            cells = plain if len(plain) == width else None
        if cells is None and row.is_open:
            cells = _cells_over_lines(row, text, lines, ahead)
        if cells is None:
            set_aside(number, "has a quotation mark that is not closed")
        else:
            yield number, cells


def _cells_over_lines(
    row: "_Row", text: str, lines: Iterator[Line], ahead: deque[Line]
) -> list[str] | None:
    """Cells of a row with line breaks inside quotation marks; lines beyond it stay ahead."""
    size = len(text)
    for place in range(_MOST_LINES):
        if place == len(ahead):
            line = next(lines, None)
            if line is None:
                return None
            ahead.append(line)
        size += len(ahead[place][1])
        if size > MAX_ROW:
            return None
        row.add(ahead[place][1])
        if not row.is_open:
            for _ in range(place + 1 if row.is_whole else 0):
                ahead.popleft()
            return row.cells if row.is_whole else None
    return None


def split_row(text: str, delimiter: str) -> list[str] | None:
    r"""Cells of a row; none where its quotation marks do not fit together.

    Python's csv module refuses cells past a length that is set for the whole process; here a row
    is as long as whoever reads lines lets it be.

    Examples
    --------
    >>> split_row('"butane, 2-methyl-",CCC(C)C,5" rod\n', ",")
    ['butane, 2-methyl-', 'CCC(C)C', '5" rod']
    >>> split_row('"never closed,CCO', ",") is None
    True
    """
    if '"' not in text:
        return text.rstrip("\r\n").split(delimiter)
    row = _Row(delimiter)
    row.add(text)
    return row.cells if row.is_whole else None


class _Row:
    """A row that is cut into cells while its lines come in: none of them is looked at twice."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._quoted: list[str] | None = None  # of the cell whose quotation mark is not closed yet
        self.cells: list[str] = []
        self.is_whole = False

    @property
    def is_open(self) -> bool:
        """Whether its next line may make it whole."""
        return self._quoted is not None

    def add(self, line: str) -> None:
        """Its next line; then it is whole, or open, or neither: no row at all."""
        text = line.rstrip("\r\n")
        place = 0
        while not self.is_whole:
            if self._quoted is None and text.startswith('"', place):
                self._quoted, place = [], place + 1
            end = self._end_of_cell(text, place)
            if self._quoted is not None:
                self._quoted.append(text[place:end])
                if end == len(text):
                    self._quoted.append(line[end:])
                    return
                self.cells.append("".join(self._quoted).replace('""', '"'))
                self._quoted, end = None, end + 1
            else:
                self.cells.append(text[place:end])
            self.is_whole = end == len(text)
            if not self.is_whole and text[end] != self._delimiter:
                return
            place = end + 1

    def _end_of_cell(self, text: str, place: int) -> int:
        if self._quoted is None:
            end = text.find(self._delimiter, place)
            return len(text) if end < 0 else end
        inside = _INSIDE_QUOTES.match(text, place)
        return inside.end() if inside else place


def is_too_long(line: str) -> bool:
    """Whether a line is longer than a row may be."""
    return len(line) > MAX_ROW or isinstance(line, LongLine)


def _too_long() -> str:
    return f"is longer than {MAX_ROW:,} characters"
