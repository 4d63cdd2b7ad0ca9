import numpy as np
import pytest
from rdkit.Chem import GetPeriodicTable, MolFromSmiles, MolToSmiles

from mzseek.fragments import pieces
from mzseek.fragments.contexts import (
    EMBEDDINGS,
    INDICES,
    MAX_ROWS,
    NUMBERS,
    FragmentRows,
    describe,
    molecule_context,
)

from ..molecules import KNOWN

SMILES = [
    "CC(=O)Nc1ccc(O)cc1",
    "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "O=C(O)c1ccccc1OP(=O)(O)O",
    "CCN(CC)CCOC(=O)C(c1ccccc1)C1CCCCC1",
    "FC(F)(Cl)C1CCC1Br",
]
UNITS = np.array([10, 3, 3, 1, 1, 2, 1, 1, 1, 1, 10])
SYMBOLS = ("C", "N", "O", "S", "P", "F", "Cl", "Br", "I")


def rows_of(smiles: str) -> FragmentRows:
    return describe(molecule_context(MolFromSmiles(smiles)))


@pytest.mark.parametrize("smiles", SMILES)
def test_rows_have_the_masses_and_compositions_of_all_fragments(smiles: str) -> None:
    rows = rows_of(smiles)
    assert rows.numbers.shape[1] == NUMBERS
    assert rows.indices.shape[1] == INDICES
    assert np.array_equal(np.unique(rows.masses), pieces(smiles).masses)
    inside, lost = (
        np.rint(rows.numbers[:, start : start + 11] * UNITS).astype(int) for start in (0, 11)
    )
    mass = GetPeriodicTable().GetMostCommonIsotopeMass
    masses = np.array([mass(s) for s in SYMBOLS] + [np.nan, mass("H")])
    used = np.flatnonzero(inside.sum(0))
    assert inside[:, used] @ masses[used] == pytest.approx(rows.masses, abs=1e-5)
    assert len(np.unique(inside + lost, axis=0)) == 1
    assert np.array_equal(inside[:, 10], rows.hydrogens)
    assert 0 <= rows.indices.min() <= rows.indices.max() < EMBEDDINGS


def test_rows_do_not_depend_on_the_order_of_atoms() -> None:
    # Among them are molecules with more than three equally short ways to break out a mass.
    for smiles in [*SMILES, *KNOWN]:
        molecule, expected = MolFromSmiles(smiles), rows_of(smiles)
        for root in range(0, molecule.GetNumAtoms(), 5):
            other = rows_of(MolToSmiles(molecule, rootedAtAtom=root, canonical=False))
            for array, same in zip(expected, other, strict=True):
                assert np.array_equal(array, same), smiles


def test_the_two_sides_of_a_broken_bond_are_told_apart() -> None:
    rows = rows_of("CCO")
    methyl = set(rows.indices[np.argmin(abs(rows.masses - 15.0235))].tolist())
    rest = set(rows.indices[np.argmin(abs(rows.masses - 31.0184))].tolist())
    # Environments of the inner atom and of the outer one, which change places.
    environments = {index for index in methyl if index + 4096 in rest}
    assert environments
    assert {index for index in rest if index + 4096 in methyl}


def test_large_molecules_keep_the_fragments_of_fewest_cleavages() -> None:
    smiles = "CC(C)C1CC2CC(CCC3CC4CCC3C4)CC(C2)C1" * 2
    rows = rows_of(smiles)
    assert len(rows.masses) <= MAX_ROWS
    assert (np.diff(rows.masses) >= 0).all()
