"""A table of features, by its header: MZmine's or MS-DIAL's; its rows stay as bytes.

Whoever joins something to a table must not change it: no cell is written again, only what is put
behind them.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mzseek.errors import InputError
from mzseek.files import Source, open_source
from mzseek.files.limits import MAX_ROW
from mzseek.files.streams.table import DELIMITERS, plain_name, require_text, split_row

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20
_MOST_BEFORE = 20  # lines before the header; MS-DIAL has four or five
_MOST_LINES = 50  # that a quoted cell may run on over


@dataclass(frozen=True)
class Form:
    """How a program writes such tables: its name, and those of its columns for id and m/z."""

    name: str
    id: str
    mz: str
    others: tuple[str, ...] = ()


FORMS = (
    Form("MZmine", "rowid", "rowmz"),
    Form("MZmine", "id", "mz", ("rt",)),
    Form("MS-DIAL", "alignmentid", "averagemz"),
)


@dataclass(frozen=True)
class Row:
    """A row: its line end apart.

    Attributes
    ----------
    number : int
        Of its first line.
    text, end : bytes
        As they stand in the file.
    cells : list of str
        None for a row that cannot be cut.
    """

    number: int
    text: bytes
    end: bytes
    cells: list[str]


class FeatureTable:
    """A table of features.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    form : Form
    delimiter : str
    names : list of str
        Of its columns.
    id, mz : int
        Places of two of them.
    before : int
        Rows before the header.

    Raises
    ------
    InputError
        It is no such table.
    """

    def __init__(self, path: Path) -> None:
        self._source: Source = open_source(path)
        head = require_text(self._source, "expected a table of features")
        if head.startswith(_WIDE):
            raise InputError(path, "is in UTF-16, expected UTF-8; save it again")
        for delimiter in DELIMITERS:
            self.delimiter = delimiter
            for place, row in enumerate(self.rows()):
                form = _form(row.cells)
                if form is not None:
                    plain = [plain_name(name) for name in row.cells]
                    self.form, self.names, self.before = form, row.cells, place
                    self.id, self.mz = plain.index(form.id), plain.index(form.mz)
                    return
                if place >= _MOST_BEFORE:
                    break
        raise InputError(
            path,
            "is no table of features, expected MZmine's (with 'row ID' and 'row m/z') or MS-DIAL's "
            "(with 'Alignment ID' and 'Average Mz')",
        )

    def rows(self) -> Iterator[Row]:
        """All rows, those before the header and the header included."""
        quotes = self.delimiter != "\t"  # in tables of tabs a quotation mark is a prime in a name
        waiting: list[bytes] = []
        first = 1
        for number, line in enumerate(_lines(self._source), 1):
            if not waiting:
                first = number
            waiting.append(line)
            whole = b"".join(waiting)
            if len(whole) > MAX_ROW:
                where = f"{self._source.name}: line {first}"
                raise InputError(where, f"is longer than {MAX_ROW:,} bytes")
            if quotes and whole.count(b'"') % 2 and len(waiting) < _MOST_LINES:
                continue
            yield self._row(first, whole)
            waiting = []
        if waiting:
            yield self._row(first, b"".join(waiting))

    def _row(self, number: int, whole: bytes) -> Row:
        text = whole.rstrip(b"\r\n")
        shown = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        cut = None if self.delimiter == "\t" else split_row(shown, self.delimiter)
        cells = cut if cut is not None else shown.split(self.delimiter)
        return Row(number, text, whole[len(text) :], cells)


def _form(names: Sequence[str]) -> Form | None:
    plain = [plain_name(name) for name in names]
    for form in FORMS:
        if all(plain.count(name) == 1 for name in (form.id, form.mz, *form.others)):
            return form
    return None


def _lines(source: Source) -> Iterator[bytes]:
    """Lines with their ends, of any length up to a row's."""
    with source.open() as stream:
        rest = b""
        while data := stream.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            yield from (line + b"\n" for line in lines)
            if len(rest) > MAX_ROW:
                raise InputError(source.name, f"a line is longer than {MAX_ROW:,} bytes")
        if rest:
            yield rest
