"""A molecule as what is broken: heavy atoms with their hydrogens, and the bonds between them."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rdkit.Chem import GetPeriodicTable, Mol

from mzseek.chem.molecule import parse_molecule

# Masses are whole numbers of nanodaltons: sums are exact, and so the same in any order of atoms.
PER_DALTON = 1_000_000_000
# Electrons and hydrogens are counted in one number: electrons · 2²⁰ + hydrogens.
HYDROGEN_BITS = 20
HYDROGEN = 1


@dataclass(frozen=True, eq=False)
class AtomGraph:
    """Heavy atoms and their bonds.

    Hydrogens belong to the atom they sit on, isotopes of hydrogen, too. Masses are of neutral
    atoms: formal charges are not counted.

    Attributes
    ----------
    molecule : Mol
    atoms : list of int
        RDKit's index of each heavy atom: its place in the SMILES.
    hosts : dict of int to int
        Of each hydrogen that is written as an atom of its own, the heavy atom that it belongs to.
    units : int64 array, shape (atoms, 2)
        Mass in nanodaltons, and electrons and hydrogens (without isotopes that are named), of
        each atom with its hydrogens.
    bonds : int32 array, shape (bonds, 2)
        The two atoms of each bond.
    """

    molecule: Mol
    atoms: list[int]
    hosts: dict[int, int]
    units: npt.NDArray[np.int64]
    bonds: npt.NDArray[np.int32]


def atom_graph(smiles: str) -> AtomGraph:
    """Graph of a SMILES; raises `MoleculeError`."""
    return graph_of(parse_molecule(smiles))


def graph_of(molecule: Mol) -> AtomGraph:
    """Graph of a molecule that is parsed already."""
    # By index, and not over RDKit's sequences, which take most of the time for themselves.
    every = map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))
    units = [_unit(atom.GetAtomicNum(), atom.GetIsotope(), atom.GetTotalNumHs()) for atom in every]
    bonds = map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    pairs = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    atoms, hosts = list(range(len(units))), {}
    if len(units) > molecule.GetNumHeavyAtoms():
        hosts = _hosts(molecule)
        for one, host in hosts.items():
            units[host] = (units[host][0] + units[one][0], units[host][1] + units[one][1])
        atoms = [atom for atom in atoms if atom not in hosts]
        place = {atom: new for new, atom in enumerate(atoms)}
        pairs = [(place[a], place[b]) for a, b in pairs if a in place and b in place]
        units = [units[atom] for atom in atoms]
    return AtomGraph(
        molecule,
        atoms,
        hosts,
        np.array(units, np.int64).reshape(-1, 2),
        np.array(pairs, np.int32).reshape(-1, 2),
    )


def _hosts(molecule: Mol) -> dict[int, int]:
    """Heavy atom of each written hydrogen; one that has none stays an atom."""
    hosts = {}
    for atom in molecule.GetAtoms():
        near = atom.GetNeighbors()
        if atom.GetAtomicNum() == HYDROGEN and near and near[0].GetAtomicNum() != HYDROGEN:
            hosts[atom.GetIdx()] = near[0].GetIdx()
    return hosts


@lru_cache(maxsize=4096)
def _unit(number: int, isotope: int, hydrogens: int) -> tuple[int, int]:
    """Mass, and electrons and hydrogens, of an atom with hydrogens on it."""
    mass = nano_mass(number, isotope) + hydrogens * nano_mass(HYDROGEN)
    held = hydrogens + (number == HYDROGEN and not isotope)
    return mass, ((number + hydrogens) << HYDROGEN_BITS) + held


@lru_cache(maxsize=4096)
def nano_mass(number: int, isotope: int = 0) -> int:
    """Mass of an atom in nanodaltons, of its most abundant isotope where none is named.

    Examples
    --------
    >>> nano_mass(6), nano_mass(6, 13)
    (12000000000, 13003354840)
    """
    table = GetPeriodicTable()
    mass = (
        table.GetMassForIsotope(number, isotope)
        if isotope
        else table.GetMostCommonIsotopeMass(number)
    )
    return round(float(mass) * PER_DALTON)
