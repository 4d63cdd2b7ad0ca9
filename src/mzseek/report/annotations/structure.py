"""A molecule as few numbers: where its atoms lie on paper, and how they are bound.

The page draws it, at any size, and lights up any atoms. As SVG the same would take thirty times
the room.
"""

from functools import lru_cache
from typing import Any

from rdkit.Chem import Atom, Bond, BondDir, Kekulize, Mol, WedgeMolBonds
from rdkit.Chem.rdDepictor import Compute2DCoords
from rdkit.Geometry import Point3D

from mzseek.chem import parse_molecule
from mzseek.errors import MoleculeError

# Hundredths of the length of a bond.
UNIT = 100
_BOND = 1.5  # RDKit's length of a bond
_KEPT = 4096
# Kinds of bonds beside 1, 2 and 3.
WEDGE, DASHES, WAVE = 4, 5, 6
_DIRECTIONS = {
    BondDir.BEGINWEDGE: WEDGE,
    BondDir.BEGINDASH: DASHES,
    BondDir.UNKNOWN: WAVE,
}

Structure = dict[str, Any]


@lru_cache(maxsize=_KEPT)
def structure(smiles: str) -> Structure | None:
    """What is needed to draw a molecule; None where it is none that can be drawn.

    Returns
    -------
    dict or None
        ``xy``: two whole numbers an atom, in `UNIT`, y downwards, in the order of the SMILES.
        ``at``: place → (symbol, hydrogens, charge, isotope), of all atoms that are not plain
        carbon. ``bo``: (atom, atom, kind, side) of each bond; the second line of a double bond is
        on the left (1) or right (−1) of the first, or half of both (0).

    Examples
    --------
    >>> drawn = structure("CC=O")
    >>> drawn["at"], [bond[2] for bond in drawn["bo"]]
    ({'2': ('O', 0, 0, 0)}, [1, 2])
    >>> structure("no molecule") is None
    True
    """
    try:
        molecule = Mol(parse_molecule(smiles))
        Kekulize(molecule, clearAromaticFlags=True)
        Compute2DCoords(molecule)
        flat = molecule.GetConformer()
        WedgeMolBonds(molecule, flat)
    except (MoleculeError, RuntimeError, ValueError):
        return None
    places = [flat.GetAtomPosition(atom) for atom in range(molecule.GetNumAtoms())]
    return {
        "xy": [round(v * UNIT / _BOND) for at in places for v in (at.x, -at.y)],
        "at": {
            str(atom.GetIdx()): label
            for atom in molecule.GetAtoms()
            if (label := _label(atom)) is not None
        },
        "bo": [_bond(molecule, bond, places) for bond in molecule.GetBonds()],
    }


def _label(atom: Atom) -> tuple[str, int, int, int] | None:
    charge, isotope = atom.GetFormalCharge(), atom.GetIsotope()
    is_plain = atom.GetSymbol() == "C" and not charge and not isotope and atom.GetDegree()
    if is_plain and not atom.GetNumRadicalElectrons():
        return None
    return atom.GetSymbol(), atom.GetTotalNumHs(), charge, isotope


def _bond(molecule: Mol, bond: Bond, places: list[Point3D]) -> tuple[int, int, int, int]:
    begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    kind = _DIRECTIONS.get(bond.GetBondDir()) if bond.GetBondTypeAsDouble() < 2 else None
    if kind is None:
        kind = min(max(int(bond.GetBondTypeAsDouble()), 1), 3)
    return begin, end, kind, _side(molecule, bond, places) if kind == 2 else 0


def _side(molecule: Mol, bond: Bond, places: list[Point3D]) -> int:
    """Where the second line of a double bond goes: into its smallest ring, or to its neighbours."""
    begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    rings = [ring for ring in molecule.GetRingInfo().AtomRings() if begin in ring and end in ring]
    if rings:
        near = [atom for atom in min(rings, key=len) if atom not in (begin, end)]
    elif min(bond.GetBeginAtom().GetDegree(), bond.GetEndAtom().GetDegree()) < 2:
        return 0
    else:
        around = (*bond.GetBeginAtom().GetNeighbors(), *bond.GetEndAtom().GetNeighbors())
        near = [atom.GetIdx() for atom in around if atom.GetIdx() not in (begin, end)]
    one, two = places[begin], places[end]
    turn = sum(
        (two.x - one.x) * (places[atom].y - one.y) - (two.y - one.y) * (places[atom].x - one.x)
        for atom in near
    )
    return 1 if turn >= 0 else -1
