"""Molecules of the files that users have, one record at a time, in constant memory."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from mzseek.database.formats import FORMATS
from mzseek.database.formats.columns import MOLECULE, check_named
from mzseek.database.record import MoleculeRecord, Sources
from mzseek.errors import InputError
from mzseek.files import Source, StrPath, open_source
from mzseek.files.streams.table import first_line, header_names, require_text, shown_names
from mzseek.rejects import Report

*_FIRST, _LAST = (kind.label for kind in reversed(FORMATS.values()))
EXPECTED = f"expected {', '.join(_FIRST)} or {_LAST}"
_PACKING = {".gz", ".zst", ".zstd"}


def file_sources(
    paths: Sequence[StrPath], *, source: str | None = None, columns: dict[str, str] | None = None
) -> Sources:
    """Molecules of SMILES lists, tables, SD files, workbooks and Parquet files.

    Parameters
    ----------
    paths : sequence of paths
    source : str, optional
        Name of the collection, for files that do not say.
    columns : dict of str to str, optional
        Names of the columns that hold ``smiles``, ``name``, ``id`` and ``source``.
    """
    files = [Path(path) for path in paths]

    def read(report: Report) -> Iterator[MoleculeRecord]:
        return read_molecules(files, report, source=source, columns=columns)

    return Sources(read, tuple(files), {"source": source, "columns": columns or {}})


def read_molecules(
    paths: Sequence[StrPath],
    report: Report,
    *,
    source: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Iterator[MoleculeRecord]:
    r"""Molecules of several files, in the order given.

    What a file is shows in its content, not in its name. It may be a table with a header (tabs,
    commas, semicolons or bars), a list of SMILES with or without a title behind each, cells
    without a header, SDF, Parquet or a workbook (.xlsx); the texts plain or packed by gzip or zstd.
    All files are looked into before the first molecule is read.

    Parameters
    ----------
    paths : sequence of paths
        The files.
    report : callable
        Gets where and why for each record that has no molecule or does not fit its table.
    source : str, optional
        The collection that the molecules come from, where no column says so; the stem of the file
        by default.
    columns : mapping of str to str, optional
        Names of the columns (in SDF: data fields) for ``smiles``, ``inchi``, ``id``, ``name`` and
        ``source``, where they are not the usual ones. With ``{"feature": ""}`` records also have
        the feature that they are candidates for.

    Yields
    ------
    MoleculeRecord
        Not parsed yet: the text may turn out to be no molecule.

    Raises
    ------
    InputError
        A file is missing, empty, damaged, or no list of molecules.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "drugs.csv"
    >>> _ = path.write_text("Name,SMILES,CID\nethanol,CCO,702\n,,\n")
    >>> [record] = read_molecules([path], lambda where, why: print(where[-6:], why))
    line 3 has no molecule
    >>> record.text, record.identifier, record.name, record.source
    ('CCO', '702', 'ethanol', 'drugs')
    """
    named = dict(columns or {})
    check_named(named)
    readers = [_reader(path, report, source or _stem(path), named) for path in map(Path, paths)]
    return chain.from_iterable(read() for read in readers)


def _reader(
    path: Path, report: Report, origin: str, named: Mapping[str, str]
) -> Callable[[], Iterator[MoleculeRecord]]:
    """The reader of a file, by its content."""
    source = open_source(path)
    is_looked_at = False
    for kind in FORMATS.values():
        if kind.is_text and not is_looked_at:
            require_text(source, EXPECTED)
            is_looked_at = True
        reader = kind.reader_of(source, named)
        if reader is not None:
            return partial(reader, report, origin)
    raise InputError(path, _what_is_wrong(source, named))


def _what_is_wrong(source: Source, named: Mapping[str, str]) -> str:
    """Why a file is no list of molecules, with the columns that it has."""
    header = first_line(source)
    if header is None:
        return "the file is empty"
    names = header_names(header)
    for meaning in MOLECULE:
        if named.get(meaning):
            return f"no column is called {named[meaning]!r}; it has {shown_names(names)}"
    if len(names) > 1:
        return (
            f"no column holds molecules; it has {shown_names(names)}; {EXPECTED} "
            "(annotate and database build: --smiles-column names one)"
        )
    return f"is no list of molecules (it begins with {header.strip()[:40]!r}); {EXPECTED}"


def _stem(path: Path) -> str:
    name = path.stem if path.suffix.lower() in _PACKING else path.name
    # The 0 of "release_5.0" is no suffix.
    return re.sub(r"(?<=.)\.[A-Za-z]\w*$", "", name)
