"""Molecules in text: tables with a header, and lists of SMILES without one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mzseek.chem.molecule import inchi_text, parse_molecule
from mzseek.database.formats.columns import (
    EXPORTED,
    MOLECULE,
    find_columns,
    holds_molecules,
    molecule_text,
    one_line,
    record_of,
    require_columns,
)
from mzseek.database.record import MoleculeRecord
from mzseek.errors import InputError, MoleculeError
from mzseek.files import Source, text_lines
from mzseek.files.table import (
    DELIMITERS,
    Line,
    bounded_lines,
    first_line,
    header_names,
    plain_name,
    shown_names,
    sole_column,
    split_row,
    table_rows,
)
from mzseek.rejects import Report

EXPECTED = "expected a table with a smiles column, a list of SMILES, SDF or Parquet"
# A list is known by its first lines: so many of them, and one in so many has to be a molecule.
_LOOKED_AT = 20
_ONE_IN = 4


@dataclass(frozen=True)
class Layout:
    """How a text file holds its molecules.

    Attributes
    ----------
    kind : str
        ``table``, ``export`` (a table that mzseek wrote), ``list`` (SMILES, white space, title) or
        ``id-list`` (id, tab, SMILES).
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
    header = first_line(source)
    if header is None:
        raise InputError(source.name, "the file is empty")
    layout = _table(source.name, header, named) or _headed_list(source.name, header, named)
    layout = layout or _list(source)
    if layout is None:
        raise InputError(source.name, _what_is_wrong(header, named))
    return layout


def read_text(
    source: Source, layout: Layout, report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Records of a text file, line by line."""

    def set_aside(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        lines = bounded_lines(text_lines(stream), set_aside)
        if layout.has_header:
            next(lines, None)
        if layout.kind in ("table", "export"):
            rows = table_rows(lines, layout.delimiter, layout.width, set_aside)
            yield from _read_table(source.name, rows, layout, report, origin)
        else:
            split = _id_first if layout.kind == "id-list" else _smiles_first
            yield from _read_list(source.name, lines, split, report, origin)


def _table(file: str, header: str, named: Mapping[str, str]) -> Layout | None:
    for delimiter in DELIMITERS:
        names = split_row(header, delimiter)
        if names is None or len(names) < 2:
            continue
        if tuple(names[: len(EXPORTED)]) == EXPORTED and not named:
            return _export(file, names, delimiter)
        places = find_columns(file, names, named)
        if holds_molecules(places):
            require_columns(file, names, places, named)
            return Layout("table", True, delimiter, len(names), places)
    return None


def _export(file: str, names: Sequence[str], delimiter: str) -> Layout:
    columns = {"smiles": "smiles", "id": "identifiers", "name": "names", "source": "sources"}
    places = {}
    for meaning, name in columns.items():
        place = sole_column(file, names, [name])
        places[meaning] = place if place is not None else EXPORTED.index(name)
    return Layout("export", True, delimiter, len(names), places)


def _headed_list(file: str, header: str, named: Mapping[str, str]) -> Layout | None:
    """A list below ``smiles`` or ``smiles zinc_id``."""
    molecule = {meaning: name for meaning, name in named.items() if meaning in MOLECULE}
    title = header.strip().strip('"')
    for name in (title, title.split(maxsplit=1)[0] if title else ""):
        if holds_molecules(find_columns(file, [name], molecule)):
            if name != title:
                sole_column(file, title.split(), [plain_name(name)])
            return Layout("list", True)
    return None


def _list(source: Source) -> Layout | None:
    """A list without a header, known by the molecules in it."""
    with source.open() as stream:
        lines = (line for _, line in text_lines(stream) if line.strip())
        sample = list(islice(lines, _LOOKED_AT))
    first = sum(_is_molecule(_smiles_first(line)[0]) for line in sample)
    second = sum(_is_molecule(_id_first(line)[0]) for line in sample)
    if max(first, second) * _ONE_IN < len(sample):
        return None
    return Layout("list" if first >= second else "id-list")


def _is_molecule(text: str) -> bool:
    if inchi_text(text):
        return True
    try:
        parse_molecule(text)
    except MoleculeError:
        return False
    return True


def _what_is_wrong(header: str, named: Mapping[str, str]) -> str:
    names = header_names(header)
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
) -> Iterator[MoleculeRecord]:
    for number, line in lines:
        where = f"{file}: line {number}"
        text, identifier, name = split(line)
        if text:
            yield MoleculeRecord(where, text, identifier, name, origin)
        else:
            report(where, "has no molecule")


def _read_table(
    file: str,
    rows: Iterator[tuple[int, list[str]]],
    layout: Layout,
    report: Report,
    origin: str,
) -> Iterator[MoleculeRecord]:
    for number, cells in rows:
        where = f"{file}: line {number}"
        if len(cells) != layout.width and any(cells[layout.width :] or ["short"]):
            report(where, f"has {len(cells)} columns, expected {layout.width}")
            continue
        record = record_of(where, cells, layout.places, origin)
        if record is None:
            report(where, "has no molecule")
        else:
            yield record._replace(is_listed=True) if layout.kind == "export" else record
