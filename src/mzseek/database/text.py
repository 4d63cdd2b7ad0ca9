"""Molecules in text: tables with a header, and lists of SMILES without one."""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mzseek.chem.molecule import parse_molecule
from mzseek.database.columns import (
    MOLECULE,
    find_columns,
    holds_molecules,
    molecule_text,
    one_line,
    record_of,
    require_columns,
    shown_names,
)
from mzseek.database.record import Record
from mzseek.errors import InputError, MoleculeError
from mzseek.files import Source, text_lines
from mzseek.rejects import Report

Line = tuple[int, str]
EXPECTED = "expected a table with a smiles column, a list of SMILES, SDF or Parquet"
# A list is known by its first lines: so many of them, and one in so many has to be a molecule.
_LOOKED_AT = 20
_ONE_IN = 4
# A quoted cell may run on over lines; one that goes on for longer was never closed.
_LONGEST_CELL = 50
_LONGEST_ROW = 1_000_000


@dataclass(frozen=True)
class Layout:
    """How a text file holds its molecules.

    Attributes
    ----------
    kind : str
        ``table``, ``list`` (SMILES, white space, title) or ``id-list`` (id, tab, SMILES).
    has_header : bool
        The first line that is not blank holds no molecule.
    delimiter : str
        Between the cells of a table.
    width : int
        Columns of a table.
    places : mapping of str to int
        Columns of a table by meaning.
    """

    kind: str
    has_header: bool = False
    delimiter: str = ""
    width: int = 0
    places: Mapping[str, int] = field(default_factory=dict)


def find_layout(source: Source, named: Mapping[str, str]) -> Layout:
    """Layout of a text file, by its first lines.

    Raises
    ------
    InputError
        No table or list of molecules; the message lists the columns that the file has.
    """
    with source.open() as stream:
        lines = (line for _, line in text_lines(stream) if line.strip())
        sample = list(islice(lines, _LOOKED_AT))
    if not sample:
        raise InputError(source.name, "the file is empty")
    header = sample[0].strip("\r\n").lstrip("#")
    layout = _table(source.name, header, named) or _headed_list(header, named) or _list(sample)
    if layout is None:
        raise InputError(source.name, _what_is_wrong(header, named))
    return layout


def read_text(source: Source, layout: Layout, report: Report, origin: str) -> Iterator[Record]:
    """Records of a text file, line by line."""
    with source.open() as stream:
        lines = (numbered for numbered in text_lines(stream) if numbered[1].strip())
        if layout.has_header:
            next(lines, None)
        if layout.kind == "table":
            yield from _read_table(source.name, lines, layout, report, origin)
        else:
            split = _id_first if layout.kind == "id-list" else _smiles_first
            yield from _read_list(source.name, lines, split, report, origin)


def _table(file: str, header: str, named: Mapping[str, str]) -> Layout | None:
    for delimiter in "\t;,":
        names = _cells(header, delimiter)
        if names is None or len(names) < 2:
            continue
        places = find_columns(names, named)
        if holds_molecules(places):
            require_columns(file, names, places, named)
            return Layout("table", True, delimiter, len(names), places)
    return None


def _headed_list(header: str, named: Mapping[str, str]) -> Layout | None:
    """A list below ``smiles`` or ``smiles zinc_id``."""
    molecule = {meaning: name for meaning, name in named.items() if meaning in MOLECULE}
    title = header.strip().strip('"')
    for name in (title, title.split(maxsplit=1)[0] if title else ""):
        if holds_molecules(find_columns([name], molecule)):
            return Layout("list", True)
    return None


def _list(sample: Sequence[str]) -> Layout | None:
    """A list without a header, known by the molecules in it."""
    first = sum(_is_molecule(_smiles_first(line)[0]) for line in sample)
    second = sum(_is_molecule(_id_first(line)[0]) for line in sample)
    if max(first, second) * _ONE_IN < len(sample):
        return None
    return Layout("list" if first >= second else "id-list")


def _is_molecule(text: str) -> bool:
    if text.startswith("InChI="):
        return True
    try:
        parse_molecule(text)
    except MoleculeError:
        return False
    return True


def _what_is_wrong(header: str, named: Mapping[str, str]) -> str:
    delimiter = next((mark for mark in "\t;," if mark in header), None)
    names = (_cells(header, delimiter) if delimiter else None) or [header]
    for meaning in MOLECULE:
        if meaning in named:
            return f"no column is called {named[meaning]!r}; it has {shown_names(names)}"
    if len(names) > 1:
        return f"no column holds molecules; it has {shown_names(names)}; {EXPECTED}"
    return f"is no list of molecules (it begins with {header.strip()[:40]!r}); {EXPECTED}"


def _smiles_first(line: str) -> tuple[str, str, str]:
    """Molecule, identifier and name of ``SMILES title`` or ``SMILES<tab>id<tab>name``."""
    text, _, rest = line.strip().replace("\t", " \t", 1).partition(" ")
    if rest.lstrip().startswith("|"):  # CXSMILES
        rest = rest.lstrip()[1:].partition("|")[2]
    identifier, tab, name = rest.strip().partition("\t")
    identifier, name = one_line(identifier), one_line(name)
    if not tab and " " in identifier:  # an identifier is one word
        identifier, name = "", identifier
    return text.strip('"'), identifier, name


def _id_first(line: str) -> tuple[str, str, str]:
    """Molecule, identifier and name of ``id<tab>SMILES`` or ``id<tab>SMILES<tab>name``."""
    identifier, text, name = [*line.strip("\r\n").split("\t", 2), "", ""][:3]
    return molecule_text(text), one_line(identifier), one_line(name)


def _read_list(
    file: str,
    lines: Iterator[Line],
    split: Callable[[str], tuple[str, str, str]],
    report: Report,
    origin: str,
) -> Iterator[Record]:
    for number, line in lines:
        where = f"{file}: line {number}"
        text, identifier, name = split(line)
        if text:
            yield Record(where, text, identifier, name, origin)
        else:
            report(where, "has no molecule")


def _read_table(
    file: str, lines: Iterator[Line], layout: Layout, report: Report, origin: str
) -> Iterator[Record]:
    for number, cells in _rows(file, lines, layout, report):
        where = f"{file}: line {number}"
        if len(cells) != layout.width and any(cells[layout.width :] or ["short"]):
            report(where, f"has {len(cells)} columns, expected {layout.width}")
            continue
        record = record_of(where, cells, layout.places, origin)
        if record is None:
            report(where, "has no molecule")
        else:
            yield record


def _rows(
    file: str, lines: Iterator[Line], layout: Layout, report: Report
) -> Iterator[tuple[int, list[str]]]:
    """Cells of each row, with the number of its first line."""
    ahead: deque[Line] = deque()
    while line := ahead.popleft() if ahead else next(lines, None):
        number, text = line
        cells = _cells(text, layout.delimiter)
        if cells is None and layout.delimiter == "\t":
            # In tables of tabs a quotation mark is often a prime of a name and quotes nothing.
            plain = text.strip("\r\n").split("\t")
            cells = plain if len(plain) == layout.width else None
        if cells is None:
            cells = _cells_over_lines(text, lines, ahead, layout.delimiter)
        if cells is None:
            report(f"{file}: line {number}", "has a quotation mark that is not closed")
        else:
            yield number, cells


def _cells_over_lines(
    text: str, lines: Iterator[Line], ahead: deque[Line], delimiter: str
) -> list[str] | None:
    """Cells of a row with line breaks inside quotation marks; lines beyond it stay ahead."""
    for place in range(_LONGEST_CELL):
        if place == len(ahead):
            line = next(lines, None)
            if line is None:
                return None
            ahead.append(line)
        text += ahead[place][1]
        if len(text) > _LONGEST_ROW:
            return None
        cells = _cells(text, delimiter)
        if cells is not None:
            for _ in range(place + 1):
                ahead.popleft()
            return cells
    return None


def _cells(text: str, delimiter: str) -> list[str] | None:
    """Cells of a row; none where its quotation marks do not fit together."""
    text = text.rstrip("\r\n")
    if '"' not in text:
        return text.split(delimiter)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None
