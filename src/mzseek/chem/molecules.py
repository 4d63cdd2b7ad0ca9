"""Parse, standardise, identify and describe molecules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdMolDescriptors, rdMolHash
from rdkit.Chem.MolStandardize import rdMolStandardize

from mzseek.core.errors import MoleculeError, Reason
from mzseek.core.text import shorten
from mzseek.parallel.processes import restoring_sigint

# The longest SMILES in public compound collections have a few thousand characters; ring search
# and canonicalisation take minutes far beyond.
MAX_SMILES = 5_000
_ATOM = re.compile(r"([A-Z][a-z]?)(\d*)")
_INCHI = re.compile(r"(?:InChI\s*[=:]?\s*)?(1S?)/(\S.*)", re.IGNORECASE)


def parse_molecule(smiles: str) -> Mol:
    """Parse a SMILES string.

    Raises
    ------
    MoleculeError
        With the reason: empty, too long, not SMILES, or chemically impossible.

    Examples
    --------
    >>> parse_molecule("CN1C=NC2=C1C(=O)N(C(=O)N2C)C").GetNumAtoms()
    14
    >>> parse_molecule("C(C)(C)(C)(C)C")
    Traceback (most recent call last):
    ...
    mzseek.core.errors.MoleculeError: SMILES 'C(C)(C)(C)(C)C': Explicit valence for atom # 0 C, 5, \
is greater than permitted
    """
    if not isinstance(smiles, str):
        raise MoleculeError(f"{smiles!r} is no SMILES, expected text")
    text = smiles.strip()
    if not text:
        raise MoleculeError("SMILES is empty")
    shown = shorten(text)
    if len(text) > MAX_SMILES:
        raise MoleculeError(
            f"SMILES {shown!r} has {len(text):,} characters, expected at most {MAX_SMILES:,}"
        )
    if len(text.split()) > 1:
        raise MoleculeError(f"SMILES {shown!r} has white space in it")
    if not text.isascii():  # halves of characters, which bytes of a file can be, RDKit cannot take
        raise MoleculeError(f"SMILES {shown!r} has letters that no SMILES has")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(text)
        if molecule is None:
            raise MoleculeError(f"SMILES {shown!r}: {_why_not(text)}")
    if molecule.GetNumAtoms() == 0:
        raise MoleculeError(f"SMILES {shown!r} has no atoms")
    if "*" in text and any(atom.GetAtomicNum() == 0 for atom in molecule.GetAtoms()):
        raise MoleculeError(f"SMILES {shown!r} has an atom of no element (*)")
    return molecule


def inchi_text(text: str) -> str:
    """Return the InChI in a text, with its prefix, which many files omit; empty if there is none.

    Examples
    --------
    >>> inchi_text("1S/CH4/h1H4"), inchi_text('"InChI=1S/CH4/h1H4"'), inchi_text("C")
    ('InChI=1S/CH4/h1H4', 'InChI=1S/CH4/h1H4', '')
    """
    match = _INCHI.fullmatch(text.strip().strip("\"'"))
    return f"InChI={match[1].upper()}/{match[2].strip()}" if match else ""


def parse_inchi(inchi: str) -> Mol:
    """Parse an InChI string; raises `MoleculeError` as `parse_molecule` does.

    The prefix ``InChI=`` may be missing.
    """
    text = inchi_text(inchi)
    if not text:
        raise MoleculeError(f"InChI {inchi.strip()[:60]!r} does not begin with 'InChI=1'")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromInchi(text) if len(text) <= MAX_SMILES else None
    if molecule is None or molecule.GetNumAtoms() == 0:
        raise MoleculeError(f"InChI {inchi.strip()[:60]!r} cannot be read")
    return molecule


def _why_not(text: str) -> str:
    raw = Chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        return "not valid SMILES"
    problems = Chem.DetectChemistryProblems(raw)
    return str(problems[0].Message()) if problems else "not a valid molecule"


def canonical_smiles(smiles: str) -> str:
    """Return RDKit's canonical SMILES."""
    return str(Chem.MolToSmiles(parse_molecule(smiles)))


def exact_mass(smiles: str) -> float:
    """Return the monoisotopic mass.

    Examples
    --------
    >>> round(exact_mass("CN1C=NC2=C1C(=O)N(C(=O)N2C)C"), 4)
    194.0804
    """
    return float(rdMolDescriptors.CalcExactMolWt(parse_molecule(smiles)))


def formula(smiles: str) -> str:
    """Return the molecular formula in Hill order.

    Examples
    --------
    >>> formula("CN1C=NC2=C1C(=O)N(C(=O)N2C)C")
    'C8H10N4O2'
    """
    return str(rdMolDescriptors.CalcMolFormula(parse_molecule(smiles)))


def inchikey_block(smiles: str) -> str:
    """Return the first InChIKey block: the skeleton, blind to stereo, isotopes and protonation.

    Examples
    --------
    >>> inchikey_block("CN1C=NC2=C1C(=O)N(C(=O)N2C)C")
    'RYYVLZVUVIJVGH'
    """
    molecule = parse_molecule(smiles)
    with rdBase.BlockLogs():
        block = str(Chem.MolToInchiKey(molecule))[:BLOCK_LENGTH]
    if not block:
        raise MoleculeError(f"SMILES {smiles[:60]!r} has no InChIKey")
    return block


# Made once, when they are needed: they read their rules.
_uncharger = lru_cache(maxsize=1)(rdMolStandardize.Uncharger)
_tautomers = lru_cache(maxsize=1)(rdMolStandardize.TautomerEnumerator)


def usual_tautomer(molecule: Mol) -> Mol:
    """Return the tautomer that chemists draw, for a molecule that was read from InChI.

    InChI does not say where mobile hydrogens sit, and RDKit reads amides from it as iminols:
    beside candidates drawn as amides, that would give the molecule away.
    """
    with rdBase.BlockLogs(), restoring_sigint():
        try:
            return _tautomers().Canonicalize(molecule)
        except (ValueError, RuntimeError) as error:
            raise MoleculeError(f"cannot be standardised ({error})") from error


@lru_cache(maxsize=1)
def _chooser() -> rdMolStandardize.LargestFragmentChooser:
    # Organic fragments first: in a hydrochloride of a small amine, Cl is not the molecule.
    parameters = rdMolStandardize.CleanupParameters()
    parameters.largestFragmentChooserUseAtomCount = True
    parameters.preferOrganic = True
    return rdMolStandardize.LargestFragmentChooser(parameters)


def standardise(molecule: Mol | str, *, keep_stereo: bool = False) -> Mol:
    """Return the largest organic fragment in its neutral form.

    Salts lose their counter-ions, acids and amines their charges; charges that no proton can take
    away (quaternary nitrogen) stay. Isotope labels stay: they change the mass.

    Stereo centres and double-bond geometry are dropped unless `keep_stereo`: MS/MS rarely tells
    them apart. Returns a new molecule.

    Examples
    --------
    >>> Chem.MolToSmiles(standardise("C[C@H](N)C(=O)[O-].[Na+]"))
    'CC(N)C(=O)O'
    """
    if not isinstance(molecule, Mol):
        molecule = parse_molecule(molecule)
    with rdBase.BlockLogs(), restoring_sigint():
        try:
            if len(Chem.GetMolFrags(molecule)) > 1:
                molecule = _chooser().choose(molecule)
            if any(atom.GetFormalCharge() for atom in molecule.GetAtoms()):
                molecule = _uncharger().uncharge(molecule)
            molecule = Mol(molecule)
            if not keep_stereo:
                Chem.RemoveStereochemistry(molecule)
            # Re-reading makes the form independent of how the input was written.
            plain = Chem.MolFromSmiles(Chem.MolToSmiles(molecule))
        except (ValueError, RuntimeError) as error:
            raise MoleculeError(f"cannot be standardised ({error})") from error
    if plain is None:
        raise MoleculeError("cannot be standardised")
    return plain


MASS_DIGITS = 6
BLOCK_LENGTH = 14
NO_STRUCTURE = Reason("has no structure (SMILES or InChI)", "no-molecule")


@dataclass(frozen=True, slots=True)
class DescribedMolecule:
    """A molecule with its identifiers.

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
    def inchikey14(self) -> str:
        """First block of the InChIKey; empty where there is none."""
        return self.inchikey[:BLOCK_LENGTH]

    @property
    def key(self) -> str:
        """First InChIKey block; without one the SMILES, marked, which no other molecule has."""
        return self.inchikey14 or f"SMILES={self.smiles}"

    @property
    def rounded_mass(self) -> float:
        """The mass as identities have it."""
        return round(self.mass, MASS_DIGITS)

    @property
    def identity(self) -> tuple[str, float]:
        """Equal for two descriptions of one molecule, and for no others."""
        return self.key, self.rounded_mass


def describe_structure(text: str, *, keep_stereo: bool = False) -> DescribedMolecule:
    """Standardise and describe a SMILES or an InChI.

    What the text is shows in itself. An InChI may lack its prefix, and is read as the tautomer that
    chemists draw. `keep_stereo` keeps it in the SMILES, and so in the second block of the InChIKey;
    the identity does not change. Raises `MoleculeError` for what is no molecule.

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


def describe_first(
    structures: Sequence[str], keep_stereo: bool = False
) -> DescribedMolecule | Reason:
    """Describe the first of several texts that is a molecule; or return why none of them is.

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
        if molecule.inchikey14:
            return molecule
        reasons.append("has no InChIKey")  # a table of spectra has a column for it
    return Reason("; ".join(reasons), "bad-molecule") if reasons else NO_STRUCTURE


def describe_molecule(molecule: Mol) -> DescribedMolecule:
    """Describe a molecule as it is.

    Examples
    --------
    >>> describe_molecule(parse_molecule("C[C@H](N)C(=O)[O-]")).smiles
    'C[C@H](N)C(=O)[O-]'
    """
    return describe_molecules([molecule])[0]


def describe_molecules(molecules: Sequence[Mol]) -> list[DescribedMolecule]:
    """Describe molecules as they are.

    One property of all after the other: done in turns, with InChI between, each takes longer.
    """
    smiles = [str(Chem.MolToSmiles(molecule)) for molecule in molecules]
    formulas = [str(rdMolDescriptors.CalcMolFormula(molecule)) for molecule in molecules]
    masses = [float(rdMolDescriptors.CalcExactMolWt(molecule)) for molecule in molecules]
    with rdBase.BlockLogs():
        keys = [str(Chem.MolToInchiKey(molecule)) for molecule in molecules]
    return list(map(DescribedMolecule, smiles, formulas, masses, keys))


@lru_cache(maxsize=65_536)
def element_counts(formula: str) -> Mapping[str, int]:
    """Return the number of atoms of each element in a formula as RDKit writes it.

    Examples
    --------
    >>> element_counts("C2H6ClN+")
    {'C': 2, 'H': 6, 'Cl': 1, 'N': 1}
    """
    counts: dict[str, int] = {}
    for element, number in _ATOM.findall(formula):
        counts[element] = counts.get(element, 0) + int(number or 1)
    return counts


def parse_structure(text: str) -> Mol:
    """Parse a SMILES or an InChI; raises `MoleculeError` as `parse_molecule` does."""
    if inchi_text(text):
        return usual_tautomer(parse_inchi(text))
    return parse_molecule(text)


def parse_mol_block(block: str) -> Mol:
    """Parse a MOL block; raises `MoleculeError`."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromMolBlock(block)
    if molecule is None or molecule.GetNumAtoms() == 0:
        raise MoleculeError("the MOL block cannot be read as a molecule")
    return molecule


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
_CHARGE = re.compile(r"([+-])(\d*)$")
_INDEX = {element: index for index, element in enumerate(ELEMENTS)}


def descriptors(smiles: Sequence[str]) -> npt.NDArray[np.float32]:
    """Compute the `DESCRIPTORS` of molecules, shape (molecules, len(DESCRIPTORS)).

    Raises `MoleculeError` for what is no molecule.

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
        formula = rdMolDescriptors.CalcMolFormula(molecule)
        for element, number in element_counts(formula).items():
            row[_INDEX.get(element, len(ELEMENTS))] += number
        if charge := _CHARGE.search(formula):
            row[len(ELEMENTS) + 1] = int(f"{charge[1]}{charge[2] or 1}")
        row[-len(_RDKIT) :] = computed.ComputeProperties(molecule)
    return table


@lru_cache(maxsize=100_000)
def tautomer_key(smiles: str) -> str:
    """Return a text that tautomers and stereoisomers of a molecule have in common.

    RDKit's hash of tautomers (HetAtomTautomerv2), which knows those of heteroatoms and of enols; a
    text that is no molecule is its own key.

    Examples
    --------
    >>> tautomer_key("Oc1ccccn1") == tautomer_key("O=c1cccc[nH]1")
    True
    >>> tautomer_key("C[C@H](N)C(=O)O") == tautomer_key("CC(N)C(O)=O")
    True
    """
    try:
        molecule = Mol(parse_molecule(smiles))
    except MoleculeError:
        return smiles
    Chem.RemoveStereochemistry(molecule)
    return str(rdMolHash.MolHash(molecule, rdMolHash.HashFunction.HetAtomTautomerv2))
