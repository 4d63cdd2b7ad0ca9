"""Fragments against an independent brute force: all sets of bonds, one by one."""

import random
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from mzseek.chem import exact_mass
from mzseek.core.compiled import compiled
from mzseek.core.errors import MoleculeError
from mzseek.fragments import pieces
from mzseek.fragments.fragmentation import BONDS, HYDROGEN_BITS, PER_DALTON, RING_BONDS, atom_graph

from ..molecules import KNOWN


def random_molecule(rng: random.Random) -> str:
    """A connected graph with as many rings as it likes, its elements by what valence allows."""
    atoms = rng.randint(2, 10)
    degree = [0] * atoms
    bonds: set[tuple[int, int]] = set()
    for new in range(1, atoms):
        old = rng.choice([atom for atom in range(new) if degree[atom] < 4])
        bonds.add((old, new))
        degree[old], degree[new] = degree[old] + 1, degree[new] + 1
    for _ in range(rng.randint(0, 5)):
        one, two = sorted(rng.sample(range(atoms), 2))
        if (one, two) not in bonds and degree[one] < 4 and degree[two] < 4:
            bonds.add((one, two))
            degree[one], degree[two] = degree[one] + 1, degree[two] + 1
    allowed = {1: "CNOF", 2: "CNOS", 3: "CNP", 4: "CC"}
    made = Chem.RWMol()
    for each in degree:
        made.AddAtom(Chem.Atom(rng.choice(allowed[each])))
    for one, two in bonds:
        made.AddBond(one, two, Chem.BondType.SINGLE)
    Chem.SanitizeMol(made)
    return Chem.MolToSmiles(made)


def small_molecules() -> list[str]:
    rng = random.Random(0)
    known = [text for text in KNOWN if Chem.MolFromSmiles(text).GetNumBonds() <= 18]
    return known[:100] + [random_molecule(rng) for _ in range(500 - len(known[:100]))]


def components(atoms: int, bonds: list[tuple[int, int]]) -> list[set[int]]:
    part = list(range(atoms))
    for one, two in bonds:
        old, new = part[one], part[two]
        part = [new if each == old else each for each in part]
    return [{a for a in range(atoms) if part[a] == label} for label in set(part)]


def brute_force(smiles: str) -> dict[float, tuple[int, int]]:
    """Fewest bonds, and fewest of them in rings, for each mass."""
    molecule = Chem.MolFromSmiles(smiles)
    table = Chem.GetPeriodicTable()
    masses = [
        table.GetMostCommonIsotopeMass(atom.GetAtomicNum())
        + atom.GetTotalNumHs() * table.GetMostCommonIsotopeMass(1)
        for atom in molecule.GetAtoms()
    ]
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    rings = [bond.IsInRing() for bond in molecule.GetBonds()]
    best: dict[float, tuple[int, int]] = {}
    for size in range(4):
        for broken in combinations(range(len(bonds)), size):
            if size == 3 and sum(rings[bond] for bond in broken) < 2:
                continue
            left = [bond for place, bond in enumerate(bonds) if place not in broken]
            for part in components(len(masses), left):
                mass = round(sum(masses[atom] for atom in part), 6)
                way = (size, sum(rings[bond] for bond in broken))
                best[mass] = min(best.get(mass, way), way)
    return best


@pytest.mark.slow
def test_fragments_are_those_of_all_sets_of_bonds() -> None:
    molecules = small_molecules()
    assert len(molecules) == 500
    kinds = set()
    for smiles in molecules:
        expected, found = brute_force(smiles), pieces(smiles)
        masses = [round(mass, 6) for mass in found.masses.tolist()]
        ways = zip(found.bonds.tolist(), found.ring_bonds.tolist(), strict=True)
        assert dict(zip(masses, ways, strict=True)) == expected, smiles
        kinds |= set(expected.values())
    # Every kind of cleavage was met.
    assert kinds == set(zip(BONDS.tolist(), RING_BONDS.tolist(), strict=True))


@pytest.mark.parametrize("rings", [3, 50, 62, 63, 70])
def test_more_cycles_than_bits_cut_alike(rings: int) -> None:
    # A chain of three-membered rings: beyond 62 rings labels are random numbers.
    found = pieces("C1CC1" * rings)
    assert [int((found.codes == code).sum()) for code in range(6)] == [
        1, rings - 1, rings - 2, 2 * rings, 2 * rings - 2, 0
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KNOWN), st.randoms(use_true_random=False))
def test_order_of_atoms_and_spelling_change_nothing(smiles: str, rng: random.Random) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    order = list(range(molecule.GetNumAtoms()))
    rng.shuffle(order)
    shuffled = Chem.RenumberAtoms(molecule, order)
    spelled = Chem.MolToSmiles(shuffled, canonical=False, kekuleSmiles=False)
    Chem.Kekulize(shuffled, clearAromaticFlags=True)
    kekule = Chem.MolToSmiles(shuffled, canonical=False, kekuleSmiles=True)
    first = pieces(smiles)
    for other in (pieces(spelled), pieces(kekule)):
        for name in ("masses", "codes", "hydrogens", "electrons"):
            assert np.array_equal(getattr(first, name), getattr(other, name))


def test_where_no_code_can_be_kept_it_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def njit(**options: bool) -> Callable[[Callable[[], int]], Callable[[], int]]:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        assert options == {"nogil": True}
        return lambda function: function

    monkeypatch.setattr("numba.njit", njit)
    assert compiled(lambda: 7)() == 7


def test_hydrogens_electrons_and_parts_of_a_salt() -> None:
    found = pieces("CO")
    assert found.hydrogens.tolist() == [3, 1, 4]
    assert found.electrons.tolist() == [9, 9, 18]
    salt = pieces("[Na+].CC(=O)[O-]")
    assert salt.masses[salt.bonds == 0].round(4).tolist() == [22.9898, 59.0133]


def test_fewer_cleavages_give_a_subset() -> None:
    for cleavages in range(3):
        some, more = pieces(KNOWN[0], cleavages), pieces(KNOWN[0], cleavages + 1)
        assert some.bonds.max() <= cleavages
        assert set(some.masses) <= set(more.masses)
        assert not some.truncated
    with pytest.raises(ValueError, match="expected 0 to 3"):
        pieces("CCO", 4)


WORST = {
    "three paths of 50 and 49 atoms": "C12" + "C" * 50 + "C(" + "C" * 49 + "1)" + "C" * 49 + "2",
    "ring of 100, a chain of 50": "C1" + "C" * 99 + "1" + "C" * 50,
    "chain": "C" * 150,
}


@pytest.mark.parametrize("smiles", WORST.values(), ids=WORST)
def test_150_heavy_atoms_are_listed_whole_in_less_than_a_second(smiles: str) -> None:
    pieces("CCO")  # compiled
    start = time.process_time()
    found = pieces(smiles)
    assert time.process_time() - start < 1.0
    assert Chem.MolFromSmiles(smiles).GetNumHeavyAtoms() >= 150
    assert (found.cleavages, found.truncated) == (3, False)


def test_truncation_is_reported() -> None:
    found = pieces("C" * 2500)
    assert (found.cleavages, found.truncated) == (1, True)
    assert (found.bonds.max(), len(found)) == (1, 2500)


@pytest.mark.parametrize(
    "smiles", ["CCO", "[2H]C([2H])([2H])O", "[13CH3]c1ccccc1", "O=S(=O)(O)CBr", "[H][H]"]
)
def test_the_graph_weighs_what_the_molecule_does(smiles: str) -> None:
    mass = atom_graph(smiles).units[:, 0].sum() / PER_DALTON
    assert mass == pytest.approx(exact_mass(smiles), abs=1e-7)


def test_hydrogens_belong_to_their_heavy_atom() -> None:
    graph = atom_graph("[2H]C([2H])O")
    assert (graph.atoms, graph.hosts, graph.bonds.tolist()) == ([1, 3], {0: 1, 2: 1}, [[0, 1]])
    counts = graph.units[:, 1]
    assert (counts & ((1 << HYDROGEN_BITS) - 1)).tolist() == [1, 1]
    assert (counts >> HYDROGEN_BITS).tolist() == [9, 9]
    alone = atom_graph("[H][H].[H+]")
    assert (alone.atoms, alone.hosts, alone.bonds.tolist()) == ([0, 1, 2], {}, [[0, 1]])


def test_charges_are_not_counted_and_no_molecule_is_refused() -> None:
    assert np.array_equal(atom_graph("[Na+].[Cl-]").units, atom_graph("[Na].[Cl]").units)
    with pytest.raises(MoleculeError, match="empty"):
        atom_graph("")
