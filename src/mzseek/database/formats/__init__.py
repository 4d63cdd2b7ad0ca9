"""Formats of lists of molecules, one module each.

A format's ``reader_of`` gets a source and the names that the user gave to columns. It returns None
for a file of another format, refuses one that it knows and cannot use, and else returns a reader:
called with a report and the name of the collection, that yields records and judges none of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mzseek.database.formats import sdf, smiles_list
from mzseek.database.formats.tables import parquet_reader, text_reader, workbook_reader
from mzseek.database.records import Reader
from mzseek.io import Source


@dataclass(frozen=True)
class MoleculeFormat:
    """What a format is called in messages, how it is recognised, and whether it is text."""

    label: str
    reader_of: Callable[[Source, Mapping[str, str]], Reader | None]
    is_text: bool = True


# In the order in which they look at a file.
FORMATS: dict[str, MoleculeFormat] = {
    "parquet": MoleculeFormat("Parquet", parquet_reader, is_text=False),
    "workbook": MoleculeFormat("a workbook (.xlsx)", workbook_reader, is_text=False),
    "sdf": MoleculeFormat("SDF", sdf.reader_of),
    "table": MoleculeFormat("a table with a smiles column", text_reader),
    "smiles_list": MoleculeFormat("a list of SMILES", smiles_list.reader_of),
}
