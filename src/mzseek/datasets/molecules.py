"""One table of unique molecules, described once, in parallel."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
from rdkit import Chem
from rdkit.Chem import Mol, rdMolDescriptors
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting import fingerprint_kind, molecule_rows
from mzseek.chem.molecule import block_of, parse_molecule
from mzseek.errors import MoleculeError
from mzseek.work.batches import in_batches
from mzseek.work.progress import Progress, silent

_BATCH = 1_000


@dataclass
class Described:
    """A batch of molecules; entry i belongs to the batch's i-th SMILES.

    Attributes
    ----------
    smiles, formulas, blocks : list of str
        Canonical SMILES, formula, first InChIKey block; empty where the molecule was refused.
    masses : float64 array
    bits : uint16 array
        Set bits of all molecules, concatenated.
    counts : int32 array
        Set bits of each.
    faults : dict of int to str
        Reason for each refused molecule.
    """

    smiles: list[str]
    formulas: list[str]
    blocks: list[str]
    masses: npt.NDArray[np.float64]
    bits: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.int32]
    faults: dict[int, str] = field(default_factory=dict)


def describe(smiles: Sequence[str], kind: str) -> Described:
    """Everything that the table holds of these molecules.

    RDKit holds Python's lock while it parses and while InChI works, so batches go to processes,
    and each of them uses one thread.
    """
    molecules: list[Mol | None] = []
    faults: dict[int, str] = {}
    for place, text in enumerate(smiles):
        try:
            molecules.append(parse_molecule(text))
        except MoleculeError as error:
            molecules.append(None)
            faults[place] = str(error)
    rows = molecule_rows(molecules, kind, threads=1)
    return Described(
        smiles=["" if m is None else Chem.MolToSmiles(m) for m in molecules],
        formulas=["" if m is None else rdMolDescriptors.CalcMolFormula(m) for m in molecules],
        blocks=["" if m is None else block_of(m) for m in molecules],
        masses=np.array(
            [np.nan if m is None else rdMolDescriptors.CalcExactMolWt(m) for m in molecules]
        ),
        bits=np.concatenate([np.empty(0, np.uint16), *rows]),
        counts=np.array([len(row) for row in rows], dtype=np.int32),
        faults=faults,
    )


def describe_all(
    smiles: Sequence[str],
    kind: str,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Iterator[Described]:
    """Batches in order, computed by ``jobs`` processes (all cores by default)."""
    done = 0
    for batch, result in in_batches(partial(describe, kind=kind), smiles, _BATCH, jobs):
        done += len(batch)
        progress("molecules", done, len(smiles))
        yield result


@dataclass
class MoleculeTable:
    """Unique molecules, and which of them each given SMILES stands for.

    Two SMILES stand for the same molecule when their canonical SMILES are equal.

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
    formulas: list[str] = []
    blocks: list[str] = []
    masses: list[float] = []
    kept_bits: list[npt.NDArray[np.uint16]] = []
    kept_counts: list[npt.NDArray[np.int32]] = []
    index = np.full(len(smiles), -1, dtype=np.int32)
    faults: dict[int, str] = {}
    offset = 0
    for batch in describe_all(smiles, kind, jobs, progress):
        new = np.zeros(len(batch.smiles), dtype=bool)
        for i, text in enumerate(batch.smiles):
            if i in batch.faults:
                faults[offset + i] = batch.faults[i]
                continue
            place = place_of.get(text)
            if place is None:
                place = place_of[text] = len(formulas)
                formulas.append(batch.formulas[i])
                blocks.append(batch.blocks[i])
                masses.append(float(batch.masses[i]))
                new[i] = True
            index[offset + i] = place
        kept_bits.append(batch.bits[np.repeat(new, batch.counts)])
        kept_counts.append(batch.counts[new])
        offset += len(batch.smiles)
    counts = np.concatenate([np.empty(0, np.int32), *kept_counts])
    return MoleculeTable(
        kind=kind,
        smiles=list(place_of),
        formulas=formulas,
        blocks=np.array(blocks, dtype="S14"),
        masses=np.array(masses, dtype=np.float64),
        fingerprint_indptr=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
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
