"""MAP4: pairs of atoms, each with what is around it, and the number of bonds between them.

Capecchi, Probst and Reymond, J. Cheminform. 12, 43 (2020), https://doi.org/10.1186/s13321-020-00445-4.
Folded instead of min-hashed, so that it has bits; they are those of scikit-fingerprints, which puts
the shorter environment of a pair first, and of two that are equally long that of the first atom.
"""

from hashlib import sha256
from itertools import combinations

import numpy as np
import numpy.typing as npt
from rdkit import Chem
from rdkit.Chem import Mol

_RADII = (1, 2)  # MAP4 is named by the diameter of the larger


def map4_bits(molecule: Mol, bits: int = 4096) -> npt.NDArray[np.uint16]:
    """Set bits of a molecule, rising.

    Examples
    --------
    >>> map4_bits(Chem.MolFromSmiles("CCO")).tolist()
    [1213, 1263, 1746, 2211, 3032, 3997]
    """
    folded = {int.from_bytes(sha256(pair.encode()).digest()[:4], "little") % bits
              for pair in _pairs(molecule)}  # fmt: skip
    return np.array(sorted(folded), np.uint16)


def _pairs(molecule: Mol) -> set[str]:
    """Every pair of atoms in words: the two environments, the shorter first, and the distance."""
    distances = Chem.GetDistanceMatrix(molecule).astype(int).tolist()
    atoms = range(molecule.GetNumAtoms())
    pairs = set()
    for radius in _RADII:
        around = [_environment(molecule, atom, radius) for atom in atoms]
        for a, b in combinations(atoms, 2):
            first, second = around[a], around[b]
            if len(first) > len(second):
                first, second = second, first
            pairs.add(f"{first}|{distances[a][b]}|{second}")
    return pairs


def _environment(molecule: Mol, atom: int, radius: int) -> str:
    """SMILES of what lies within so many bonds of an atom, written from it; empty if too little."""
    bonds = Chem.FindAtomEnvironmentOfRadiusN(molecule, radius, atom)
    places: dict[int, int] = {}
    part = Chem.PathToSubmol(molecule, bonds, atomMap=places)
    if atom not in places:
        return ""
    return str(Chem.MolToSmiles(part, rootedAtAtom=places[atom], isomericSmiles=False))
