"""The kinds of fingerprint: Morgan, RDKit paths, MACCS, MAP4.

A kind says how many bits it has and how a batch of molecules becomes lists of set bits. RDKit's
generators work on whole batches with threads of their own; MAP4 is in a file of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdFingerprintGenerator, rdMolDescriptors
from rdkit.DataStructs import BitVectToBinaryText, ExplicitBitVect

from mzseek.chem.map4 import map4_bits
from mzseek.parallel.processes import restoring_sigint

BitRows = list[npt.NDArray[np.uint16]]
Words = npt.NDArray[np.uint64]
_RDKITS_OWN, _IN_WORDS = 7, {4: "four", 7: "seven"}
_ANY_ORDER = 4  # the largest radius at which RDKit's bits do not depend on the order of atoms


class Fingerprint(ABC):
    """One kind: its name, its length, and how it is computed.

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
        """Set bits of each molecule, rising."""

    def words(self, molecules: Sequence[Mol], threads: int = 1) -> Words:
        """Set bits of each molecule, 64 in a word, the first lowest: shape (molecules, words)."""
        flags = np.zeros((len(molecules), -(-self.bits // 64) * 64), np.uint8)
        for own, row in zip(flags, self.rows(molecules, threads), strict=True):
            own[row] = 1
        return np.packbits(flags, axis=1, bitorder="little").view("<u8")


class _Generated(Fingerprint):
    """Kinds for which RDKit has a generator."""

    bits = 4096

    @abstractmethod
    def _make(self) -> Any:
        """RDKit's generator."""

    @cached_property
    def _generator(self) -> Any:
        return self._make()

    def rows(self, molecules: Sequence[Mol], threads: int = 1) -> BitRows:
        """See `Fingerprint.rows`."""
        return [_on_bits(vector) for vector in self._vectors(molecules, threads)]

    def words(self, molecules: Sequence[Mol], threads: int = 1) -> Words:
        """See `Fingerprint.words`; RDKit has them packed already."""
        vectors = self._vectors(molecules, threads)
        packed = b"".join(BitVectToBinaryText(vector) for vector in vectors)
        return np.frombuffer(packed, "<u8").reshape(-1, self.bits // 64)

    def _vectors(self, molecules: Sequence[Mol], threads: int) -> Sequence[ExplicitBitVect]:
        if not molecules:
            return ()
        found: Sequence[ExplicitBitVect]
        found = self._generator.GetFingerprints(tuple(molecules), numThreads=threads)
        return found


class Morgan(_Generated):
    """Circular environments up to a radius (ECFP-like), folded to 4096 bits.

    Where two atoms have environments of the same bonds, RDKit goes on from one of them, and above
    radius 4 bits then depend on which comes first. So atoms are put in canonical order there.
    """

    def __init__(self, radius: int) -> None:
        self.radius = radius
        self.name = f"morgan{radius}"
        self.describes = f"atom environments up to radius {radius}"

    def _make(self) -> Any:
        return rdFingerprintGenerator.GetMorganGenerator(radius=self.radius, fpSize=self.bits)

    def _vectors(self, molecules: Sequence[Mol], threads: int) -> Sequence[ExplicitBitVect]:
        if self.radius > _ANY_ORDER:
            molecules = [_in_canonical_order(molecule) for molecule in molecules]
        return super()._vectors(molecules, threads)


class RDKitPaths(_Generated):
    """RDKit's own: branched subgraphs of up to so many bonds, folded to 4096 bits.

    Of up to seven by default, as RDKit has it; of up to four they are found in a quarter of the
    time.
    """

    def __init__(self, most: int = 7) -> None:
        self.most = most
        self.name = "rdkit" if most == _RDKITS_OWN else f"rdkit{most}"
        self.describes = f"subgraphs of up to {_IN_WORDS[most]} bonds"

    def _make(self) -> Any:
        return rdFingerprintGenerator.GetRDKitFPGenerator(fpSize=self.bits, maxPath=self.most)


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
    """Pairs of circular environments with their distance, hashed to 4096 bits."""

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
        parts = [
            [(row + start).astype(np.uint16) for row in kind.rows(molecules, threads)]
            for kind, start in zip(self.kinds, starts, strict=False)
        ]
        return [np.concatenate(of_molecule) for of_molecule in zip(*parts, strict=True)]


def _in_canonical_order(molecule: Mol) -> Mol:
    """A molecule with its atoms as its canonical SMILES without stereo has them."""
    plain = Mol(molecule)
    Chem.RemoveStereochemistry(plain)
    Chem.MolToSmiles(plain)
    order = plain.GetPropsAsDict(includePrivate=True, includeComputed=True)
    return Chem.RenumberAtoms(molecule, list(order["_smilesAtomOutputOrder"]))


def _on_bits(vector: ExplicitBitVect) -> npt.NDArray[np.uint16]:
    # A tenth of the time of asking for one bit after the other.
    packed = np.frombuffer(BitVectToBinaryText(vector), np.uint8)
    return np.unpackbits(packed, bitorder="little").nonzero()[0].astype(np.uint16)


# Their names and places stand in `mzseek.chem.fingerprinting`.
MORGAN2, MORGAN4, MORGAN6, MORGAN8 = Morgan(2), Morgan(4), Morgan(6), Morgan(8)
RDKIT, RDKIT4 = RDKitPaths(), RDKitPaths(4)
MAP4_PAIRS, MACCS_KEYS = MAP4(), MACCS()
MORGAN2_MACCS = Joined(MORGAN2, MACCS_KEYS)
