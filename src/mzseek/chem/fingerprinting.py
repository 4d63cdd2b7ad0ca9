"""Fingerprints: a registry of kinds, computed in batches to sparse rows."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol
from scipy.sparse import csr_array

from mzseek.chem.fingerprint_kinds import BitRows
from mzseek.chem.molecules import parse_molecule
from mzseek.core.errors import MoleculeError
from mzseek.core.registry import LazyRegistry, choose
from mzseek.io.skipped import Rejects, reporter

if TYPE_CHECKING:
    from mzseek.chem.fingerprint_kinds import Fingerprint


_HERE = "mzseek.chem.fingerprint_kinds"

FINGERPRINTS: "LazyRegistry[Fingerprint]" = LazyRegistry(
    {
        "morgan2": f"{_HERE}:MORGAN2",
        "morgan4": f"{_HERE}:MORGAN4",
        "morgan6": f"{_HERE}:MORGAN6",
        "morgan8": f"{_HERE}:MORGAN8",
        "rdkit": f"{_HERE}:RDKIT",
        "rdkit4": f"{_HERE}:RDKIT4",
        "map4": f"{_HERE}:MAP4_PAIRS",
        "maccs": f"{_HERE}:MACCS_KEYS",
        "morgan2-maccs": f"{_HERE}:MORGAN2_MACCS",
    }
)


# How often the bits of a kind have changed, from 1. The second MAP4 is the published one; the
# second Morgan fingerprints of large radii do not depend on the order of atoms.
_VERSIONS = {"map4": 2, "morgan6": 2, "morgan8": 2}


def fingerprint_kind(name: str) -> "Fingerprint":
    """Kind of that name; an unknown one is refused with the list of those there are."""
    return choose(FINGERPRINTS, name, "fingerprint", MoleculeError)


def kept_version(name: str) -> dict[str, int]:
    """What a manifest's versions say of a kind; nothing of one whose bits never changed.

    Examples
    --------
    >>> kept_version("map4"), kept_version("morgan2")
    ({'map4 fingerprints': 2}, {})
    """
    return {_kept_as(name): _VERSIONS[name]} if name in _VERSIONS else {}


def check_version(
    name: str, manifest: Mapping[str, Any], where: Path, error: type[Exception], again: str
) -> None:
    """Refuse rows of a kind whose bits have changed since: two sorts of them tell nothing together.

    Parameters
    ----------
    name : str
        The kind.
    manifest : mapping
        What the folder says of itself.
    where : Path
        The folder.
    error : type of exception
    again : str
        What to do about it.

    Examples
    --------
    >>> check_version("map4", {"versions": {"rdkit": "2025.3"}}, Path("old"), ValueError, "again!")
    Traceback (most recent call last):
    ...
    ValueError: old: has map4 fingerprints of version 1, expected 2: other bits are set; again!
    """
    said = manifest.get("versions")
    found = said.get(_kept_as(name), 1) if isinstance(said, dict) else 1
    expected = _VERSIONS.get(name, 1)
    if found != expected:
        raise error(
            f"{where}: has {name} fingerprints of version {str(found)[:20]}, expected {expected}: "
            f"other bits are set; {again}"
        )


def _kept_as(name: str) -> str:
    return f"{name} fingerprints"  # the name alone may be a library's: rdkit is


def rows_to_csr(rows: Sequence[npt.NDArray[np.integer]], bits: int) -> csr_array:
    """Lists of set bits to a 0/1 matrix.

    Entries are int32, so that products of rows (counts of common bits) cannot overflow.
    """
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    indices = np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32)
    return csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=(len(rows), bits))


_BATCH = 2_000


def fingerprints(
    smiles: Sequence[str],
    kind: str = "morgan2",
    *,
    rejects: Rejects | None = None,
    threads: int | None = None,
) -> csr_array:
    """Fingerprint bits of molecules, one row each.

    Parameters
    ----------
    smiles : sequence of str
    kind : str
        One of ``FINGERPRINTS``.
    rejects : list or callable, optional
        Gets ``(where, reason)`` for each molecule that cannot be parsed; its row is then empty.
        Without it the first such molecule raises.
    threads : int, optional
        Threads for RDKit's generators; all cores by default.

    Returns
    -------
    scipy.sparse.csr_array of 0/1, shape (molecules, bits)

    Raises
    ------
    MoleculeError
        Names the molecule, by its place in the list, and the reason.

    Examples
    --------
    >>> fingerprints(["CCO", "c1ccccc1"]).sum(axis=1).tolist()
    [6, 3]
    """
    if isinstance(smiles, str):
        raise MoleculeError("expected a list of SMILES, got a single text")
    chosen = fingerprint_kind(kind)
    rows: BitRows = []
    for molecules in _batches(smiles, rejects):
        rows += molecule_rows(molecules, kind, threads)
    return rows_to_csr(rows, chosen.bits)


def molecule_rows(
    molecules: Sequence[Mol | None], kind: str, threads: int | None = None
) -> BitRows:
    """Set bits of parsed molecules; those that are None have none."""
    chosen = fingerprint_kind(kind)
    present = [molecule for molecule in molecules if molecule is not None]
    computed = iter(chosen.rows(present, threads or os.cpu_count() or 1))
    return [np.empty(0, np.uint16) if m is None else next(computed) for m in molecules]


def _batches(smiles: Sequence[str], rejects: Rejects | None) -> Iterator[list[Mol | None]]:
    for start in range(0, len(smiles), _BATCH):
        batch: list[Mol | None] = []
        for place, text in enumerate(smiles[start : start + _BATCH], start):
            try:
                batch.append(parse_molecule(text))
            except MoleculeError as error:
                if rejects is None:
                    raise MoleculeError(f"molecule {place}: {error}") from error
                reporter(rejects)(f"molecule {place}", str(error))
                batch.append(None)
        yield batch
