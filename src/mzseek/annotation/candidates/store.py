"""Candidates from a molecule database: a store on disk, or the one in the box."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mzseek.annotation.candidates.index import MoleculeIndex, build_index, index_path
from mzseek.annotation.candidates.source import Molecule, Source, formula_text
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.database import Database
from mzseek.database.folder import MOLECULES
from mzseek.database.found import Found
from mzseek.files import StrPath
from mzseek.work.progress import Progress, silent

_AT_ONCE = 500  # molecules that a process reads at a time


class Store(Protocol):
    """What is asked of a store."""

    def __len__(self) -> int: ...

    def by_mass(self, mass: float, ppm: float = ...) -> Found:
        """Molecules within ppm of a mass."""

    def by_formula(self, formula: str) -> Found:
        """Molecules of a formula."""


class StoreSource(Source):
    """Molecules of a store.

    Parameters
    ----------
    store : Store
    label : str
    facts : mapping
        What a run folder says of it.
    index : MoleculeIndex, optional
    """

    def __init__(
        self,
        store: Store,
        label: str,
        facts: Mapping[str, Any],
        index: MoleculeIndex | None = None,
    ) -> None:
        self._store, self.label, self._facts = store, label, dict(facts)
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
        facts = {"kind": "database", "path": str(store.folder), "sha256": sums}
        return cls(store, store.folder.name, facts, open_index(store))

    def __len__(self) -> int:
        return len(self._store)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        return molecules_of_table(self._store.by_mass(mass, reach / mass * 1e6).table)

    def of_formula(self, formula: str, mass: float, reach: float) -> list[Molecule]:
        """Molecules of a formula; isotope labels are within the mass or not."""
        found = self._store.by_formula(formula_text(formula)).table
        near = np.abs(found["mass"].to_numpy() - mass) <= reach
        return molecules_of_table(found.filter(pa.array(near)))

    def facts(self) -> dict[str, Any]:
        """What a run folder says of it."""
        return {**self._facts, "molecules": len(self)}


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
    batches = (batch["smiles"].to_pylist() for batch in store.batches(["smiles"], _AT_ONCE))
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
