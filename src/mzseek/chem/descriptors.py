"""Plain numbers of a molecule: atoms by element, rings, bonds that turn, polar surface.

What anybody could count on the drawing of a molecule. Nothing here knows where it comes from.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rdkit.Chem import rdMolDescriptors

from mzseek.chem.molecule import parse_molecule

ELEMENTS = ("C", "H", "N", "O", "S", "P", "F", "Cl", "Br", "I", "Si", "B")
OTHER = "other elements"
# Of RDKit's, those that take microseconds; all are functions of the graph, without stereo.
_RDKIT = (
    "lipinskiHBA", "lipinskiHBD", "NumRotatableBonds", "NumHeteroatoms", "NumAmideBonds",
    "FractionCSP3", "NumRings", "NumAromaticRings", "NumAliphaticRings", "NumSaturatedRings",
    "NumHeterocycles", "NumAromaticHeterocycles", "NumSpiroAtoms", "NumBridgeheadAtoms",
    "labuteASA", "tpsa", "chi0v", "chi1v", "hallKierAlpha", "kappa1",
)  # fmt: skip
DESCRIPTORS = (*ELEMENTS, OTHER, "charge", *_RDKIT)
_ATOM = re.compile(r"([A-Z][a-z]?)(\d*)")
_CHARGE = re.compile(r"([+-])(\d*)$")
_PLACE = {element: place for place, element in enumerate(ELEMENTS)}


def descriptors(smiles: Sequence[str]) -> npt.NDArray[np.float32]:
    """Plain numbers of molecules.

    Parameters
    ----------
    smiles : sequence of str

    Returns
    -------
    float32 array, shape (molecules, len(DESCRIPTORS))
        In the order of `DESCRIPTORS`.

    Raises
    ------
    MoleculeError
        One of them is no molecule.

    Examples
    --------
    >>> caffeine = dict(zip(DESCRIPTORS, descriptors(["Cn1c(=O)c2c(ncn2C)n(C)c1=O"])[0].tolist()))
    >>> [caffeine[name] for name in ("C", "H", "N", "O", "NumRings", "lipinskiHBD")]
    [8.0, 10.0, 4.0, 2.0, 2.0, 0.0]
    """
    computed = rdMolDescriptors.Properties(list(_RDKIT))
    table = np.zeros((len(smiles), len(DESCRIPTORS)), np.float32)
    for row, text in zip(table, smiles, strict=True):
        molecule = parse_molecule(text)
        _count(rdMolDescriptors.CalcMolFormula(molecule), row)
        row[-len(_RDKIT) :] = computed.ComputeProperties(molecule)
    return table


def _count(formula: str, row: npt.NDArray[np.float32]) -> None:
    """Put the atoms and the charge of a formula, as RDKit writes it, into a row."""
    charge = _CHARGE.search(formula)
    if charge:
        row[len(ELEMENTS) + 1] = int(f"{charge[1]}{charge[2] or 1}")
    for element, number in _ATOM.findall(formula):
        row[_PLACE.get(element, len(ELEMENTS))] += int(number or 1)
