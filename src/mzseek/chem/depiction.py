"""2D coordinates of molecules, for drawing."""

from functools import lru_cache
from typing import Any

from rdkit.Chem import Atom, Bond, BondDir, Kekulize, Mol, WedgeMolBonds
from rdkit.Chem.rdDepictor import Compute2DCoords

from mzseek.chem.molecules import parse_molecule
from mzseek.core.errors import MoleculeError

# Hundredths of the length of a bond.
UNIT = 100
_BOND = 1.5  # RDKit's length of a bond
_CACHE_SIZE = 4096
# Kinds of bonds beside 1, 2 and 3.
WEDGE, DASHES, WAVE = 4, 5, 6
_DIRECTIONS = {
    BondDir.BEGINWEDGE: WEDGE,
    BondDir.BEGINDASH: DASHES,
    BondDir.UNKNOWN: WAVE,
}

Structure = dict[str, Any]
Positions = list[tuple[float, float]]


@lru_cache(maxsize=_CACHE_SIZE)
def structure(smiles: str) -> Structure | None:
    """Return atoms, bonds and 2D coordinates of a molecule; None if it cannot be drawn.

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
    positions: Positions = [(x, y) for x, y, _ in flat.GetPositions().tolist()]
    rings = [set(ring) for ring in molecule.GetRingInfo().AtomRings()]
    return {
        "xy": [round(v * UNIT / _BOND) for x, y in positions for v in (x, -y)],
        "at": {
            str(atom.GetIdx()): label
            for atom in molecule.GetAtoms()
            if (label := _label(atom)) is not None
        },
        "bo": [_bond(bond, rings, positions) for bond in molecule.GetBonds()],
    }


def _label(atom: Atom) -> tuple[str, int, int, int] | None:
    symbol, charge, isotope = atom.GetSymbol(), atom.GetFormalCharge(), atom.GetIsotope()
    is_plain = symbol == "C" and not charge and not isotope and atom.GetDegree()
    if is_plain and not atom.GetNumRadicalElectrons():
        return None
    return symbol, atom.GetTotalNumHs(), charge, isotope


def _bond(bond: Bond, rings: list[set[int]], positions: Positions) -> tuple[int, int, int, int]:
    begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    order = min(max(int(bond.GetBondTypeAsDouble()), 1), 3)
    if order == 1:
        return begin, end, _DIRECTIONS.get(bond.GetBondDir(), 1), 0
    return begin, end, order, _side(bond, begin, end, rings, positions) if order == 2 else 0


def _side(bond: Bond, begin: int, end: int, rings: list[set[int]], positions: Positions) -> int:
    """Return the side of a double bond's second line: into its smallest ring, or to neighbours."""
    around = [ring for ring in rings if begin in ring and end in ring]
    if around:
        adjacent = min(around, key=len)
    else:
        first, second = bond.GetBeginAtom(), bond.GetEndAtom()
        if min(first.GetDegree(), second.GetDegree()) < 2:
            return 0
        adjacent = {atom.GetIdx() for atom in (*first.GetNeighbors(), *second.GetNeighbors())}
    (x, y), (x2, y2) = positions[begin], positions[end]
    turn = sum(
        (x2 - x) * (positions[atom][1] - y) - (y2 - y) * (positions[atom][0] - x)
        for atom in adjacent - {begin, end}
    )
    return 1 if turn >= 0 else -1
