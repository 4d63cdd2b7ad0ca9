"""One molecule has one row: however it is written, and whichever part of mzseek computes it."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import Mol

from mzseek.chem import FINGERPRINTS, fingerprints
from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.molecules import describe_structure
from mzseek.database import MoleculeRecord
from mzseek.database.records import RecordsAt, describe_records
from mzseek.datasets.molecules import describe_batch

from ..molecules import MOLECULES

# Stereo, isotopes, charges, salts, cages, and rings in which Morgan's large environments coincide.
WRITTEN = [
    "N[C@@H](Cc1ccccc1)C(=O)O", "OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O", "C/C=C/C(=O)/C=C\\C",
    "[13CH3]C(=O)[O-].[Na+]", "[2H]C([2H])([2H])Oc1ccccc1", "C[N+](C)(C)CC(=O)[O-]",
    "C1C2CC3CC1CC(C2)C3", "Cl.CN1CCc2c3c(ccc2O)O[C@H]2C(=O)CC[C@@H]1[C@]32",
    "COc1ccc(-c2ccc(C(=O)O)c(C)c2)cc1", "C[Si](C)(C)C#Cc1ccc(OCC2CC2)cc1",
    "CC(C)CN1CCN(c2ccc([N+](=O)[O-])cn2)CC1", "COC=C1C2CCC1CN(C(=O)OC(C)(C)C)C2",
    "NC1CCCC(=C2c3ccccc3CCc3ccccc32)C1", "O=c1cc[nH]c(=O)[nH]1", "Oc1ccc2c(c1)[nH]c1ccccc12",
]  # fmt: skip
SPELLED = [*WRITTEN, *MOLECULES]
Spell = Callable[[Mol, int], str]


def as_ordered(molecule: Mol, seed: int) -> str:
    """As the atoms stand."""
    return str(Chem.MolToSmiles(molecule, canonical=False))


def at_random(molecule: Mol, seed: int) -> str:
    return str(Chem.MolToRandomSmilesVect(molecule, 1, randomSeed=1 + seed)[0])


def with_brackets(molecule: Mol, seed: int) -> str:
    """Every atom in brackets, its hydrogens counted."""
    return str(Chem.MolToSmiles(molecule, canonical=False, allHsExplicit=True))


def with_hydrogens(molecule: Mol, seed: int) -> str:
    """Hydrogens are atoms."""
    return str(Chem.MolToSmiles(Chem.AddHs(molecule), canonical=False))


def with_double_bonds(molecule: Mol, seed: int) -> str:
    """No aromatic atoms."""
    plain = Mol(molecule)
    Chem.Kekulize(plain, clearAromaticFlags=True)
    return str(Chem.MolToSmiles(plain, canonical=False))


SPELLINGS: list[Spell] = [
    as_ordered, at_random, with_brackets, with_hydrogens, with_double_bonds,
]  # fmt: skip


def shuffled(smiles: str, seed: int) -> Mol:
    molecule = Chem.MolFromSmiles(smiles)
    order = list(range(molecule.GetNumAtoms()))
    random.Random(seed).shuffle(order)
    return Chem.RenumberAtoms(molecule, order)


def of_prepare(smiles: str, kind: str) -> list[int]:
    return describe_batch([smiles], kind)[0].bits.tolist()


def of_bands(smiles: str, kind: str) -> list[int]:
    return fingerprints([smiles], kind, threads=1).indices.tolist()


def of_database(smiles: str, kind: str) -> list[int]:
    described = describe_records(RecordsAt([MoleculeRecord("here", smiles)], 0), kind)
    packed = described.table["fingerprint"][0].as_py()
    return np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8))).tolist()


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    smiles=st.sampled_from(SPELLED),
    seed=st.integers(0, 2**31 - 2),
    spell=st.sampled_from(SPELLINGS),
)
def test_a_row_is_the_same_in_any_spelling(smiles: str, seed: int, spell: Spell) -> None:
    molecule = shuffled(smiles, seed)
    spelled = spell(molecule, seed)
    canonical = Chem.MolToSmiles(Chem.MolFromSmiles(smiles))
    standard = describe_structure(smiles).smiles
    for kind in FINGERPRINTS:
        row = of_bands(canonical, kind)
        assert molecule_rows([molecule], kind, threads=1)[0].tolist() == row, kind
        assert of_prepare(spelled, kind) == of_bands(spelled, kind) == row, kind
        assert of_database(spelled, kind) == of_prepare(standard, kind), kind


@pytest.mark.parametrize("kind", FINGERPRINTS)
@pytest.mark.parametrize("spell", SPELLINGS)
def test_stereo_says_nothing(kind: str, spell: Spell) -> None:
    for smiles in (text for text in WRITTEN if "@" in text or "/" in text):
        plain = Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False)
        assert of_prepare(spell(shuffled(smiles, 1), 1), kind) == of_prepare(plain, kind)
