"""Feature tables of other programs, known by their headers; their rows stay as bytes.

A table that something is joined to must not change: no cell is written again, only what is put
behind them.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mzseek.errors import InputError
from mzseek.files import Source, open_source
from mzseek.files.limits import MAX_ROW
from mzseek.files.streams.table import (
    DELIMITERS,
    first_line,
    header_names,
    plain_name,
    require_text,
    shown_names,
    split_row,
)

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20
_MOST_BEFORE = 20  # lines before the header; MS-DIAL has four or five, Progenesis two
_MOST_LINES = 50  # that a quoted cell may run on over


@dataclass(frozen=True)
class Form:
    """How a program writes feature tables: names of columns, as `plain_name` writes them.

    Attributes
    ----------
    name : str
        Of the program.
    id : tuple of str
        By preference; an empty one is a first column without a name.
    mz : str
    others : tuple of str
        That its tables have as well.
    ion : tuple of str
        Where it states the ion, by preference.
    neutral : str
        Mass of the neutral molecule; MetaboScape has it where others have the m/z.
    example : str
        Of its columns, for messages.
    """

    name: str
    id: tuple[str, ...]
    mz: str
    others: tuple[str, ...] = ()
    ion: tuple[str, ...] = ()
    neutral: str = ""
    example: str = ""


_MZMINE_IONS = ("bestion", "ionidentitiesionidentities", "rowidentity", "rowidentitymainid")
_METABOSCAPE_IDS = ("featureid", "bucketlabel")
FORMS = (
    Form("MZmine", ("rowid",), "rowmz", ion=_MZMINE_IONS, example="row ID, row m/z"),
    Form("MZmine", ("id",), "mz", ("rt",), _MZMINE_IONS, example="id, mz, rt"),
    Form(
        "MS-DIAL", ("alignmentid",), "averagemz", ion=("adducttype", "adductionname"),
        example="Alignment ID, Average Mz",
    ),
    Form(
        "Progenesis QI", ("compound",), "mz", ("charge", "retentiontimemin"), ("adducts",),
        "neutralmassda", "Compound, m/z, Charge, Retention time (min)",
    ),
    Form(
        "MetaboScape", _METABOSCAPE_IDS, "pepmass", ("rt",), ("adduct", "adducts", "ion"),
        "pepmass", "FEATURE_ID, RT, PEPMASS",
    ),
    Form(
        "MetaboScape", _METABOSCAPE_IDS, "mzmeas", ("rtmin",), ("ions", "adduct"), "mmeas",
        "Bucket label, RT [min], m/z meas.",
    ),
    Form(
        "XCMS", ("featureid", "rowid", "feature", "rownames", "featureidx", "name", ""), "mzmed",
        ("rtmed",), ("bestion", "adduct", "adducts"), example="mzmed, rtmed",
    ),
)  # fmt: skip


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
    """A table of features, as one of the programs of `FORMS` writes it.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    form : Form
    delimiter : str
    names : list of str
        Of its columns.
    width : int
        Cells of a row: R writes row names under no header, and rows are then longer by one.
    id, mz : int
        Places of these columns in a row.
    ion, neutral : int or None
        Likewise, where the table has them.
    before : int
        Rows before the header.

    Raises
    ------
    InputError
        It is no such table.
    """

    def __init__(self, path: Path) -> None:
        self._source: Source = open_source(path)
        head = require_text(self._source, "expected a feature table as CSV or TSV")
        if head.startswith(_WIDE):
            raise InputError(path, "is in UTF-16, expected UTF-8; save it again")
        for delimiter in DELIMITERS:
            self.delimiter = delimiter
            for place, row in enumerate(self.rows()):
                if self._is_header(row):
                    self.before = place
                    return
                if place >= _MOST_BEFORE:
                    break
        examples: dict[str, list[str]] = {}
        for form in FORMS:
            examples.setdefault(form.name, []).append(form.example)
        *first, last = (f"{name} ({'; or '.join(all_)})" for name, all_ in examples.items())
        raise InputError(
            path,
            f"is no table of features: it begins with {shown_names(self._beginning())}; expected "
            f"columns of {', '.join(first)} or {last}",
        )

    def _is_header(self, row: Row) -> bool:
        """Whether a row is the header; then takes the columns from it."""
        plain = [plain_name(name) for name in row.cells]
        for form in FORMS:
            if any(plain.count(name) != 1 for name in (form.mz, *form.others)):
                continue
            shift = 0
            found = [name for name in form.id if name and plain.count(name) == 1]
            if found:
                self.id = plain.index(found[0])
            elif "" in form.id and (not plain[0] or self._has_row_names(row)):
                self.id, shift = 0, 1 if plain[0] else 0
            else:
                continue
            self.form, self.names, self.width = form, row.cells, len(row.cells) + shift
            self.mz = plain.index(form.mz) + shift
            self.ion, self.neutral = (
                next((plain.index(name) + shift for name in names if plain.count(name) == 1), None)
                for names in (form.ion, (form.neutral,) if form.neutral else ())
            )
            return True
        return False

    def _has_row_names(self, header: Row) -> bool:
        """Whether rows have one cell more than the header, as R's ``write.table`` makes them."""
        behind = (row for row in self.rows() if row.number > header.number and row.text.strip())
        row = next(behind, None)
        return row is not None and len(row.cells) == len(header.cells) + 1

    def _beginning(self) -> list[str]:
        first = first_line(self._source)
        return header_names(first) if first else []

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
