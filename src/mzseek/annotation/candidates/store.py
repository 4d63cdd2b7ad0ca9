"""Candidates from a molecule database."""

from typing import Any

import numpy as np
import pyarrow as pa

from mzseek.annotation.candidates.source import Molecule, Source, formula_text
from mzseek.database import Database
from mzseek.files import StrPath


class StoreSource(Source):
    """A store that `mzseek database build` has made."""

    def __init__(self, path: StrPath) -> None:
        self._store = Database.open(path)
        self.label = self._store.folder.name

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
        manifest = self._store.manifest
        return {
            "kind": "database",
            "path": str(self._store.folder),
            "molecules": len(self),
            "sha256": {name: file["sha256"] for name, file in manifest["files"].items()},
        }


def _molecules(table: pa.Table) -> list[Molecule]:
    columns = [
        table[name].to_pylist()
        for name in ("smiles", "key", "formula", "mass", "names", "sources", "identifiers")
    ]
    return [
        Molecule(smiles, key[:14], formula, mass, names[0] if names else "", tuple(sources),
                 tuple(identifiers))
        for smiles, key, formula, mass, names, sources, identifiers in zip(*columns, strict=True)
    ]  # fmt: skip
