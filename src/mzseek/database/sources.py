"""Molecules of the files that users have, one record at a time, in constant memory."""

import importlib.util
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from mzseek.database.formats import parquet
from mzseek.database.formats.columns import check_named, molecule_text, one_line
from mzseek.database.formats.sdf import is_sdf, read_sdf
from mzseek.database.formats.text import EXPECTED, find_layout, read_text
from mzseek.database.record import MoleculeRecord
from mzseek.errors import InputError, MzseekError
from mzseek.files import Source, open_source, text_lines
from mzseek.files.table import SetAside, bounded_lines, require_text
from mzseek.rejects import Report

PUBCHEM_FOLDER = "https://ftp.ncbi.nlm.nih.gov/pubchem/Compound/Extras/"
_HMDB_TABLE = Path("share", "OpenMS", "CHEMISTRY", "HMDB2StructMapping.tsv")
_ENCRYPTED = b"PARE"
# No collection numbers its molecules beyond; Python refuses to read numbers of thousands of digits.
_LONGEST_CID = 18
_PACKING = {".gz", ".zst", ".zstd"}


def read_molecules(
    paths: Sequence[Path],
    report: Report,
    *,
    source: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Iterator[MoleculeRecord]:
    r"""Molecules of several files, in the order given.

    What a file is shows in its content, not in its name. It may be a table with a header (tabs,
    commas or semicolons), a list of SMILES with or without a title behind each, a list of
    identifiers with a tab and a SMILES behind each, SDF or Parquet; the texts plain or packed by
    gzip or zstd. All files are looked into before the first molecule is read.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    report : callable
        Gets where and why for each record that has no molecule or does not fit its table.
    source : str, optional
        The collection that the molecules come from, where no column says so; the stem of the file
        by default.
    columns : mapping of str to str, optional
        Names of the columns (in SDF: data fields) for ``smiles``, ``inchi``, ``id``, ``name`` and
        ``source``, where they are not the usual ones.

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
    readers = [_reader(path, report, source or _stem(path), named) for path in paths]
    return chain.from_iterable(read() for read in readers)


def read_hmdb(report: Report) -> Iterator[MoleculeRecord]:
    """Molecules of the Human Metabolome Database, from the table inside the pyopenms package.

    Raises
    ------
    MzseekError
        The package is not installed, or has no such table.

    Examples
    --------
    >>> next(read_hmdb(print)).name  # doctest: +SKIP
    '1-Methylhistidine'
    """
    return _hmdb_records(open_source(hmdb_table()), report)


def hmdb_table() -> Path:
    """The file inside the pyopenms package; raises as `read_hmdb` does."""
    package = importlib.util.find_spec("pyopenms")  # finds it without loading its libraries
    folders = (package.submodule_search_locations or []) if package else []
    path = next((Path(f) / _HMDB_TABLE for f in folders if (Path(f) / _HMDB_TABLE).is_file()), None)
    if path is None:
        missing = f"has no {_HMDB_TABLE.name}" if package else "is not installed"
        raise MzseekError(
            f"HMDB is read from the pyopenms package, which {missing}: pip install 'mzseek[hmdb]'"
        )
    return path


def read_pubchem(folder: Path, report: Report) -> Iterator[MoleculeRecord]:
    r"""Molecules of PubChem's own files in a folder: ``CID-SMILES.gz``, and names beside it.

    Names are those of ``CID-Title.gz`` where it is there. PubChem sorts both files by CID, so that
    they are read side by side.

    Raises
    ------
    InputError
        ``CID-SMILES.gz`` is not there; or names are to be joined and a file is not sorted.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "CID-SMILES").write_text("702\tCCO\n")
    >>> [(record.identifier, record.text) for record in read_pubchem(folder, print)]
    [('CID702', 'CCO')]
    """
    molecules, *titles = map(open_source, pubchem_files(folder))
    return _pubchem_records(molecules, titles[0] if titles else None, report)


def pubchem_files(folder: Path) -> list[Path]:
    """``CID-SMILES`` of a folder, and ``CID-Title`` if it is there; else as `read_pubchem`."""
    molecules = _pubchem_file(folder, "CID-SMILES")
    if molecules is None:
        raise InputError(
            folder, f"has no CID-SMILES.gz, expected that file of PubChem's {PUBCHEM_FOLDER}"
        )
    titles = _pubchem_file(folder, "CID-Title")
    return [molecules] if titles is None else [molecules, titles]


def _reader(
    path: Path, report: Report, origin: str, named: Mapping[str, str]
) -> Callable[[], Iterator[MoleculeRecord]]:
    """The reader of a file, by its content."""
    source = open_source(path)
    head = source.head()
    if head.startswith(_ENCRYPTED):
        raise InputError(path, "is encrypted Parquet, expected it open")
    if head.startswith(parquet.MAGIC):
        with path.open("rb") as file:
            if file.read(len(parquet.MAGIC)) != parquet.MAGIC:
                raise InputError(path, "is Parquet packed once more, expected it as it is")
        places = parquet.find_places(path, named)
        return partial(parquet.read_parquet, path, places, report, origin)
    require_text(source, EXPECTED)
    if is_sdf("".join(line for _, line in text_lines(io.BytesIO(head)))):
        return partial(read_sdf, source, report, origin, named)
    return partial(read_text, source, find_layout(source, named), report, origin)


def _stem(path: Path) -> str:
    name = path.stem if path.suffix.lower() in _PACKING else path.name
    # The 0 of "release_5.0" is no suffix.
    return re.sub(r"(?<=.)\.[A-Za-z]\w*$", "", name)


def _set_aside(source: Source, report: Report) -> SetAside:
    return lambda number, reason: report(f"{source.name}: line {number}", reason)


def _hmdb_records(source: Source, report: Report) -> Iterator[MoleculeRecord]:
    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), _set_aside(source, report)):
            where = f"{source.name}: line {number}"
            identifier, name, smiles, inchi = [*line.split("\t"), "", "", ""][:4]
            text = molecule_text(smiles) or molecule_text(inchi)
            if not text:
                report(where, "has no molecule")
                continue
            # OpenMS has added a few standards of its own, as EXTRA:EXTRA001.
            collection, _, accession = one_line(identifier).rpartition(":")
            origin = "hmdb" if collection == "HMDB" else "openms"
            yield MoleculeRecord(where, text, accession, one_line(name), origin)


def _pubchem_file(folder: Path, name: str) -> Path | None:
    paths = (folder / (name + suffix) for suffix in (".gz", ".zst", ""))
    return next((path for path in paths if path.is_file()), None)


def _pubchem_records(
    molecules: Source, titles: Source | None, report: Report
) -> Iterator[MoleculeRecord]:
    rows = _cid_rows(molecules, report)
    if titles is not None:
        rows = _rising(rows)
    names = _rising(_cid_rows(titles, report)) if titles is not None else iter(())
    for where, cid, smiles, title in _with_titles(rows, names):
        text = molecule_text(smiles)
        if text:
            yield MoleculeRecord(where, text, f"CID{cid}", one_line(title), "pubchem")
        else:
            report(where, "has no molecule")


CidRow = tuple[str, int, str]


def _cid_rows(source: Source, report: Report) -> Iterator[CidRow]:
    """Where, CID and the text behind it."""
    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), _set_aside(source, report)):
            where = f"{source.name}: line {number}"
            cid, tab, rest = line.partition("\t")
            if tab and cid.isdecimal() and len(cid) <= _LONGEST_CID:
                yield where, int(cid), rest
            else:
                report(where, f"has no CID and tab: {line.strip()[:40]!r}")


def _rising(rows: Iterator[CidRow]) -> Iterator[CidRow]:
    """The same rows; `InputError` at one out of order, past which names would be lost."""
    last = -1
    for where, cid, text in rows:
        if cid < last:
            raise InputError(where, f"CID {cid} comes behind {last}, expected them in rising order")
        last = cid
        yield where, cid, text


def _with_titles(
    rows: Iterator[CidRow], titles: Iterator[CidRow]
) -> Iterator[tuple[str, int, str, str]]:
    nothing = ("", -1, "")
    title = next(titles, None)
    for where, cid, smiles in rows:
        while title is not None and title[1] < cid:
            title = next(titles, None)
        _, named, name = title or nothing
        yield where, cid, smiles, name if named == cid else ""
