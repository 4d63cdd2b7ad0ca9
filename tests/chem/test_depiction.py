"""What is needed to draw a molecule."""

import numpy as np
import pytest
from rdkit import Chem

from mzseek.chem.depiction import DASHES, UNIT, WEDGE, structure


@pytest.mark.parametrize(
    "smiles",
    ["C", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "c1ccccc1C#N", "[Na+].CC(=O)[O-]", "[2H]C([2H])O",
     "O=C1CCCCCCCCCCCCCC1", "[H][H]"],
)  # fmt: skip
def test_atoms_and_bonds_are_those_of_the_molecule(smiles: str) -> None:
    drawn, molecule = structure(smiles), Chem.MolFromSmiles(smiles)
    assert drawn is not None
    assert len(drawn["xy"]) == 2 * molecule.GetNumAtoms()
    assert [set(bond[:2]) for bond in drawn["bo"]] == [
        {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} for bond in molecule.GetBonds()
    ]
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    orders = [int(bond.GetBondTypeAsDouble()) for bond in molecule.GetBonds()]
    assert [bond[2] for bond in drawn["bo"]] == orders


def test_a_bond_is_one_unit_long_wherever_it_can_be() -> None:
    drawn = structure("CC(C)Cc1ccc(cc1)C(C)C(=O)O")
    at = np.array(drawn["xy"]).reshape(-1, 2)
    lengths = [np.hypot(*(at[a] - at[b])) for a, b, *_ in drawn["bo"]]
    assert np.allclose(lengths, UNIT, atol=2)


def test_labels_tell_what_is_not_plain_carbon() -> None:
    drawn = structure("C[NH2+]CC([13CH3])O")
    assert drawn["at"] == {"1": ("N", 2, 1, 0), "4": ("C", 3, 0, 13), "5": ("O", 1, 0, 0)}
    assert structure("C")["at"] == {"0": ("C", 4, 0, 0)}  # nothing else would be seen of it


def test_the_second_line_of_a_double_bond_is_inside_its_ring() -> None:
    drawn = structure("c1ccccc1")
    at = np.array(drawn["xy"], float).reshape(-1, 2)
    centre = at.mean(axis=0)
    sides = [bond for bond in drawn["bo"] if bond[2] == 2]
    assert len(sides) == 3
    for begin, end, _, side in sides:
        along = at[end] - at[begin]
        left = np.array([along[1], -along[0]])  # y points down
        assert side * float(left @ (centre - at[begin])) > 0


def test_the_lines_of_a_double_bond_at_an_end_lie_around_it() -> None:
    assert [bond[3] for bond in structure("CC=O")["bo"] if bond[2] == 2] == [0]


def test_stereo_is_shown_and_its_mirror_image_differs() -> None:
    one, other = (structure(s)["bo"] for s in ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"))
    kinds = [{bond[2] for bond in each} & {WEDGE, DASHES} for each in (one, other)]
    assert all(kinds)
    assert one != other


@pytest.mark.parametrize("smiles", ["", "no molecule", "C(", "<script>"])
def test_what_is_no_molecule_is_not_drawn(smiles: str) -> None:
    assert structure(smiles) is None
