"""One table of unique molecules, described once, in parallel."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol
from scipy.sparse import csr_array

from mzseek.chem.describe import DescribedMolecule, describe_molecules
from mzseek.chem.fingerprinting import fingerprint_kind, molecule_rows
from mzseek.chem.molecule import parse_molecule
from mzseek.errors import MoleculeError
from mzseek.ragged import pointers
from mzseek.work.batches import in_batches
from mzseek.work.progress import Progress, silent

_BATCH = 1_000


@dataclass
class MoleculeBatch:
    """A batch of molecules; entry i belongs to the batch's i-th SMILES.

    Attributes
    ----------
    molecules : list of DescribedMolecule or str
        As they are written, not standardised; the reason where one was refused.
    bits : uint16 array
        Set bits of all molecules, concatenated.
    counts : int32 array
        Set bits of each.
    """

    molecules: list[DescribedMolecule | str]
    bits: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.int32]


def describe_batch(smiles: Sequence[str], kind: str) -> MoleculeBatch:
    """Everything that the table holds of these molecules.

    RDKit holds Python's lock while it parses and while InChI works, so batches go to processes,
    and each of them uses one thread.
    """
    parsed: list[Mol | None] = []
    faults: dict[int, str] = {}
    for place, text in enumerate(smiles):
        try:
            parsed.append(parse_molecule(text))
        except MoleculeError as error:
            parsed.append(None)
            faults[place] = str(error)
    rows = molecule_rows(parsed, kind, threads=1)
    described = iter(describe_molecules([molecule for molecule in parsed if molecule is not None]))
    molecules = [faults[p] if p in faults else next(described) for p in range(len(smiles))]
    return MoleculeBatch(
        molecules,
        np.concatenate([np.empty(0, np.uint16), *rows]),
        np.array([len(row) for row in rows], dtype=np.int32),
    )


def describe_all(
    smiles: Sequence[str],
    kind: str,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Iterator[MoleculeBatch]:
    """Batches in order, computed by ``jobs`` processes (all cores by default)."""
    done = 0
    for batch, result in in_batches(partial(describe_batch, kind=kind), smiles, _BATCH, jobs):
        done += len(batch)
        progress("molecules", done, len(smiles))
        yield result


@dataclass
class MoleculeTable:
    """Distinct structures, and which of them each given SMILES stands for.

    Two SMILES stand for one structure when their canonical SMILES are equal: fingerprints are of
    structures as they are written. Tautomers and stereo isomers are rows of their own, and one
    molecule by the identity rule of `mzseek.chem.describe`.

    Attributes
    ----------
    index : int32 array, shape (given SMILES,)
        Row in the table, or -1 where the SMILES was refused.
    faults : dict of int to str
        Reason for each refused SMILES.
    """

    kind: str
    smiles: list[str]
    formulas: list[str]
    blocks: npt.NDArray[np.bytes_]
    masses: npt.NDArray[np.float64]
    fingerprint_indptr: npt.NDArray[np.int64]
    fingerprint_bits: npt.NDArray[np.uint16]
    index: npt.NDArray[np.int32]
    faults: dict[int, str]

    def __len__(self) -> int:
        return len(self.smiles)

    def fingerprints(self) -> csr_array:
        """0/1 rows of all molecules."""
        bits = self.fingerprint_bits.astype(np.int32)
        shape = (len(self), fingerprint_kind(self.kind).bits)
        return csr_array((np.ones(len(bits), np.int32), bits, self.fingerprint_indptr), shape=shape)

    @cached_property
    def fingerprint_classes(self) -> npt.NDArray[np.int64]:
        """A number for each molecule; equal numbers mean equal fingerprints."""
        return row_classes(self.fingerprint_bits, self.fingerprint_indptr)

    @cached_property
    def block_classes(self) -> npt.NDArray[np.int64]:
        """A number for each molecule; equal numbers mean equal first InChIKey blocks.

        Molecules that InChI cannot name are each alone in their class.
        """
        classes = np.unique(self.blocks, return_inverse=True)[1].astype(np.int64)
        nameless = self.blocks == b""
        classes[nameless] = -1 - np.arange(int(nameless.sum()))
        return classes


def build_molecule_table(
    smiles: Sequence[str],
    kind: str = "morgan2",
    jobs: int | None = None,
    progress: Progress = silent,
) -> MoleculeTable:
    """Describe molecules and merge those that are the same."""
    place_of: dict[str, int] = {}
    unique: list[DescribedMolecule] = []
    kept_bits: list[npt.NDArray[np.uint16]] = []
    kept_counts: list[npt.NDArray[np.int32]] = []
    index = np.full(len(smiles), -1, dtype=np.int32)
    faults: dict[int, str] = {}
    given = 0
    for batch in describe_all(smiles, kind, jobs, progress):
        new = np.zeros(len(batch.molecules), dtype=bool)
        for i, molecule in enumerate(batch.molecules):
            if isinstance(molecule, str):
                faults[given + i] = molecule
                continue
            place = place_of.setdefault(molecule.smiles, len(unique))
            if place == len(unique):
                unique.append(molecule)
                new[i] = True
            index[given + i] = place
        kept_bits.append(batch.bits[np.repeat(new, batch.counts)])
        kept_counts.append(batch.counts[new])
        given += len(batch.molecules)
    counts = np.concatenate([np.empty(0, np.int32), *kept_counts])
    return MoleculeTable(
        kind=kind,
        smiles=list(place_of),
        formulas=[molecule.formula for molecule in unique],
        blocks=np.array([molecule.block for molecule in unique], dtype="S14"),
        masses=np.array([molecule.mass for molecule in unique], dtype=np.float64),
        fingerprint_indptr=pointers(counts),
        fingerprint_bits=np.concatenate([np.empty(0, np.uint16), *kept_bits]),
        index=index,
        faults=faults,
    )


def row_classes(
    values: npt.NDArray[np.uint16], indptr: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """A number for each ragged row; equal numbers mean equal rows.

    Rows are compared by a 128-bit digest: exact for every purpose, at 16 bytes a row.
    """
    data = np.ascontiguousarray(values).tobytes()
    size = values.itemsize
    bounds = (indptr * size).tolist()
    digests = b"".join(
        blake2b(data[start:end], digest_size=16).digest()
        for start, end in itertools.pairwise(bounds)
    )
    return np.unique(np.frombuffer(digests, dtype="V16"), return_inverse=True)[1].astype(np.int64)
