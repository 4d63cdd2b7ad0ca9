"""What is known of a molecule by its structure, and when two are the same one.

**The identity rule.** Two molecules are the same if their keys are equal, and their masses to six
digits. The key is the first block of the InChIKey: the skeleton, whatever the stereo, the tautomer
(as far as InChI sees it) and the protonation; of a molecule that InChI cannot name it is its
canonical SMILES. The mass keeps isotope labels apart, to which the block is blind; it is rounded,
since two ways to write one molecule sum the same atoms in another order.

Whoever compares molecules compares `DescribedMolecule.identity`, or its key where the masses are
known to be equal, or are not to matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek.chem.molecule import inchi_text, parse_inchi, parse_molecule
from mzseek.chem.standard import standardise, usual_tautomer
from mzseek.errors import MoleculeError

MASS_DIGITS = 6
BLOCK_LENGTH = 14
NO_STRUCTURE = "has no structure (SMILES or InChI)"


@dataclass(frozen=True, slots=True)
class DescribedMolecule:
    """A molecule in the form in which it was described.

    Attributes
    ----------
    smiles : str
        Canonical.
    formula : str
        In Hill order; isotopes count as their elements.
    mass : float
        Monoisotopic, isotope labels and charges included.
    inchikey : str
        Whole; empty where InChI has none.
    """

    smiles: str
    formula: str
    mass: float
    inchikey: str

    @property
    def block(self) -> str:
        """First block of the InChIKey; empty where there is none."""
        return self.inchikey[:BLOCK_LENGTH]

    @property
    def key(self) -> str:
        """The block; of what InChI cannot name the SMILES, marked, which is no key of another."""
        return self.block or f"SMILES={self.smiles}"

    @property
    def rounded_mass(self) -> float:
        """The mass as identities have it."""
        return round(self.mass, MASS_DIGITS)

    @property
    def identity(self) -> tuple[str, float]:
        """Equal for two descriptions of one molecule, and for no others."""
        return self.key, self.rounded_mass


def describe_structure(text: str, *, keep_stereo: bool = False) -> DescribedMolecule:
    """Standard form of a SMILES or an InChI, described.

    What the text is shows in itself. An InChI may lack its prefix, and is read as the tautomer that
    chemists draw.

    Parameters
    ----------
    text : str
    keep_stereo : bool
        In the SMILES, and so in the second block of the InChIKey; the identity does not change.

    Raises
    ------
    MoleculeError
        It is no molecule; the message says why.

    Examples
    --------
    >>> alanine = describe_structure("C[C@H](N)C(=O)[O-].[Na+]")
    >>> alanine.smiles, alanine.formula, alanine.inchikey
    ('CC(N)C(=O)O', 'C3H7NO2', 'QNAYBMKLOCPYGJ-UHFFFAOYSA-N')
    >>> inchi = "1S/C3H7NO2/c1-2(4)3(5)6/h2H,4H2,1H3,(H,5,6)"
    >>> alanine.identity == describe_structure(inchi).identity
    True
    >>> describe_structure("[2H]C").identity == describe_structure("C").identity
    False
    """
    return describe_molecule(standardise(parse_structure(text), keep_stereo=keep_stereo))


def describe_first(structures: Sequence[str], keep_stereo: bool = False) -> DescribedMolecule | str:
    """The first of several texts that is a molecule, described; or why none of them is.

    Examples
    --------
    >>> describe_first(["1S/CH4/h1H4"], False).smiles, describe_first(["", "CO"], False).smiles
    ('C', 'CO')
    >>> describe_first(["C1", "1S/x"], False)
    "SMILES 'C1': not valid SMILES; InChI '1S/x' cannot be read"
    """
    reasons: list[str] = []
    for structure in dict.fromkeys(filter(None, structures)):
        try:
            molecule = describe_structure(structure, keep_stereo=keep_stereo)
        except MoleculeError as error:
            reasons.append(str(error))
            continue
        if molecule.block:
            return molecule
        reasons.append("has no InChIKey")  # a table of spectra has a column for it
    return "; ".join(reasons) or NO_STRUCTURE


def describe_molecule(molecule: Mol) -> DescribedMolecule:
    """A molecule described as it is.

    Examples
    --------
    >>> describe_molecule(parse_molecule("C[C@H](N)C(=O)[O-]")).smiles
    'C[C@H](N)C(=O)[O-]'
    """
    return describe_molecules([molecule])[0]


def describe_molecules(molecules: Sequence[Mol]) -> list[DescribedMolecule]:
    """Molecules described as they are.

    One property of all after the other: done in turns, with InChI between, each takes longer.
    """
    smiles = [str(Chem.MolToSmiles(molecule)) for molecule in molecules]
    formulas = [str(rdMolDescriptors.CalcMolFormula(molecule)) for molecule in molecules]
    masses = [float(rdMolDescriptors.CalcExactMolWt(molecule)) for molecule in molecules]
    with rdBase.BlockLogs():
        keys = [str(Chem.MolToInchiKey(molecule)) for molecule in molecules]
    return list(map(DescribedMolecule, smiles, formulas, masses, keys))


def parse_structure(text: str) -> Mol:
    """Molecule of a SMILES or an InChI; raises `MoleculeError` as `parse_molecule` does."""
    if inchi_text(text):
        return usual_tautomer(parse_inchi(text))
    return parse_molecule(text)


def parse_mol_block(block: str) -> Mol:
    """Molecule of a MOL block; raises `MoleculeError`."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromMolBlock(block)
    if molecule is None or molecule.GetNumAtoms() == 0:
        raise MoleculeError("the MOL block cannot be read as a molecule")
    return molecule
