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


@pytest.mark.parametrize("smiles", SMILES)
def test_the_order_of_atoms_decides_only_among_more_than_three_ways(smiles: str) -> None:
    molecule = MolFromSmiles(smiles)
    other = MolToSmiles(molecule, rootedAtAtom=molecule.GetNumAtoms() - 1, canonical=False)
    assert other != smiles

    def described(text: str) -> set[tuple[float, ...]]:
        rows = rows_of(text)
        bonds = np.sort(rows.indices[:, 3:18].reshape(-1, 3, 5), axis=1).reshape(-1, 15)
        whole = np.hstack([rows.masses[:, None], rows.numbers, rows.indices[:, :3], bonds])
        return set(map(tuple, whole.round(5).tolist()))

    first, second = described(smiles), described(other)
    # Of more than three ways to break out a mass, others may be described.
    assert len(first & second) >= 0.8 * len(first | second)


def test_the_two_sides_of_a_broken_bond_are_told_apart() -> None:
    rows = rows_of("CCO")
    methyl = rows.indices[np.argmin(abs(rows.masses - 15.0235))]
    rest = rows.indices[np.argmin(abs(rows.masses - 31.0184))]
    assert methyl[3] == rest[3]  # the same bond
    assert (methyl[4], methyl[5]) == (rest[5] - 4096, rest[4] + 4096)  # seen from the other side


def test_large_molecules_keep_the_fragments_of_fewest_cleavages() -> None:
    smiles = "CC(C)C1CC2CC(CCC3CC4CCC3C4)CC(C2)C1" * 2
    rows = rows_of(smiles)
    assert len(rows.masses) <= MAX_ROWS
    assert (np.diff(rows.masses) >= 0).all()
