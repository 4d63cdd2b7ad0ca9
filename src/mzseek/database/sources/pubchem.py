"""PubChem, from the files that it offers for download."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mzseek.database.formats.columns import molecule_text, one_line
from mzseek.database.record import MoleculeRecord, Sources
from mzseek.errors import InputError
from mzseek.files import Source, StrPath, open_source, text_lines
from mzseek.files.streams.table import bounded_lines
from mzseek.rejects import Report

PUBCHEM_FOLDER = "https://ftp.ncbi.nlm.nih.gov/pubchem/Compound/Extras/"
# No collection numbers its molecules beyond; Python refuses to read numbers of thousands of digits.
_LONGEST_CID = 18
CidRow = tuple[str, int, str]


def pubchem_sources(folder: StrPath) -> Sources:
    """PubChem, from its public files in a folder."""
    folder = Path(folder)
    read = partial(read_pubchem, folder)
    return Sources(read, tuple(pubchem_files(folder)), {"source": "pubchem"})


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


def _cid_rows(source: Source, report: Report) -> Iterator[CidRow]:
    """Where, CID and the text behind it."""

    def set_aside(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), set_aside):
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
