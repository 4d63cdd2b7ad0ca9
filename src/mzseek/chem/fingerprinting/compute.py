"""Fingerprints of long lists of molecules."""

import os
from collections.abc import Iterator, Sequence

import numpy as np
from rdkit.Chem import Mol
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting.kinds import BitRows
from mzseek.chem.fingerprinting.registry import fingerprint_kind
from mzseek.chem.fingerprinting.rows import rows_to_csr
from mzseek.chem.molecule import parse_molecule
from mzseek.errors import MoleculeError
from mzseek.rejects import Rejects, reporter

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
