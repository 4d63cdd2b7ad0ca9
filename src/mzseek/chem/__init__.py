"""Chemistry: molecules parsed with a reason for each failure, masses, adducts, fingerprints."""

from typing import TYPE_CHECKING

from mzseek.core.registry import lazy_names

if TYPE_CHECKING:
    from mzseek.chem.adducts import *  # noqa: F403
    from mzseek.chem.fingerprint_kinds import fingerprints as fingerprints
    from mzseek.chem.fingerprinting import FINGERPRINTS as FINGERPRINTS
    from mzseek.chem.molecules import *  # noqa: F403

# RDKit is loaded when a name that needs it is first used.
__getattr__ = lazy_names(
    "mzseek.chem",
    {
        "adducts": "Adduct known_adducts neutral_mass parse_adduct precursor_mz",
        "fingerprint_kinds": "fingerprints",
        "fingerprinting": "FINGERPRINTS",
        "molecules": "DescribedMolecule canonical_smiles describe_molecule describe_structure "
        "exact_mass formula inchi_text inchikey_block parse_inchi parse_molecule standardise",
    },
)
