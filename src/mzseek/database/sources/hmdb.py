"""The Human Metabolome Database, from the table that the pyopenms package carries."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from mzseek.database.formats.columns import molecule_text, one_line
from mzseek.database.record import MoleculeRecord, Sources
from mzseek.errors import MzseekError
from mzseek.files import Source, open_source, text_lines
from mzseek.files.streams.table import bounded_lines
from mzseek.rejects import Report

_HMDB_TABLE = Path("share", "OpenMS", "CHEMISTRY", "HMDB2StructMapping.tsv")


def hmdb_sources() -> Sources:
    """The human metabolome, from the table that the pyopenms package carries."""
    return Sources(read_hmdb, (hmdb_table(),), {"source": "hmdb"})


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


def _hmdb_records(source: Source, report: Report) -> Iterator[MoleculeRecord]:
    def set_aside(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), set_aside):
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
