"""All that `mzseek.chem.fingerprinting` offers."""

from mzseek.chem.fingerprinting.compute import fingerprints, molecule_rows
from mzseek.chem.fingerprinting.kinds import Fingerprint
from mzseek.chem.fingerprinting.registry import FINGERPRINTS, fingerprint_kind
from mzseek.chem.fingerprinting.rows import pack_rows, rows_to_csr, unpack_rows

__all__ = [
    "FINGERPRINTS",
    "Fingerprint",
    "fingerprint_kind",
    "fingerprints",
    "molecule_rows",
    "pack_rows",
    "rows_to_csr",
    "unpack_rows",
]
