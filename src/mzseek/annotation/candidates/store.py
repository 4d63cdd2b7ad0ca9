"""Candidates from a molecule database: a store on disk, or the one in the box."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mzseek.annotation.candidates.source import Molecule, Source, formula_text
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.database import Database
from mzseek.database.found import Found
from mzseek.files import StrPath


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
    """

    def __init__(self, store: Store, label: str, facts: Mapping[str, Any]) -> None:
        self._store, self.label, self._facts = store, label, dict(facts)

    @classmethod
    def open(cls, path: StrPath) -> "StoreSource":
        """A store that `mzseek database build` has made."""
        store = Database.open(path)
        sums = {name: file["sha256"] for name, file in store.manifest["files"].items()}
        facts = {"kind": "database", "path": str(store.folder), "sha256": sums}
        return cls(store, store.folder.name, facts)

    def __len__(self) -> int:
        return len(self._store)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        return _molecules(self._store.by_mass(mass, reach / mass * 1e6).table)

    def of_formula(self, formula: str, mass: float, reach: float) -> list[Molecule]:
        """Molecules of a formula; isotope labels are within the mass or not."""
        found = self._store.by_formula(formula_text(formula)).table
        near = np.abs(found["mass"].to_numpy() - mass) <= reach
        return _molecules(found.filter(pa.array(near)))

    def facts(self) -> dict[str, Any]:
        """What a run folder says of it."""
        return {**self._facts, "molecules": len(self)}


def _molecules(table: pa.Table) -> list[Molecule]:
    columns = [
        table[name].to_pylist()
        for name in ("smiles", "key", "formula", "mass", "names", "sources", "identifiers")
    ]
    return [
        Molecule(smiles, key[:BLOCK_LENGTH], formula, mass, names[0] if names else "",
                 tuple(sources), tuple(identifiers))
        for smiles, key, formula, mass, names, sources, identifiers in zip(*columns, strict=True)
    ]  # fmt: skip
