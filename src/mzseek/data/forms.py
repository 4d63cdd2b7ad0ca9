"""Molecules in their standard form, as a data set holds them."""

from collections.abc import Sequence
from dataclasses import dataclass

from rdkit import Chem
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek.chem.molecule import block_of, parse_inchi, parse_molecule
from mzseek.chem.standardise import standardise, usual_tautomer
from mzseek.errors import MoleculeError


@dataclass(frozen=True)
class Form:
    """A molecule in its standard form."""

    smiles: str
    formula: str
    mass: float
    block: str

    @property
    def identity(self) -> tuple[str, float]:
        """What makes it the same molecule: the skeleton, and the mass, which isotopes change."""
        return self.block, round(self.mass, 3)


def standard_form(structure: str, keep_stereo: bool) -> Form | str:
    """Standard form of a SMILES or InChI, or the reason why it has none."""
    if not structure:
        return "has no structure (SMILES or InChI)"
    try:
        if structure.startswith("InChI="):
            molecule = usual_tautomer(parse_inchi(structure))
        else:
            molecule = parse_molecule(structure)
        return _form(standardise(molecule, keep_stereo=keep_stereo))
    except MoleculeError as error:
        return str(error)


def _form(molecule: Mol) -> Form:
    block = block_of(molecule)
    if not block:
        raise MoleculeError("has no InChIKey")
    return Form(
        Chem.MolToSmiles(molecule),
        rdMolDescriptors.CalcMolFormula(molecule),
        rdMolDescriptors.CalcExactMolWt(molecule),
        block,
    )


def standard_forms(smiles: Sequence[str], keep_stereo: bool) -> list[Form | str]:
    """Standard forms of a batch, or the reasons why there are none."""
    return [standard_form(text, keep_stereo) for text in smiles]
