import numpy as np
import pytest

from mzseek.chem import exact_mass
from mzseek.core.errors import MoleculeError
from mzseek.fragments.fragmentation import HYDROGEN_BITS, PER_DALTON, atom_graph


def test_the_whole_weighs_what_the_molecule_does() -> None:
    for smiles in ("CCO", "[2H]C([2H])([2H])O", "[13CH3]c1ccccc1", "O=S(=O)(O)CBr", "[H][H]"):
        mass = atom_graph(smiles).units[:, 0].sum() / PER_DALTON
        assert mass == pytest.approx(exact_mass(smiles), abs=1e-7), smiles


def test_hydrogens_belong_to_their_atom() -> None:
    graph = atom_graph("[2H]C([2H])O")
    assert graph.atoms == [1, 3]
    assert graph.hosts == {0: 1, 2: 1}
    assert graph.bonds.tolist() == [[0, 1]]
    counts = graph.units[:, 1]
    assert (counts & ((1 << HYDROGEN_BITS) - 1)).tolist() == [1, 1]
    assert (counts >> HYDROGEN_BITS).tolist() == [9, 9]


def test_a_hydrogen_on_no_heavy_atom_stays_an_atom() -> None:
    graph = atom_graph("[H][H].[H+]")
    assert graph.atoms == [0, 1, 2]
    assert graph.bonds.tolist() == [[0, 1]]
    assert not graph.hosts


def test_charges_are_not_counted() -> None:
    assert np.array_equal(atom_graph("[Na+].[Cl-]").units, atom_graph("[Na].[Cl]").units)


def test_what_is_no_molecule_is_refused() -> None:
    with pytest.raises(MoleculeError, match="empty"):
        atom_graph("")
