"""Where molecules come from: files, HMDB, PubChem."""

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from mzseek.core.errors import InputError, MzseekError, Reason
from mzseek.database.formats import FORMATS
from mzseek.database.formats.tables import MOLECULE, check_named, molecule_text, one_line
from mzseek.database.records import MoleculeRecord, Sources
from mzseek.io import Source, StrPath, open_source, text_lines
from mzseek.io.skipped import Report
from mzseek.io.text_tables import (
    bounded_lines,
    first_line,
    format_names,
    header_names,
    require_text,
)

*_FIRST, _LAST = (kind.label for kind in reversed(FORMATS.values()))
EXPECTED = f"expected {', '.join(_FIRST)} or {_LAST}"
_PACKING = {".gz", ".zst", ".zstd"}


def file_sources(
    paths: Sequence[StrPath], *, source: str | None = None, columns: dict[str, str] | None = None
) -> Sources:
    """Return the molecules of SMILES lists, tables, SD files, workbooks and Parquet files.

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
    r"""Yield the molecules of several files, in the order given.

    Formats are recognised by content. A file may be a table with a header (tabs,
    commas, semicolons or bars), a list of SMILES with or without a title behind each, cells
    without a header, SDF, Parquet or a workbook (.xlsx); the texts plain or packed by gzip or zstd.
    All files are opened before the first molecule is read.

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
    """Return the reader of a file, by its content."""
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
    """Say why a file is no list of molecules, with the columns that it has."""
    header = first_line(source)
    if header is None:
        return "the file is empty"
    names = header_names(header)
    for meaning in MOLECULE:
        if named.get(meaning):
            return f"no column is called {named[meaning]!r}; it has {format_names(names)}"
    if len(names) > 1:
        return (
            f"no column holds molecules; it has {format_names(names)}; {EXPECTED} "
            "(annotate and database build: --smiles-column names one)"
        )
    return f"is no list of molecules (it begins with {header.strip()[:40]!r}); {EXPECTED}"


def _stem(path: Path) -> str:
    name = path.stem if path.suffix.lower() in _PACKING else path.name
    # The 0 of "release_5.0" is no suffix.
    return re.sub(r"(?<=.)\.[A-Za-z]\w*$", "", name)


_HMDB_TABLE = Path("share", "OpenMS", "CHEMISTRY", "HMDB2StructMapping.tsv")


def hmdb_sources() -> Sources:
    """Return the molecules of the Human Metabolome Database, from a table in pyopenms.

    Raises
    ------
    MzseekError
        The package is not installed, or has no such table.
    """
    table = hmdb_table()
    return Sources(partial(_read_hmdb, table), (table,), {"source": "hmdb"})


def hmdb_table() -> Path:
    """Return the path of the table in the pyopenms package; `MzseekError` if there is none."""
    package = importlib.util.find_spec("pyopenms")  # finds it without loading its libraries
    folders = (package.submodule_search_locations or []) if package else []
    path = next((Path(f) / _HMDB_TABLE for f in folders if (Path(f) / _HMDB_TABLE).is_file()), None)
    if path is None:
        missing = f"has no {_HMDB_TABLE.name}" if package else "is not installed"
        raise MzseekError(
            f"HMDB is read from the pyopenms package, which {missing}: pip install 'mzseek[hmdb]'"
        )
    return path


def _read_hmdb(table: Path, report: Report) -> Iterator[MoleculeRecord]:
    for where, line in _lines(open_source(table), report):
        identifier, name, smiles, inchi = [*line.split("\t"), "", "", ""][:4]
        text = molecule_text(smiles) or molecule_text(inchi)
        if not text:
            report(where, Reason("has no molecule", "no-molecule"))
            continue
        # OpenMS has added a few standards of its own, as EXTRA:EXTRA001.
        collection, _, accession = one_line(identifier).rpartition(":")
        origin = "hmdb" if collection == "HMDB" else "openms"
        yield MoleculeRecord(where, text, accession, one_line(name), origin)


def _lines(source: Source, report: Report) -> Iterator[tuple[str, str]]:
    """Yield the position and text of each line of a file."""

    def skip(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), skip):
            yield f"{source.name}: line {number}", line


PUBCHEM_FOLDER = "https://ftp.ncbi.nlm.nih.gov/pubchem/Compound/Extras/"
# No collection numbers its molecules beyond; Python refuses to read numbers of thousands of digits.
_LONGEST_CID = 18


def pubchem_sources(folder: StrPath) -> Sources:
    r"""Return the molecules of PubChem's files in a folder: ``CID-SMILES.gz``, and names beside it.

    Names are those of ``CID-Title.gz`` where it is there. PubChem sorts both files by CID, so that
    they are read side by side. Either may be unpacked, or packed by zstd.

    Raises
    ------
    InputError
        ``CID-SMILES.gz`` is not there; or, when read, names are to be joined and a file is not
        sorted.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "CID-SMILES").write_text("702\tCCO\n")
    >>> [(record.identifier, record.text) for record in pubchem_sources(folder).read(print)]
    [('CID702', 'CCO')]
    """
    files = []
    for name in ("CID-SMILES", "CID-Title"):
        paths = (Path(folder) / (name + suffix) for suffix in (".gz", ".zst", ""))
        files += [path for path in paths if path.is_file()][:1]
    if not files or not files[0].name.startswith("CID-SMILES"):
        raise InputError(
            folder, f"has no CID-SMILES.gz, expected that file of PubChem's {PUBCHEM_FOLDER}"
        )
    return Sources(partial(_read_pubchem, files), tuple(files), {"source": "pubchem"})


def _read_pubchem(files: Sequence[Path], report: Report) -> Iterator[MoleculeRecord]:
    is_sorted = len(files) > 1
    rows, *titles = (_cid_rows(open_source(file), report, is_sorted) for file in files)
    names = chain.from_iterable(titles)
    title = next(names, None)
    for where, cid, smiles in rows:
        while title is not None and title[1] < cid:
            title = next(names, None)
        name = title[2] if title is not None and title[1] == cid else ""
        text = molecule_text(smiles)
        if text:
            yield MoleculeRecord(where, text, f"CID{cid}", one_line(name), "pubchem")
        else:
            report(where, Reason("has no molecule", "no-molecule"))


def _cid_rows(source: Source, report: Report, is_sorted: bool) -> Iterator[tuple[str, int, str]]:
    """Yield position, CID and text of rows; `InputError` if they must be sorted and are not."""
    last = -1
    for where, line in _lines(source, report):
        text, tab, rest = line.partition("\t")
        if not (tab and text.isdecimal() and len(text) <= _LONGEST_CID):
            reason = f"has no CID and tab: {line.strip()[:40]!r}"
            report(where, Reason(reason, "malformed"))
            continue
        cid = int(text)
        if is_sorted and cid < last:
            raise InputError(where, f"CID {cid} comes behind {last}, expected them in rising order")
        last = cid
        yield where, cid, rest
