"""Molecules in memory, found by name, formula, mass or structure."""

from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array, load_npz, save_npz

from mzseek.chem import fingerprints
from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import DatabaseError, MoleculeError
from mzseek.database.store import rows_with_text
from mzseek.io import atomic_file

FINGERPRINT = "morgan2"
_NAMES = ("names", "identifiers")  # columns that are searched by name, the first ones first


class Found(NamedTuple):
    """Molecules that were found.

    Attributes
    ----------
    rows : int64 array
        The best first.
    similarities : float64 array or None
        Tanimoto similarity of each, of a search by structure.
    """

    rows: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float64] | None = None


class MoleculeTable:
    """Molecules of the model or of a library, searched as a database is.

    Parameters
    ----------
    table : pyarrow.Table
        Columns ``smiles``, ``formula``, ``mass`` and lists of ``names`` and ``identifiers``.
    cache : Path
        Folder for fingerprints, which are computed for the first search by structure.
    """

    def __init__(self, table: pa.Table, cache: Path) -> None:
        self.table, self._cache = table, cache

    def search(self, kind: str, query: str, ppm: float) -> Found:
        """Find molecules by name, formula, mass or smiles, the `kind` of query.

        Raises
        ------
        DatabaseError
            The query cannot be understood.
        MoleculeError
            It is no SMILES.
        """
        if kind == "mass":
            return self._by_mass(number(query), ppm)
        if kind == "formula":
            return self._by_formula(query)
        return self._by_similarity(query) if kind == "smiles" else self._by_name(query)

    def _by_mass(self, mass: float, ppm: float) -> Found:
        differences = np.abs(self.table["mass"].to_numpy() - mass)
        rows = np.flatnonzero(differences <= mass * ppm * 1e-6)
        return Found(rows[np.argsort(differences[rows], kind="stable")])

    def _by_formula(self, text: str) -> Found:
        try:
            formula = str(parse_formula(text))
        except MoleculeError as error:
            raise DatabaseError(str(error)) from error
        return Found(np.flatnonzero(pc.equal(self.table["formula"], formula).to_numpy()))

    def _by_name(self, text: str) -> Found:
        rows = [row for name in _NAMES for row in rows_with_text([self.table], text, name)]
        return Found(np.array(list(dict.fromkeys(rows)), np.int64))

    def _by_similarity(self, smiles: str) -> Found:
        wanted = csr_array(fingerprints([smiles], FINGERPRINT), dtype=np.float64)
        shared = (self._fingerprints.astype(np.float64) @ wanted.T).toarray().ravel()
        union = np.diff(self._fingerprints.indptr) + wanted.sum() - shared
        similarity = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        order = np.argsort(-similarity, kind="stable")
        return Found(order, similarity[order])

    @cached_property
    def _fingerprints(self) -> csr_array:
        """Fingerprints of all molecules, which are computed once and kept in the folder."""
        smiles = self.table["smiles"].to_pylist()
        digest = sha256("\n".join(smiles).encode()).hexdigest()[:16]
        path = self._cache / f"{FINGERPRINT}-{digest}.npz"
        if path.is_file():
            return csr_array(load_npz(path))
        bits = csr_array(fingerprints(smiles, FINGERPRINT))
        with atomic_file(path) as partial, partial.open("wb") as file:
            save_npz(file, bits)
        return bits


def number(query: str) -> float:
    """Return the mass in a query."""
    try:
        return float(query)
    except ValueError:
        raise DatabaseError(f"mass {query[:40]!r}: expected a number") from None


def named_molecules(molecules: pa.Table, named: pa.Table) -> pa.Table:
    """Return the molecules of a library with names and identifiers of others of the same key."""
    keys = [key[:BLOCK_LENGTH] for key in molecules["inchikey"].to_pylist()]
    rows = {key: row for row, key in enumerate(named["key"].to_pylist())}
    indices = pa.array([rows.get(key) for key in keys], pa.int64())
    for column in _NAMES:
        molecules = molecules.append_column(column, named[column].take(indices))
    return molecules
