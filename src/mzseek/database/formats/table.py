"""Molecules in tables: text with a header, cells between tabs, semicolons, commas or bars."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from mzseek.database.formats.columns import (
    EXPORTED,
    FEATURE,
    USUAL,
    find_columns,
    holds_molecules,
    record_of,
    require_columns,
)
from mzseek.database.record import MoleculeRecord
from mzseek.files import Source
from mzseek.files.streams.table import TextTable, open_table, sole_column
from mzseek.rejects import Report

# Of a table that mzseek wrote itself.
_EXPORTED_COLUMNS = {"smiles": "smiles", "id": "identifiers", "name": "names", "source": "sources"}


def reader_of(
    source: Source, named: Mapping[str, str]
) -> Callable[[Report, str], Iterator[MoleculeRecord]] | None:
    """Reader of a table with a column of molecules; a table of one column is a list."""

    def fits(names: Sequence[str]) -> bool:
        if len(names) < 2:
            return False
        return _is_export(names, named) or holds_molecules(find_columns(source.name, names, named))

    table = open_table(source, fits)
    if table is None:
        return None
    if _is_export(table.names, named):
        places = {}
        for meaning, name in _EXPORTED_COLUMNS.items():
            place = sole_column(source.name, table.names, [name])
            places[meaning] = EXPORTED.index(name) if place is None else place
        found = find_columns(source.name, table.names, {FEATURE: USUAL} if FEATURE in named else {})
        if FEATURE in found:
            places[FEATURE] = found[FEATURE]
        return partial(_read, table, places, True)
    places = find_columns(source.name, table.names, named)
    require_columns(source.name, table.names, places, named)
    return partial(_read, table, places, False)


def _is_export(names: Sequence[str], named: Mapping[str, str]) -> bool:
    return tuple(names[: len(EXPORTED)]) == EXPORTED and not any(named.values())


def _read(
    table: TextTable, places: Mapping[str, int], is_listed: bool, report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Records of a table, line by line."""
    file, width = table.source.name, len(table.names)

    def set_aside(number: int, reason: str) -> None:
        report(f"{file}: line {number}", reason)

    for number, cells in table.rows(set_aside):
        if len(cells) != width and any(cells[width:] or ["short"]):
            set_aside(number, f"has {len(cells)} columns, expected {width}")
            continue
        record = record_of(f"{file}: line {number}", cells, places, origin)
        if record is None:
            set_aside(number, "has no molecule")
        else:
            yield record._replace(is_listed=True) if is_listed else record
