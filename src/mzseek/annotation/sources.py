"""Candidate sources: lists, libraries, the bundled molecules, databases on disk."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from mzseek.annotation.candidates import Molecule, MoleculeIndex, Source, build_index, index_path
from mzseek.annotation.features import normalise_name
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import AnnotationError, InputError, Reason
from mzseek.database import Database
from mzseek.database.formats.tables import FEATURE, USUAL
from mzseek.database.records import MoleculeRecord, RecordsAt, describe_records
from mzseek.database.sources import read_molecules
from mzseek.database.store import MOLECULES, Matches
from mzseek.io import StrPath, content_hash
from mzseek.io.skipped import Report, SkipTarget, reporter
from mzseek.library import Library
from mzseek.parallel.engine import Progress, silent

_KIND = "morgan2"  # of the fingerprints that describing computes along
_AT_ONCE = 2_000
_COLUMNS = ("smiles", "key", "formula", "mass", "names", "sources", "identifiers", "place")


class ListedSource(Source):
    """Molecules in memory.

    Parameters
    ----------
    label : str
    molecules : sequence of Molecule
    metadata : mapping
        Kind, path and checksum, for ``run.json``.
    lists : mapping of str to list of int, optional
        For each feature the indices of its own molecules; without it all are looked up by mass.

    Attributes
    ----------
    molecules, base_metadata, lists
        What it was made of: the molecules, their metadata and the lists.
    """

    def __init__(
        self,
        label: str,
        molecules: Sequence[Molecule],
        metadata: Mapping[str, Any],
        lists: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        masses = np.array([molecule.mass for molecule in molecules], np.float64)
        order = np.argsort(masses, kind="stable")
        self.label, self.base_metadata = label, dict(metadata)
        self.molecules = list(molecules)
        self._order, self._masses = order, masses[order]
        self.lists = lists
        self.by_feature = lists is not None

    def __len__(self) -> int:
        return len(self.molecules)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        low, high = np.searchsorted(self._masses, [mass - reach, mass + reach])
        high = int(np.searchsorted(self._masses, mass + reach, side="right"))
        return [self.molecules[index] for index in self._order[low:high]]

    def of_feature(self, name: str) -> list[Molecule]:
        """Molecules that are listed for a feature; none for one that the list does not name."""
        if self.lists is None:
            return super().of_feature(name)
        return [self.molecules[index] for index in self.lists.get(name, ())]

    def features(self) -> Collection[str]:
        """Features that it has lists for."""
        return self.lists or ()

    def metadata(self) -> dict[str, Any]:
        """Kind, path, checksum and size for ``run.json``."""
        return {**self.base_metadata, "molecules": len(self)}


def file_source(
    path: StrPath, skipped: SkipTarget, columns: Mapping[str, str] | None = None
) -> ListedSource:
    """Candidates of a user's own file: any that `mzseek database build` reads.

    With a column or SDF data field ``feature`` (or ``feature_id``, ``scans``, ``row ID``) every
    feature has the molecules of its own rows; without one, all are looked up by mass for all
    features.

    Parameters
    ----------
    path : Path
    skipped : list or callable of (where, reason)
        Gets what cannot be read, and rows of a list by feature that name none.
    columns : mapping of str to str, optional
        Names of columns that are not the usual ones, as `read_molecules` takes them.

    Raises
    ------
    InputError
        The file is missing, or none of its rows holds a molecule.
    """
    path = Path(path)
    report = reporter(skipped)
    records = list(read_molecules([path], report, columns={**(columns or {}), FEATURE: USUAL}))
    molecules, indices = _described(records, report)
    lists: dict[str, list[int]] | None = None
    if any(record.feature is not None for record in records):
        lists = {}
        for at, record in enumerate(records):
            if not record.feature:
                reason = Reason("names no feature, as other rows do", "no-feature")
                report(record.where, reason)
                indices[at] = -1
            elif indices[at] >= 0:
                lists.setdefault(normalise_name(record.feature), []).append(indices[at])
    if not molecules:
        raise InputError(path, "holds no molecule that can be read")
    metadata = {
        "kind": "file",
        "path": str(path.resolve()),
        "sha256": content_hash(path),
        "set_aside": len(records) - sum(index >= 0 for index in indices),
    }
    return ListedSource(path.name, molecules, metadata, lists)


def _described(
    records: Sequence[MoleculeRecord], report: Report
) -> tuple[list[Molecule], list[int]]:
    """Molecules, each text described once, and the index of each record's (−1: skipped)."""
    first: dict[tuple[str, str, str], int] = {}
    for at, record in enumerate(records):
        first.setdefault((record.text, record.name, record.identifier), at)
    distinct = list(first.values())
    molecules: list[Molecule] = []
    index_of: dict[int, int] = {}
    for start in range(0, len(distinct), _AT_ONCE):
        batch = [records[at] for at in distinct[start : start + _AT_ONCE]]
        described = describe_records(RecordsAt(batch, start), _KIND)
        for where, reason in described.skipped:
            report(where, reason)
        columns = (described.table[name].to_pylist() for name in _COLUMNS)
        for smiles, key, formula, mass, names, sources, identifiers, index in zip(
            *columns, strict=True
        ):
            index_of[distinct[index]] = len(molecules)
            molecules.append(
                Molecule(smiles, key[:BLOCK_LENGTH], formula, mass, names[0] if names else "",
                         tuple(sources), tuple(identifiers))
            )  # fmt: skip
    return molecules, [
        index_of.get(first[record.text, record.name, record.identifier], -1) for record in records
    ]


def library_source(library: Library, label: str) -> ListedSource:
    """The molecules of a library of reference spectra as candidates."""
    table = library.molecules
    rows = zip(*(table[name].to_pylist() for name in ("smiles", "inchikey", "formula", "mass")),
               strict=True)  # fmt: skip
    molecules = [
        Molecule(smiles, key[:BLOCK_LENGTH], formula, mass, sources=(label,))
        for smiles, key, formula, mass in rows
    ]
    if not molecules:
        raise AnnotationError(f"{label}: the library holds no molecule")
    return ListedSource(label, molecules, {"kind": "library", "path": str(library.folder)})


_MOLECULES, _LISTS, _METADATA = "molecules.arrow", "lists.arrow", b"facts"
_TEXTS = pa.list_(pa.string())
_SCHEMA = pa.schema(
    [("smiles", pa.string()), ("key", pa.string()), ("formula", pa.string()),
     ("mass", pa.float64()), ("name", pa.string()), ("sources", _TEXTS), ("identifiers", _TEXTS)]
)  # fmt: skip
_LISTED = pa.schema([("feature", pa.string()), ("places", pa.list_(pa.int64()))])


def save_described(folder: Path, source: ListedSource) -> None:
    """Write molecules in memory, and lists of features if there are any, into a folder."""
    metadata = json.dumps({"label": source.label, "facts": source.base_metadata}).encode()
    columns = [
        pa.array(
            [getattr(molecule, name) for molecule in source.molecules], _SCHEMA.field(name).type
        )
        for name in _SCHEMA.names
    ]
    _write(folder / _MOLECULES, pa.table(columns, _SCHEMA.with_metadata({_METADATA: metadata})))
    if source.lists is not None:
        names, indices = list(source.lists), list(map(list, source.lists.values()))
        lists = [pa.array(names, pa.string()), pa.array(indices, _LISTED.field("places").type)]
        _write(folder / _LISTS, pa.table(lists, _LISTED))


def open_described(folder: Path) -> ListedSource:
    """What `save_described` has written, whole in memory: the folder may go."""
    table = _read(folder / _MOLECULES)
    known = json.loads(table.schema.metadata[_METADATA])
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


_BATCH = 500  # molecules that a process reads at a time


class Store(Protocol):
    """What is asked of a store."""

    def __len__(self) -> int: ...

    def by_mass(self, mass: float, ppm: float = ...) -> Matches:
        """Molecules within ppm of a mass."""


class StoreSource(Source):
    """Molecules of a store.

    `metadata` has kind, path and checksum, for ``run.json``.
    """

    def __init__(
        self,
        store: Store,
        label: str,
        metadata: Mapping[str, Any],
        index: MoleculeIndex | None = None,
    ) -> None:
        self._store, self.label, self._metadata = store, label, dict(metadata)
        self.index = index

    @classmethod
    def open(cls, path: StrPath) -> "StoreSource":
        """A store that `mzseek database build` has made, with its index if it has one.

        Raises
        ------
        DatabaseError, AnnotationError
            The store or its index is damaged, or the index is of other molecules.
        """
        store = Database.open(path)
        sums = {name: file["sha256"] for name, file in store.manifest["files"].items()}
        metadata = {"kind": "database", "path": str(store.folder), "sha256": sums}
        return cls(store, store.folder.name, metadata, open_index(store))

    def __len__(self) -> int:
        return len(self._store)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        return molecules_of_table(self._store.by_mass(mass, reach / mass * 1e6).table)

    def metadata(self) -> dict[str, Any]:
        """Kind, path, checksum and size for ``run.json``."""
        return {**self._metadata, "molecules": len(self)}


def open_index(store: Database) -> MoleculeIndex | None:
    """The index beside a store; None where there is none."""
    folder = index_path(store.folder)
    return MoleculeIndex.open(folder, _known_by(store), len(store)) if folder.is_dir() else None


def index_store(
    path: StrPath, kinds: Sequence[str], *, jobs: int | None = None, progress: Progress = silent
) -> MoleculeIndex:
    """Read all molecules of a store once and for all, beside it.

    Parameters
    ----------
    path : Path
        Folder of the store.
    kinds : sequence of str
        Fingerprints that will be asked for.

    Raises
    ------
    DatabaseError, DatasetError, BusyError, WriteError
        The store is damaged, something else is in the way, another process is at it, or the disk
        is full.
    """
    store = Database.open(path)
    batches = (batch["smiles"].to_pylist() for batch in store.batches(["smiles"], _BATCH))
    return build_index(
        batches, len(store), index_path(store.folder), _known_by(store), kinds,
        jobs=jobs, progress=progress,
    )  # fmt: skip


def _known_by(store: Database) -> str:
    """The checksum of its molecules."""
    return str(store.manifest["files"][MOLECULES]["sha256"])


def molecules_of_table(table: pa.Table) -> list[Molecule]:
    """Return the rows of a table of molecules as objects."""
    names = ("smiles", "key", "formula", "mass", "names", "sources", "identifiers", "row")
    columns = [table[name].to_pylist() for name in names]
    return [
        Molecule(smiles, key[:BLOCK_LENGTH], formula, mass, names[0] if names else "",
                 tuple(sources), tuple(identifiers), row)
        for smiles, key, formula, mass, names, sources, identifiers, row in zip(
            *columns, strict=True
        )
    ]  # fmt: skip
