"""What a store can be built from: files, the HMDB table of pyopenms, PubChem's files."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mzseek.database.build import Sources
from mzseek.database.record import MoleculeRecord
from mzseek.database.sources import (
    hmdb_table,
    pubchem_files,
    read_hmdb,
    read_molecules,
    read_pubchem,
)
from mzseek.files import StrPath
from mzseek.rejects import Report


def file_sources(
    paths: Sequence[StrPath], *, source: str | None = None, columns: dict[str, str] | None = None
) -> Sources:
    """Molecules of SMILES lists, tables, SD files and Parquet files, compressed or not.

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


def hmdb_sources() -> Sources:
    """The human metabolome, from the table that the pyopenms package carries."""
    return Sources(read_hmdb, (hmdb_table(),), {"source": "hmdb"})


def pubchem_sources(folder: StrPath) -> Sources:
    """PubChem, from its public files in a folder."""
    folder = Path(folder)
    read = partial(read_pubchem, folder)
    return Sources(read, tuple(pubchem_files(folder)), {"source": "pubchem"})
