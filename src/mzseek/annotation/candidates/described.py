"""Described candidates as files: a table of molecules, and one of lists of features."""

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from mzseek.annotation.candidates.listed import ListedSource
from mzseek.annotation.candidates.source import Molecule

_MOLECULES, _LISTS, _FACTS = "molecules.arrow", "lists.arrow", b"facts"
_TEXTS = pa.list_(pa.string())
_SCHEMA = pa.schema(
    [("smiles", pa.string()), ("key", pa.string()), ("formula", pa.string()),
     ("mass", pa.float64()), ("name", pa.string()), ("sources", _TEXTS), ("identifiers", _TEXTS)]
)  # fmt: skip
_LISTED = pa.schema([("feature", pa.string()), ("places", pa.list_(pa.int64()))])


def save_described(folder: Path, source: ListedSource) -> None:
    """Write molecules in memory, and lists of features if there are any, into a folder."""
    facts = json.dumps({"label": source.label, "facts": source.given}).encode()
    columns = [
        pa.array([getattr(each, name) for each in source.molecules], _SCHEMA.field(name).type)
        for name in _SCHEMA.names
    ]
    _write(folder / _MOLECULES, pa.table(columns, _SCHEMA.with_metadata({_FACTS: facts})))
    if source.lists is not None:
        names, places = list(source.lists), list(map(list, source.lists.values()))
        lists = [pa.array(names, pa.string()), pa.array(places, _LISTED.field("places").type)]
        _write(folder / _LISTS, pa.table(lists, _LISTED))


def open_described(folder: Path) -> ListedSource:
    """What `save_described` has written, whole in memory: the folder may go."""
    table = _read(folder / _MOLECULES)
    known = json.loads(table.schema.metadata[_FACTS])
    columns = (table[name].to_pylist() for name in _SCHEMA.names)
    molecules = [
        Molecule(smiles, key, formula, mass, name, tuple(sources), tuple(identifiers))
        for smiles, key, formula, mass, name, sources, identifiers in zip(*columns, strict=True)
    ]
    lists = None
    if (folder / _LISTS).is_file():
        listed = _read(folder / _LISTS)
        lists = dict(zip(listed["feature"].to_pylist(), listed["places"].to_pylist(), strict=True))
    return ListedSource(known["label"], molecules, known["facts"], lists)


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        return ipc.open_file(file).read_all()
