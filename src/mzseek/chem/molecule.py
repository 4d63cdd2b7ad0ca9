"""Parsing molecules, and the few numbers and names that identify them."""

import re

from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek.errors import MoleculeError

# The longest SMILES in public compound collections have a few thousand characters; ring search
# and canonicalisation take minutes far beyond.
MAX_SMILES = 5_000
_INCHI = re.compile(r"(?:InChI\s*[=:]?\s*)?(1S?)/(\S.*)", re.IGNORECASE)


def parse_molecule(smiles: str) -> Mol:
    """Molecule of a SMILES string.

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
    mzseek.errors.MoleculeError: SMILES 'C(C)(C)(C)(C)C': Explicit valence for atom # 0 C, 5, is \
greater than permitted
    """
    if not isinstance(smiles, str):
        raise MoleculeError(f"{smiles!r} is no SMILES, expected text")
    text = smiles.strip()
    if not text:
        raise MoleculeError("SMILES is empty")
    shown = text if len(text) <= 60 else text[:59] + "…"
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
    """InChI that a text is, with its prefix, which many files leave out; empty where it is none.

    Examples
    --------
    >>> inchi_text("1S/CH4/h1H4"), inchi_text('"InChI=1S/CH4/h1H4"'), inchi_text("C")
    ('InChI=1S/CH4/h1H4', 'InChI=1S/CH4/h1H4', '')
    """
    found = _INCHI.fullmatch(text.strip().strip("\"'"))
    return f"InChI={found[1].upper()}/{found[2].strip()}" if found else ""


def parse_inchi(inchi: str) -> Mol:
    """Molecule of an InChI string; raises `MoleculeError` as `parse_molecule` does.

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
    """RDKit's canonical SMILES."""
    return str(Chem.MolToSmiles(parse_molecule(smiles)))


def exact_mass(smiles: str) -> float:
    """Monoisotopic mass.

    Examples
    --------
    >>> round(exact_mass("CN1C=NC2=C1C(=O)N(C(=O)N2C)C"), 4)
    194.0804
    """
    return float(rdMolDescriptors.CalcExactMolWt(parse_molecule(smiles)))


def formula(smiles: str) -> str:
    """Molecular formula in Hill order.

    Examples
    --------
    >>> formula("CN1C=NC2=C1C(=O)N(C(=O)N2C)C")
    'C8H10N4O2'
    """
    return str(rdMolDescriptors.CalcMolFormula(parse_molecule(smiles)))


def inchikey_block(smiles: str) -> str:
    """First block of the InChIKey: the skeleton, blind to stereo, isotopes and protonation.

    Examples
    --------
    >>> inchikey_block("CN1C=NC2=C1C(=O)N(C(=O)N2C)C")
    'RYYVLZVUVIJVGH'
    """
    block = block_of(parse_molecule(smiles))
    if not block:
        raise MoleculeError(f"SMILES {smiles[:60]!r} has no InChIKey")
    return block


def block_of(molecule: Mol) -> str:
    """First InChIKey block of a parsed molecule; empty where InChI has none."""
    with rdBase.BlockLogs():
        return str(Chem.MolToInchiKey(molecule))[:14]
