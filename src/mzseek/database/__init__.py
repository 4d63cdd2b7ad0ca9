"""The molecule database: from any list of molecules, by mass, formula, key or similarity."""

from mzseek.database.build import add_molecules, build_database
from mzseek.database.records import MoleculeRecord, Sources
from mzseek.database.sources import file_sources
from mzseek.database.store import Database, Matches

__all__ = [
    "Database",
    "Matches",
    "MoleculeRecord",
    "Sources",
    "add_molecules",
    "build_database",
    "file_sources",
]
