"""Molecules in their standard form, as a data set holds them."""

from collections.abc import Sequence
from dataclasses import dataclass

from rdkit import Chem
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek.chem.molecule import block_of, inchi_text, parse_inchi, parse_molecule
from mzseek.chem.standard import standardise, usual_tautomer
from mzseek.errors import MoleculeError

NO_STRUCTURE = "has no structure (SMILES or InChI)"


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
    """Standard form of a SMILES or an InChI, or the reason why it has none.

    What the text is shows in itself, wherever it stood.
    """
    if not structure:
        return NO_STRUCTURE
    try:
        if inchi_text(structure):
            molecule = usual_tautomer(parse_inchi(structure))
        else:
            molecule = parse_molecule(structure)
        return _form(standardise(molecule, keep_stereo=keep_stereo))
    except MoleculeError as error:
        return str(error)


def first_form(structures: Sequence[str], keep_stereo: bool) -> Form | str:
    """Standard form of the first of several texts that has one, or why none of them has.

    Examples
    --------
    >>> first_form(["1S/CH4/h1H4"], False).smiles, first_form(["", "CO"], False).smiles
    ('C', 'CO')
    >>> first_form(["C1", "1S/x"], False)
    "SMILES 'C1': not valid SMILES; InChI '1S/x' cannot be read"
    """
    reasons: list[str] = []
    for structure in dict.fromkeys(filter(None, structures)):
        form = standard_form(structure, keep_stereo)
        if not isinstance(form, str):
            return form
        reasons.append(form)
    return "; ".join(reasons) or NO_STRUCTURE


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
