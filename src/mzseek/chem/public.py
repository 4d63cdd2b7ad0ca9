"""All that `mzseek.chem` offers."""

from mzseek.adducts import Adduct, known_adducts, neutral_mass, parse_adduct, precursor_mz
from mzseek.chem.describe import DescribedMolecule, describe_molecule, describe_structure
from mzseek.chem.fingerprinting import FINGERPRINTS, fingerprints, pack_rows, unpack_rows
from mzseek.chem.molecule import (
    canonical_smiles,
    exact_mass,
    formula,
    inchi_text,
    inchikey_block,
    parse_inchi,
    parse_molecule,
)
from mzseek.chem.standard import standardise

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
    "pack_rows",
    "parse_adduct",
    "parse_inchi",
    "parse_molecule",
    "precursor_mz",
    "standardise",
    "unpack_rows",
]
