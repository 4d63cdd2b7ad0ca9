"""What a store can be built from: files, the HMDB table of pyopenms, PubChem's files."""

from mzseek.database.sources.files import file_sources, read_molecules
from mzseek.database.sources.hmdb import hmdb_sources, read_hmdb
from mzseek.database.sources.pubchem import pubchem_sources, read_pubchem

__all__ = [
    "file_sources",
    "hmdb_sources",
    "pubchem_sources",
    "read_hmdb",
    "read_molecules",
    "read_pubchem",
]
