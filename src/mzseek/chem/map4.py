"""MAP4 fingerprints: pairs of circular atom environments and their bond distance.

Capecchi, Probst and Reymond, J. Cheminform. 12, 43 (2020), https://doi.org/10.1186/s13321-020-00445-4.
The rows are those of the authors' package, ``map4``, folded to bits. It puts the shorter
environment of a pair first, and of two that are equally long that of the first atom; how
environments are written depends on the order of atoms, too. So do its rows, and its command line
reads every molecule anew from its canonical SMILES, without stereo and isotopes, before it begins.
Here that is part of the fingerprint: one molecule has one row, however it is written.
"""

from hashlib import sha1
from itertools import combinations

import numpy as np
import numpy.typing as npt
from rdkit import Chem
from rdkit.Chem import Mol

_RADII = (1, 2)  # MAP4 is named by the diameter of the larger


def map4_bits(molecule: Mol, bits: int = 4096) -> npt.NDArray[np.uint16]:
    """Set bits of a molecule, rising.

    Stereo marks change nothing, the order of atoms neither.

    Examples
    --------
    >>> map4_bits(Chem.MolFromSmiles("CCO")).tolist()
    [326, 501, 1922, 2381, 2473, 3673]
    """
    pairs = _pairs(_in_canonical_order(molecule))
    folded = {int.from_bytes(sha1(pair.encode()).digest()[:4], "little") % bits for pair in pairs}
    return np.array(sorted(folded), np.uint16)


def _in_canonical_order(molecule: Mol) -> Mol:
    smiles = Chem.MolToSmiles(molecule, isomericSmiles=False)
    ordered = Chem.MolFromSmiles(smiles)
    if ordered is None:  # RDKit does not accept all that it writes
        ordered = Chem.MolFromSmiles(smiles, sanitize=False)
        ordered.UpdatePropertyCache(strict=False)
    return ordered


def _pairs(molecule: Mol) -> set[str]:
    """Every pair of atoms in words: the two environments, the shorter first, and the distance."""
    distances = Chem.GetDistanceMatrix(molecule).astype(int).tolist()
    atoms = range(molecule.GetNumAtoms())
    pairs: set[str] = set()
    for radius in _RADII:
        around = [_environment(molecule, atom, radius) for atom in atoms]
        # Stable: of two environments that are equally long that of the first atom stays first.
        by_length = sorted(atoms, key=lambda atom: len(around[atom]))
        pairs.update(
            f"{around[a]}|{distances[a][b]}|{around[b]}" for a, b in combinations(by_length, 2)
        )
    return pairs


def _environment(molecule: Mol, atom: int, radius: int) -> str:
    """SMILES of what lies within so many bonds of an atom, written from it; empty if too little."""
    bonds = Chem.FindAtomEnvironmentOfRadiusN(molecule, radius, atom)
    places: dict[int, int] = {}
    part = Chem.PathToSubmol(molecule, bonds, atomMap=places)
    if atom not in places:
        return ""
    return str(Chem.MolToSmiles(part, rootedAtAtom=places[atom], isomericSmiles=False))
