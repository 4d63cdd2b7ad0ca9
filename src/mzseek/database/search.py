"""Batches of queries on a database."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import AdductError, DatabaseError, InputError, Reason
from mzseek.database.formats.tables import KNOWN, one_line
from mzseek.database.store import Database, Matches
from mzseek.io import Source, StrPath, open_source, text_lines
from mzseek.io.skipped import Report
from mzseek.io.sources import MAX_QUERIES
from mzseek.io.text_tables import (
    Skip,
    TextTable,
    bounded_lines,
    find_column,
    first_line,
    format_names,
    header_names,
    open_table,
    require_text,
)

DEFAULT_ADDUCT = "[M+H]+"
# What `look_up` adds to the columns of the molecules.
ADDED_COLUMNS = ("ppm", "adduct", "asked", "query")
_EXPECTED = (
    "expected one mass a line, or a table with a column mass, or with mz (or precursor_mz) and "
    "perhaps adduct"
)
# By preference, written without case, blanks and marks.
_MASS = ("mass", "exactmass", "monoisotopicmass", "neutralmass")
_MZ = ("precursormz", "mz", "rowmz")
_ADDUCT = ("adduct", "precursortype")
_ID = ("featureid", "rowid", *KNOWN["id"])


class Query(NamedTuple):
    """A mass, or the m/z of an ion, to look up.

    Attributes
    ----------
    name : str
        Distinguishes results.
    value : float
    adduct : str
        Of the ion; empty where the value is a neutral mass.
    """

    name: str
    value: float
    adduct: str = ""


def typed_queries(
    masses: Sequence[float], precursors: Sequence[float], adducts: Sequence[str]
) -> list[Query]:
    """Make numbered queries of command-line values; every m/z with every adduct.

    Raises
    ------
    AdductError, DatabaseError
        A value is invalid; all are checked before the first look-up.
    """
    for mass in masses:
        if not (math.isfinite(mass) and mass > 0):
            raise DatabaseError(f"mass {mass:g}: expected a positive number")
    ions = [(n, mz, a) for n, mz in enumerate(precursors, 1) for a in adducts or (DEFAULT_ADDUCT,)]
    queries = [Query(str(n), mass) for n, mass in enumerate(masses, 1)]
    return [*queries, *(_query(str(n), mz, adduct) for n, mz, adduct in ions)]


def read_queries(path: StrPath, adducts: Sequence[str], report: Report) -> list[Query]:
    """Read the queries of a file.

    Parameters
    ----------
    path : Path
        Masses, one a line; or a table with a column ``mass``, or with ``mz`` or ``precursor_mz``
        and perhaps ``adduct``. Queries are named by an id column, else by their lines.
    adducts : sequence of str
        For m/z whose row has none; ``[M+H]+`` by default.
    report : callable
        Gets where and why for each line that is no query.

    Raises
    ------
    InputError
        No line is a query, the header can be read in two ways, or adducts were given for neutral
        masses.
    """
    path = Path(path)
    source = open_source(path)
    require_text(source, _EXPECTED)
    table = open_table(source, lambda names: _find(path, names) is not None)
    columns = _find(path, table.names) if table else None
    if adducts and not (columns and columns.is_mz):
        raise InputError(path, "holds neutral masses, which have no adduct; m/z need a column mz")
    adduct_names = [parse_adduct(text).name for text in adducts or (DEFAULT_ADDUCT,)]
    first = ""

    def skip(number: int, reason: str) -> None:
        nonlocal first
        first = first or f" (line {number}: {reason})"
        report(f"{path}: line {number}", reason)

    if table and columns:
        read = _of_table(table, columns, adduct_names, skip)
    else:
        read = _of_lines(source, skip)
    queries = list(islice(read, MAX_QUERIES + 1))
    if len(queries) > MAX_QUERIES:
        raise InputError(path, f"holds more than {MAX_QUERIES:,} masses, look them up in parts")
    if not queries:
        names = header_names(first_line(source) or "")
        if len(names) > 1 and not table:
            first = f" (it has the columns {format_names(names)})"
        raise InputError(path, f"holds nothing to look up{first}; {_EXPECTED}")
    return queries


def look_up(database: Database, query: Query, ppm: float, **capping: Any) -> Matches:
    """Look up the molecules of a query; their errors and the query are added as columns.

    Errors are of the mass (or m/z of the ion) against that of the query, in ppm of the latter.
    """
    if query.adduct:
        molecules = database.by_precursor(query.value, query.adduct, ppm, **capping)
        ion = parse_adduct(query.adduct)
        values = ion.slope * molecules.table["mass"].to_numpy() + ion.offset
    else:
        molecules = database.by_mass(query.value, ppm, **capping)
        values = molecules.table["mass"].to_numpy()
    table = molecules.table.append_column(
        "ppm", pa.array((values - query.value) / query.value * 1e6)
    )
    texts = (query.adduct, repr(float(query.value)), query.name)
    for name, text in zip(ADDED_COLUMNS[1:], texts, strict=True):
        table = table.append_column(name, pa.array([text] * len(molecules), pa.string()))
    return Matches(table, molecules.total)


class _Columns(NamedTuple):
    """Indices of a table's columns; the first is of m/z or of neutral masses."""

    value: int
    is_mz: bool
    adduct: int | None
    name: int | None


def _find(file: Path, names: Sequence[str]) -> _Columns | None:
    mass, mz = find_column(file, names, _MASS), find_column(file, names, _MZ)
    if mass is not None and mz is not None:
        listed = " and ".join(f"{p + 1} ({names[p].strip()[:40]!r})" for p in (mass, mz))
        raise InputError(file, f"columns {listed}: which of them to look up is not clear; keep one")
    value = mz if mz is not None else mass
    if value is None:
        return None
    adduct = find_column(file, names, _ADDUCT) if mz is not None else None
    return _Columns(value, mz is not None, adduct, find_column(file, names, _ID))


def _of_lines(source: Source, skip: Skip) -> Iterator[Query]:
    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), skip):
            value = _positive(line)
            if value is None:
                skip(number, _no_mass(line))
            else:
                yield Query(str(number), value)


def _of_table(
    table: TextTable, columns: _Columns, adducts: Sequence[str], skip: Skip
) -> Iterator[Query]:
    for number, cells in table.whole_rows(skip):
        value = _positive(cells[columns.value])
        if value is None:
            skip(number, _no_mass(cells[columns.value]))
            continue
        name = one_line(cells[columns.name]) if columns.name is not None else ""
        stated = cells[columns.adduct].strip() if columns.adduct is not None else ""
        try:
            for adduct in ([stated] if stated else adducts) if columns.is_mz else [""]:
                yield _query(name or str(number), value, adduct)
        except AdductError as error:
            skip(number, error.reason)


def _no_mass(text: str) -> Reason:
    return Reason(f"{text.strip()[:40]!r} is no positive number", "bad-number")


def _query(name: str, value: float, adduct: str) -> Query:
    """Make a query; `AdductError` if no molecule could form such an ion."""
    if not adduct:
        return Query(name, value)
    ion = parse_adduct(adduct)
    ion.neutral_mass(value)
    return Query(name, value, ion.name)


def _positive(text: str) -> float | None:
    """Return a positive number, or None; numbers that only Python reads (1_0) are none."""
    try:
        value = float(text) if "_" not in text else 0.0
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None
