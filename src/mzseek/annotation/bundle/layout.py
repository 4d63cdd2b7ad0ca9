"""The files of a bundle: their names, and what its manifest says."""

from mzseek.errors import BundleError
from mzseek.files.manifest import Manifest

KIND = "model bundle"
AGAIN = "make it again with `mzseek model build` or `mzseek model export`"
_FIELDS = {
    "versions": {"mzseek": str},
    "counts": {"spectra": int, "molecules": int, "peaks": int, "database": int},
}
MANIFEST = Manifest(KIND, BundleError, AGAIN, _FIELDS, versions=(1,))
MODEL, CONFIDENCE, CARD = "model.json", "confidence.json", "card.json"
ARRAYS, RECORDS, MOLECULES, LICENCE = (
    "arrays.bin", "records.parquet", "molecules.parquet", "LICENCE.md",
)  # fmt: skip
PRIOR = "prior.json"  # which a bundle may lack
