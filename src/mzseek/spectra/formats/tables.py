"""Text tables with a spectrum a row: MassSpecGym's, and others with lists of peaks in cells."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mzseek.core.errors import InputError, Reason, SpectrumError
from mzseek.core.text import shorten
from mzseek.io import LongLine, Source, text_lines
from mzseek.io.sources import MAX_LINE, MAX_PEAKS
from mzseek.io.text_tables import (
    DELIMITERS,
    find_column,
    format_names,
    normalise_name,
    split_row,
    table_rows,
)
from mzseek.spectra.records import READ_FIELDS, Record, canonical_key

# Usual names of columns by what they hold, by preference; compared as `normalise_name` has them.
MZ = ("mzs", "ms2mzs", "mzarray", "mzvalues", "fragmentmzs", "peaksmz", "mz")
INTENSITY = (
    "intensities", "ms2intensities", "ms2normalizedintensities", "normalizedintensities",
    "intensityarray", "intensityvalues", "fragmentintensities", "peaksintensity", "intensity",
)  # fmt: skip
PEAKS = ("peaks", "ms2peaks", "peaklist", "msmspeaks", "msms", "spectrum", "ms2spectrum")
ID = ("featureid", "moleculeid", "compoundid", "sampleid")
PRECURSOR = ("precursormz", "precursor", "ms2precursormz", "pepmass", "parentmz")
# Other fields of a record that the user may name a column for.
_FIELDS = {
    "id": "feature_id",
    "identifier": "identifier",
    "precursor": "precursor_mz",
    "mass": "parent_mass",
    "adduct": "adduct",
    "charge": "charge",
    "polarity": "ionmode",
    "energy": "collision_energy",
    "rt": "retention_time",
    "instrument": "instrument_type",
    "smiles": "smiles",
    "inchikey": "inchikey",
    "formula": "formula",
    "name": "compound_name",
}
ROLES = ("mz", "intensity", "peaks", *_FIELDS)
_USUAL = {"mz": MZ, "intensity": INTENSITY, "peaks": PEAKS, "id": ID, "precursor": PRECURSOR}
# Only beside a column of precursors: tables of single peaks have columns of these names.
_AMBIGUOUS = {"mz", "intensity", *PEAKS}
_OF_PRECURSORS = {"precursor_mz", "pepmass", "parent_mass"}
_READ_COLUMNS = tuple(sorted({normalise_name(n) for n in (*READ_FIELDS, "fold")}))
_LISTS = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_BETWEEN = re.compile(r"\s*[,;]\s*|\s+")
_PAIRS = "mz:intensity pairs, or a list of pairs"


@dataclass(frozen=True)
class TableColumns:
    """Which column holds what: indices of the peaks' columns, and fields of the others.

    Attributes
    ----------
    names : tuple of str
        Of all columns.
    mz, intensity : int
        Columns of lists; -1 where the table has pairs.
    peaks : int
        The column of pairs; -1 where the table has lists.
    fields : mapping of int to str
        The record's field of each other column.
    """

    names: tuple[str, ...]
    mz: int
    intensity: int
    peaks: int
    fields: Mapping[int, str]

    @cached_property
    def has_precursor(self) -> bool:
        """Whether a column holds the precursor m/z, or the mass that it is derived from."""
        return not _OF_PRECURSORS.isdisjoint(map(canonical_key, self.fields.values()))


def find_columns(
    file: object, names: Sequence[str], columns: Mapping[str, str], *, plain: bool = True
) -> TableColumns | None:
    """Return which column holds what; None where none holds peaks.

    Parameters
    ----------
    file : object
        For messages.
    names : sequence of str
        Of the columns.
    columns : mapping of str to str
        Names that the user gives, by one of `ROLES`.
    plain : bool
        Columns hold text: names that tables of single peaks have, too, count only beside a column
        of precursors.

    Raises
    ------
    InputError
        A column that the user names is missing, or two columns have a name that is read.

    Examples
    --------
    >>> found = find_columns("a.csv", ["id", "MZs", "Intensities", "ce"], {"energy": "ce"})
    >>> found.mz, found.intensity, found.fields
    (1, 2, {0: 'id', 3: 'collision_energy'})
    """
    found: dict[str, int] = {}
    for role, name in columns.items():
        index = find_column(file, names, [name.strip()], exact=True)
        if index is None:
            index = find_column(file, names, [normalise_name(name)])
        if index is None:
            raise InputError(
                file, f"no column is called {name!r} ({role}); it has {format_names(names)}"
            )
        found[role] = index
    has_precursor = "precursor" in found or any(
        canonical_key(name) in _OF_PRECURSORS or normalise_name(name) in PRECURSOR for name in names
    )
    by_user = {"mz", "intensity", "peaks"} & found.keys()
    for role, usual in _USUAL.items():
        if role in found or (role in ("mz", "intensity", "peaks") and by_user):
            continue
        known = [n for n in usual if not plain or has_precursor or n not in _AMBIGUOUS]
        index = find_column(file, names, known)
        if index is not None and index not in found.values():
            found[role] = index
    if {"mz", "intensity"} & by_user and not {"mz", "intensity"} <= found.keys():
        raise InputError(file, "columns of mz and of intensity belong together: name both")
    is_pairs = "peaks" in found and not {"mz", "intensity"} <= found.keys()
    if not is_pairs and not {"mz", "intensity"} <= found.keys():
        return None
    of_peaks = {found["peaks"]} if is_pairs else {found["mz"], found["intensity"]}
    named = {found[role]: field for role, field in _FIELDS.items() if role in found}
    by_column = {i for role, i in found.items() if role in columns}
    fields = {}
    for index, name in enumerate(names):
        if index in of_peaks:
            continue
        field = named.get(index, name)
        # A column that the user names stands for its field, whatever others are called.
        if index in by_column or canonical_key(field) not in {
            _FIELDS[role] for role in columns if role in _FIELDS
        }:
            fields[index] = field
    _check_names(file, names, [names[index] for index in of_peaks])
    lists = (-1, -1) if is_pairs else (found["mz"], found["intensity"])
    return TableColumns(tuple(names), *lists, found["peaks"] if is_pairs else -1, fields)


def without_peaks(names: Sequence[str]) -> str:
    """Return what is wrong with a table whose columns hold no peaks."""
    hint = "name them with --columns precursor=…,mz=…,intensity=…"
    if any(normalise_name(name).endswith(("smiles", "inchi")) for name in names):
        hint = f"if these are candidates, give them as --database; else {hint}"
    return (
        "no columns hold peaks (mzs and intensities, or peaks); it has "
        f"{format_names(names)}; {hint}"
    )


def parse_columns(text: str | Iterable[str]) -> dict[str, str]:
    """Read which column holds what: ``mz=ms2_mzs,intensity=ms2_intensities,id=molecule_id``.

    Raises
    ------
    SpectrumError
        It is not of that form, or names something else than `ROLES`.

    Examples
    --------
    >>> parse_columns("mz=ms2_mzs, id=molecule_id")
    {'mz': 'ms2_mzs', 'id': 'molecule_id'}
    """
    columns: dict[str, str] = {}
    for pair in [text] if isinstance(text, str) else text:
        for part in pair.split(","):
            role, _, name = (word.strip() for word in part.partition("="))
            if role not in ROLES or not name or role in columns:
                raise SpectrumError(
                    f"--columns {shorten(part.strip())!r}: expected NAME=COLUMN, once for each of: "
                    f"{', '.join(ROLES)}"
                )
            columns[role] = name
    return columns


def check_header(file: object, columns: Sequence[str]) -> None:
    """Refuse a table with two columns of a name that is read; others may repeat."""
    _check_names(file, columns, ("mzs", "intensities"))


def _check_names(file: object, columns: Sequence[str], peaks: Iterable[str]) -> None:
    counts = Counter(map(normalise_name, columns))
    for name in (*map(normalise_name, peaks), *_READ_COLUMNS):
        if counts[name] > 1:
            find_column(file, columns, [name])


def is_table(head: str, columns: Mapping[str, str]) -> bool:
    """Return whether a text begins with the header of a table of spectra."""
    try:
        return _header("", head, columns) is not None
    except InputError:  # a column is missing, or there twice: told when the table is read
        return not columns or is_table(head, {})


def _header(file: str, text: str, columns: Mapping[str, str]) -> tuple[str, TableColumns] | None:
    """Return the delimiter and the columns of a header."""
    line = text.lstrip("\ufeff\r\n").partition("\n")[0].rstrip("\r")
    problem: InputError | None = None
    for delimiter in DELIMITERS:
        names = split_row(line, delimiter) or []
        if len(names) < 2:
            continue
        try:
            found = find_columns(file, names, columns)
        except InputError as error:
            problem = problem or error
            continue
        if found is not None:
            return delimiter, found
    if columns and problem is None:
        find_columns(file, [line], columns)  # which names what is missing
    if problem is not None:
        raise problem
    return None


def read(source: Source, columns: Mapping[str, str]) -> Iterator[Record]:
    """Read one record a row."""
    with source.open() as stream:
        lines = text_lines(stream)
        first = next(lines, (0, ""))[1]
        if isinstance(first, LongLine):
            raise InputError(source.name, f"its header is longer than {MAX_LINE:,} bytes")
        header = _header(source.name, first, columns)
        if header is None:
            rows = (split_row(first.rstrip("\r\n"), delimiter) or [] for delimiter in DELIMITERS)
            raise InputError(source.name, without_peaks(max(rows, key=len)), "no-records")
        delimiter, found = header
        refused: list[Record] = []

        def refuse(number: int, reason: str) -> None:
            refused.append(Record(f"{source.name}: line {number}", problem=reason))

        def usable() -> Iterator[tuple[int, str]]:
            for number, line in lines:
                if isinstance(line, LongLine):
                    record = Record(f"{source.name}: line {number}")
                    record.refuse_line(number)
                    refused.append(record)
                elif line.strip():
                    yield number, line

        width = len(found.names)
        for number, cells in table_rows(usable(), delimiter, width, refuse):
            yield from refused
            refused.clear()
            record = Record(f"{source.name}: line {number}", fallback_name=f"line {number}")
            if len(cells) != width:
                record.refuse(f"has {len(cells)} columns, expected {width}", "malformed")
            else:
                fill(record, found, cells, numbers_of_text)
            yield record
        yield from refused


Numbers = Callable[[Any], "np.ndarray[Any, Any]"]


def fill(record: Record, columns: TableColumns, cells: Sequence[Any], numbers: Numbers) -> None:
    """Put the fields and peaks of a row into a record.

    Parameters
    ----------
    record : Record
    columns : TableColumns
    cells : sequence
        Texts, but for columns of peaks.
    numbers : callable
        Returns the numbers of a list cell, or an array of shape (peaks, 2) of a cell of pairs;
        raises ValueError for others.
    """
    for index, field in columns.fields.items():
        record.add(field, cells[index])
        if field == _FIELDS["id"]:  # also under its own name, to group by in several files
            record.add(columns.names[index], cells[index])
    arrays = []
    is_pairs = columns.peaks >= 0
    for index in (columns.peaks,) if is_pairs else (columns.mz, columns.intensity):
        try:
            values = numbers(cells[index])
            if is_pairs and values.ndim != 2:
                raise ValueError(f"expected {_PAIRS}")
            if not is_pairs and values.ndim != 1:
                raise ValueError("expected one list")
        except ValueError as error:
            kind = _PAIRS if is_pairs else "a list of numbers"
            reason = f"column {columns.names[index]} is not {kind} ({shorten(str(error))})"
            record.problem = record.problem or Reason(reason, "bad-peak")
            return
        if len(values) > MAX_PEAKS:
            record.refuse_peaks(len(values))
            return
        arrays.append(values)
    record.mz, record.intensities = arrays[0].T if is_pairs else arrays
    if not columns.has_precursor:
        reason = "has no precursor m/z, nor has any row: name its column with --columns precursor=…"
        record.refuse(reason, "no-precursor")


def numbers_of_text(text: str) -> "np.ndarray[Any, Any]":
    """Return the numbers of a text: a list, ``mz:intensity`` pairs, or a list of pairs.

    Examples
    --------
    >>> numbers_of_text("[50.1, 60.2]").tolist(), numbers_of_text("50.1 60.2").tolist()
    ([50.1, 60.2], [50.1, 60.2])
    >>> numbers_of_text("50.1:10 60.2:20").tolist()
    [[50.1, 10.0], [60.2, 20.0]]
    >>> numbers_of_text("[[50.1, 10], [60.2, 20]]").tolist()
    [[50.1, 10.0], [60.2, 20.0]]
    """
    if "_" in text:  # Python reads "1_0" as 10
        raise ValueError("'_' in a number")
    plain = text.strip('" \t\r\n')
    if ":" in plain:
        words = [word for word in _BETWEEN.split(plain.strip("[]() ")) if word]
        pairs = [word.split(":") for word in words]
    else:
        inner = _LISTS.findall(plain[1:-1]) if plain[:2] in ("[[", "[(", "((") else []
        if not inner:
            return np.array(_floats(plain.strip("[]() ").removesuffix(",")), np.float64)
        pairs = [_BETWEEN.split(part.strip()) for part in inner]
        if len(pairs) == 2 and len(pairs[0]) == len(pairs[1]) != 2:  # all m/z, all intensities
            pairs = [list(pair) for pair in zip(*pairs, strict=True)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(shorten(text))
    return np.array([[float(word) for word in pair] for pair in pairs]).reshape(-1, 2)


def _floats(text: str) -> list[float]:
    if " " not in text and ";" not in text:  # as most are
        return [float(word) for word in text.split(",")] if text else []
    words = _BETWEEN.split(text.strip()) if text.strip() else []
    return [float(word) for word in words]
