"""The molecule database: from any list of molecules, by mass, formula, key or likeness."""

from mzseek.database.build import Sources, add_molecules, build_database
from mzseek.database.found import Found, ManyFound
from mzseek.database.record import MoleculeRecord
from mzseek.database.store import Database

__all__ = [
    "Database",
    "Found",
    "ManyFound",
    "MoleculeRecord",
    "Sources",
    "add_molecules",
    "build_database",
]
