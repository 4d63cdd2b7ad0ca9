"""Fingerprints: Morgan, RDKit paths, MACCS, MAP4, computed in batches to sparse rows.

A kind has a number of bits, and turns a batch of molecules into lists of set bits. RDKit's
generators work on whole batches with threads of their own.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from hashlib import sha1
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdFingerprintGenerator, rdMolDescriptors
from rdkit.DataStructs import BitVectToBinaryText, ExplicitBitVect
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import parse_molecule
from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import pointers
from mzseek.io.skipped import SkipTarget, reporter
from mzseek.parallel.processes import restoring_sigint

BitRows = list[npt.NDArray[np.uint16]]
_BATCH = 2_000


class Fingerprint(ABC):
    """One kind of fingerprint.

    Attributes
    ----------
    name : str
        What the command line and the registry call it.
    bits : int
        Length of the bit vector.
    describes : str
        What a set bit stands for, for people.
    """

    name: str
    bits: int
    describes: str

    @abstractmethod
    def rows(self, molecules: Sequence[Mol], threads: int = 1) -> BitRows:
        """Return the set bits of each molecule, rising."""

    def words(self, molecules: Sequence[Mol], threads: int = 1) -> npt.NDArray[np.uint64]:
        """Pack the bits of each molecule, 64 in a word, the first lowest: (molecules, words)."""
        flags = np.zeros((len(molecules), -(-self.bits // 64) * 64), np.uint8)
        for row, bits in zip(flags, self.rows(molecules, threads), strict=True):
            row[bits] = 1
        return np.packbits(flags, axis=1, bitorder="little").view("<u8")


class Generated(Fingerprint):
    """A kind for which RDKit has a generator, folded to 4096 bits; ``make`` makes the generator.

    Where two atoms have environments of the same bonds, RDKit goes on from one of them, and above
    radius 4 Morgan bits then depend on which comes first: these want atoms ``in_order``, the
    canonical one.
    """

    bits = 4096

    def __init__(
        self, name: str, describes: str, make: Callable[..., Any], *, in_order: bool = False
    ) -> None:
        self.name, self.describes = name, describes
        self._make, self._in_order = make, in_order

    @cached_property
    def _generator(self) -> Any:
        return self._make(fpSize=self.bits)

    def rows(self, molecules: Sequence[Mol], threads: int = 1) -> BitRows:
        """See `Fingerprint.rows`."""
        return [_on_bits(vector) for vector in self._vectors(molecules, threads)]

    def words(self, molecules: Sequence[Mol], threads: int = 1) -> npt.NDArray[np.uint64]:
        """See `Fingerprint.words`; RDKit has them packed already."""
        vectors = self._vectors(molecules, threads)
        packed = b"".join(BitVectToBinaryText(vector) for vector in vectors)
        return np.frombuffer(packed, "<u8").reshape(-1, self.bits // 64)

    def _vectors(self, molecules: Sequence[Mol], threads: int) -> Sequence[ExplicitBitVect]:
        if not molecules:
            return ()
        ordered = map(_in_canonical_order, molecules) if self._in_order else molecules
        vectors: Sequence[ExplicitBitVect] = self._generator.GetFingerprints(
            tuple(ordered), numThreads=threads
        )
        return vectors


def _morgan(radius: int) -> Generated:
    make = partial(rdFingerprintGenerator.GetMorganGenerator, radius=radius)
    describes = f"atom environments up to radius {radius}"
    return Generated(f"morgan{radius}", describes, make, in_order=radius > 4)


def _subgraphs(name: str, max_bonds: int, in_words: str) -> Generated:
    make = partial(rdFingerprintGenerator.GetRDKitFPGenerator, maxPath=max_bonds)
    return Generated(name, f"subgraphs of up to {in_words} bonds", make)


class MACCS(Fingerprint):
    """The 166 public MACCS keys (bit 0 is never set)."""

    name = "maccs"
    bits = 167
    describes = "166 chosen substructures"

    def rows(self, molecules: Sequence[Mol], threads: int = 1) -> BitRows:
        """See `Fingerprint.rows`."""
        with restoring_sigint():
            return [_on_bits(rdMolDescriptors.GetMACCSKeysFingerprint(m)) for m in molecules]


class MAP4(Fingerprint):
    """Pairs of circular environments with their bond distance, hashed to 4096 bits.

    Capecchi, Probst and Reymond, J. Cheminform. 12, 43 (2020),
    https://doi.org/10.1186/s13321-020-00445-4. Rows equal those of the original
    ``MAP4Calculator(dimensions=4096, radius=2, is_folded=True)``: the two environments of a pair
    are in alphabetical order. Later versions of its package order them by length and set other
    bits. How environments are written depends on the order of atoms, so a molecule is read from
    its canonical SMILES without stereo first: it has one row, however it is written.
    """

    name = "map4"
    bits = 4096
    describes = "pairs of atom environments with their distance"

    def rows(self, molecules: Sequence[Mol], threads: int = 1) -> BitRows:
        """See `Fingerprint.rows`."""
        with rdBase.BlockLogs():
            return [map4_bits(molecule, self.bits) for molecule in molecules]


class Joined(Fingerprint):
    """Several kinds side by side: the bits of the first, then those of the next.

    A scorer that learns what bits mean has more to learn from; a similarity of such rows is none
    that is published.
    """

    def __init__(self, *kinds: Fingerprint) -> None:
        self.kinds = kinds
        self.name = "-".join(kind.name for kind in kinds)
        self.bits = sum(kind.bits for kind in kinds)
        self.describes = ", then ".join(kind.describes for kind in kinds)

    def rows(self, molecules: Sequence[Mol], threads: int = 1) -> BitRows:
        """See `Fingerprint.rows`."""
        starts = np.cumsum([0, *(kind.bits for kind in self.kinds)])
        of_kinds = [
            [(row + start).astype(np.uint16) for row in kind.rows(molecules, threads)]
            for kind, start in zip(self.kinds, starts, strict=False)
        ]
        return [np.concatenate(of_molecule) for of_molecule in zip(*of_kinds, strict=True)]


def _in_canonical_order(molecule: Mol) -> Mol:
    """Renumber atoms in the order of the canonical SMILES without stereo."""
    plain = Mol(molecule)
    Chem.RemoveStereochemistry(plain)
    Chem.MolToSmiles(plain)
    order = plain.GetPropsAsDict(includePrivate=True, includeComputed=True)
    return Chem.RenumberAtoms(molecule, list(order["_smilesAtomOutputOrder"]))


def _on_bits(vector: ExplicitBitVect) -> npt.NDArray[np.uint16]:
    # A tenth of the time of asking for one bit after the other.
    packed = np.frombuffer(BitVectToBinaryText(vector), np.uint8)
    return np.unpackbits(packed, bitorder="little").nonzero()[0].astype(np.uint16)


def map4_bits(molecule: Mol, bits: int = 4096) -> npt.NDArray[np.uint16]:
    """Return the set bits of a molecule in ascending order.

    A bit is the SHA-1 of ``a|d|b``, its first four bytes (little-endian) modulo `bits`: SMILES of
    the environments of two atoms at one radius, alphabetically, around their bond distance.

    Examples
    --------
    >>> map4_bits(Chem.MolFromSmiles("CCO")).tolist()
    [515, 1922, 2381, 2473, 3673, 3875]
    """
    flat = Mol(molecule)
    Chem.RemoveStereochemistry(flat)
    smiles = Chem.MolToSmiles(flat)
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:  # RDKit does not accept all that it writes
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        molecule.UpdatePropertyCache(strict=False)
    distances = Chem.GetDistanceMatrix(molecule).astype(int).tolist()
    pairs: set[str] = set()
    for radius in (1, 2):  # MAP4 is named by the diameter of the larger
        atoms = range(molecule.GetNumAtoms())
        environments = [_environment(molecule, atom, radius) for atom in atoms]
        for (i, a), (j, b) in combinations(enumerate(environments), 2):
            first, second = (a, b) if a <= b else (b, a)
            pairs.add(f"{first}|{distances[i][j]}|{second}")
    folded = {int.from_bytes(sha1(pair.encode()).digest()[:4], "little") % bits for pair in pairs}
    return np.array(sorted(folded), np.uint16)


def _environment(molecule: Mol, atom: int, radius: int) -> str:
    """Return SMILES of the atoms within `radius` bonds of `atom`; empty if no bond is that far."""
    bonds = Chem.FindAtomEnvironmentOfRadiusN(molecule, radius, atom)
    atom_map: dict[int, int] = {}
    environment = Chem.PathToSubmol(molecule, bonds, atomMap=atom_map)
    if atom not in atom_map:
        return ""
    return str(Chem.MolToSmiles(environment, rootedAtAtom=atom_map[atom], isomericSmiles=False))


MORGAN2, MORGAN4, MORGAN6, MORGAN8 = map(_morgan, (2, 4, 6, 8))
# RDKit's default is seven bonds; subgraphs of up to four are found in a quarter of the time.
RDKIT, RDKIT4 = _subgraphs("rdkit", 7, "seven"), _subgraphs("rdkit4", 4, "four")
MAP4_PAIRS, MACCS_KEYS = MAP4(), MACCS()
MORGAN2_MACCS = Joined(MORGAN2, MACCS_KEYS)


def fingerprints(
    smiles: Sequence[str],
    kind: str = "morgan2",
    *,
    rejects: SkipTarget | None = None,
    threads: int | None = None,
) -> csr_array:
    """Compute the fingerprint bits of molecules, one row each.

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
        Names the molecule, by its index in the list, and the reason.

    Examples
    --------
    >>> fingerprints(["CCO", "c1ccccc1"]).sum(axis=1).tolist()
    [6, 3]
    """
    if isinstance(smiles, str):
        raise MoleculeError("expected a list of SMILES, got a single text")
    bits = fingerprint_kind(kind).bits
    rows: BitRows = []
    for start in range(0, len(smiles), _BATCH):
        batch: list[Mol | None] = []
        for index, text in enumerate(smiles[start : start + _BATCH], start):
            try:
                batch.append(parse_molecule(text))
            except MoleculeError as error:
                if rejects is None:
                    raise MoleculeError(f"molecule {index}: {error}") from error
                reporter(rejects)(f"molecule {index}", error.reason)
                batch.append(None)
        rows += molecule_rows(batch, kind, threads)
    return rows_to_csr(rows, bits)


def molecule_rows(
    molecules: Sequence[Mol | None], kind: str, threads: int | None = None
) -> BitRows:
    """Return the set bits of parsed molecules; those that are None have none."""
    present = [molecule for molecule in molecules if molecule is not None]
    computed = iter(fingerprint_kind(kind).rows(present, threads or os.cpu_count() or 1))
    return [np.empty(0, np.uint16) if m is None else next(computed) for m in molecules]


def rows_to_csr(rows: Sequence[npt.NDArray[np.integer]], bits: int) -> csr_array:
    """Turn lists of set bits into a 0/1 matrix.

    Entries are int32, so that products of rows (counts of common bits) cannot overflow.
    """
    indices = np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32)
    indptr = pointers([len(row) for row in rows])
    return csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=(len(rows), bits))
