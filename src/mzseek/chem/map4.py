"""MAP4 fingerprints: pairs of circular atom environments and their bond distance.

Capecchi, Probst and Reymond, J. Cheminform. 12, 43 (2020), https://doi.org/10.1186/s13321-020-00445-4.
Rows equal those of the original ``MAP4Calculator(dimensions=4096, radius=2, is_folded=True)``: the
two environments of a pair are in alphabetical order. Later versions of its package order them by
length and set other bits. How environments are written depends on the order of atoms, so a molecule
is read from its canonical SMILES without stereo first: it has one row, however it is written.
"""

from hashlib import sha1
from itertools import combinations

import numpy as np
import numpy.typing as npt
from rdkit import Chem
from rdkit.Chem import Mol

_RADII = (1, 2)  # MAP4 is named by the diameter of the larger


def map4_bits(molecule: Mol, bits: int = 4096) -> npt.NDArray[np.uint16]:
    """Return the set bits of a molecule in ascending order.

    A bit is the SHA-1 of ``a|d|b``, its first four bytes (little-endian) modulo `bits`: SMILES of
    the environments of two atoms at one radius, alphabetically, around their bond distance.

    Examples
    --------
    >>> map4_bits(Chem.MolFromSmiles("CCO")).tolist()
    [515, 1922, 2381, 2473, 3673, 3875]
    """
    molecule = _in_canonical_order(molecule)
    distances = Chem.GetDistanceMatrix(molecule).astype(int).tolist()
    pairs: set[str] = set()
    for radius in _RADII:
        environments = [
            _environment(molecule, atom, radius) for atom in range(molecule.GetNumAtoms())
        ]
        for (i, a), (j, b) in combinations(enumerate(environments), 2):
            first, second = (a, b) if a <= b else (b, a)
            pairs.add(f"{first}|{distances[i][j]}|{second}")
    folded = {int.from_bytes(sha1(pair.encode()).digest()[:4], "little") % bits for pair in pairs}
    return np.array(sorted(folded), np.uint16)


def _in_canonical_order(molecule: Mol) -> Mol:
    flat = Mol(molecule)
    Chem.RemoveStereochemistry(flat)
    smiles = Chem.MolToSmiles(flat)
    ordered = Chem.MolFromSmiles(smiles)
    if ordered is None:  # RDKit does not accept all that it writes
        ordered = Chem.MolFromSmiles(smiles, sanitize=False)
        ordered.UpdatePropertyCache(strict=False)
    return ordered


def _environment(molecule: Mol, atom: int, radius: int) -> str:
    """SMILES of the atoms within `radius` bonds, rooted at `atom`; empty if no bond is that far."""
    bonds = Chem.FindAtomEnvironmentOfRadiusN(molecule, radius, atom)
    atom_map: dict[int, int] = {}
    environment = Chem.PathToSubmol(molecule, bonds, atomMap=atom_map)
    if atom not in atom_map:
        return ""
    return str(Chem.MolToSmiles(environment, rootedAtAtom=atom_map[atom], isomericSmiles=False))
