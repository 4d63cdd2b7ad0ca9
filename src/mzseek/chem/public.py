"""All that `mzseek.chem` offers."""

from mzseek.chem.adducts import Adduct, known_adducts, neutral_mass, parse_adduct, precursor_mz
from mzseek.chem.fingerprint_kinds import fingerprints
from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.chem.molecules import (
    DescribedMolecule,
    canonical_smiles,
    describe_molecule,
    describe_structure,
    exact_mass,
    formula,
    inchi_text,
    inchikey_block,
    parse_inchi,
    parse_molecule,
    standardise,
)

__all__ = [
    "FINGERPRINTS",
    "Adduct",
    "DescribedMolecule",
    "canonical_smiles",
    "describe_molecule",
    "describe_structure",
    "exact_mass",
    "fingerprints",
    "formula",
    "inchi_text",
    "inchikey_block",
    "known_adducts",
    "neutral_mass",
    "parse_adduct",
    "parse_inchi",
    "parse_molecule",
    "precursor_mz",
    "standardise",
]
