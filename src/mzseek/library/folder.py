"""The files of a library: their names, their forms, and what its manifest says."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.errors import LibraryError
from mzseek.files.arrays import check_pointers, check_range, load_array
from mzseek.files.manifest import Manifest
from mzseek.library.lists import Ions, Lists

KIND = "spectral library"
AGAIN = "build it again"
_FIELDS = {
    "sources": [{"name": str, "sha256": str}],
    "counts": {"spectra": int, "molecules": int, "peaks": int, "rejects": int},
}
MANIFEST = Manifest(KIND, LibraryError, AGAIN, _FIELDS, versions=(1,))
POINTERS, MZ, INTENSITIES = "pointers.npy", "mz.npy", "intensities.npy"
PRECURSORS, MODES, MOLECULE_OF = "precursors.npy", "modes.npy", "molecule_of.npy"
RECORDS, MOLECULES, REJECTS = "records.parquet", "molecules.parquet", "rejects.tsv"
RECORD_COLUMNS = (
    "identifier", "adduct", "collision_energy", "instrument_type", "contributor", "license",
    "source",
)  # fmt: skip
RECORD_SCHEMA = pa.schema([(name, pa.string()) for name in RECORD_COLUMNS])
MOLECULE_SCHEMA = pa.schema(
    [("smiles", pa.string()), ("inchikey", pa.string()), ("formula", pa.string()),
     ("mass", pa.float64())]
)  # fmt: skip


class LibraryFolder:
    """The arrays and tables of a library's folder, checked for the forms its manifest says.

    Arrays are memory-mapped and tables are read when it is opened: when another library takes the
    place of this one, this one goes on.

    Parameters
    ----------
    folder : Path
    manifest : dict
        As `MANIFEST` has read it.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        counts = manifest["counts"]
        spectra, peaks = counts["spectra"], counts["peaks"]
        self.peaks = Lists(
            self._array(POINTERS, np.int64, spectra + 1),
            self._array(MZ, np.float64, peaks),
            self._array(INTENSITIES, np.float64, peaks),
        )
        check_pointers(self.peaks.pointers, peaks, folder / POINTERS, LibraryError, AGAIN)
        self.ions = Ions(
            self._array(PRECURSORS, np.float64, spectra), self._array(MODES, np.int8, spectra)
        )
        self.molecule_of = self._array(MOLECULE_OF, np.int32, spectra)
        where = folder / MOLECULE_OF
        check_range(self.molecule_of, 0, counts["molecules"], where, LibraryError, AGAIN)
        self.records = self._table(RECORDS, RECORD_SCHEMA, spectra)
        self.molecules = self._table(MOLECULES, MOLECULE_SCHEMA, counts["molecules"])

    @classmethod
    def held(
        cls, folder: Path, peaks: Lists, ions: Ions, molecule_of: npt.NDArray[np.integer],
        records: pa.Table, molecules: pa.Table,
    ) -> Self:  # fmt: skip
        """A library whose arrays and tables are at hand already, in whatever folder they lay.

        Parameters
        ----------
        folder : Path
            What messages call it.
        peaks : Lists
            Peaks of each spectrum, in rising order.
        ions : Ions
        molecule_of : int array, shape (spectra,)
            Place of each spectrum's molecule.
        records, molecules : pyarrow.Table
            Of the forms `RECORD_SCHEMA` and `MOLECULE_SCHEMA`.

        Raises
        ------
        LibraryError
            They do not fit together.
        """
        spectra = len(peaks.pointers) - 1
        for table, schema, length in (
            (records, RECORD_SCHEMA, spectra),
            (molecules, MOLECULE_SCHEMA, len(molecules)),
        ):
            if not table.schema.equals(schema) or len(table) != length:
                raise LibraryError(f"{folder}: has other columns or rows than expected; {AGAIN}")
        check_pointers(peaks.pointers, len(peaks.values), folder, LibraryError, AGAIN)
        check_range(molecule_of, 0, len(molecules), folder, LibraryError, AGAIN)
        lengths = {len(ions.precursors), len(ions.modes), len(molecule_of)}
        if lengths != {spectra} or len(peaks.weights) != len(peaks.values):
            raise LibraryError(f"{folder}: has arrays of other lengths than expected; {AGAIN}")
        made = cls.__new__(cls)
        made.folder, made.peaks, made.ions = folder, peaks, ions
        made.molecule_of = np.asarray(molecule_of, np.int32)
        made.records, made.molecules = records, molecules
        counts = {
            "spectra": spectra, "molecules": len(molecules), "peaks": len(peaks.values),
            "rejects": 0,
        }  # fmt: skip
        made.manifest = {"kind": KIND, "sources": [], "counts": counts, "files": {}}
        return made

    def _array(self, name: str, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
        return load_array(self.folder / name, dtype, [length], LibraryError, AGAIN)

    def _table(self, name: str, schema: pa.Schema, length: int) -> pa.Table:
        where = self.folder / name
        try:
            table = pq.read_table(where)
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:100]
            raise LibraryError(f"{where}: cannot be read ({reason}); {AGAIN}") from error
        if not table.schema.equals(schema) or len(table) != length:
            raise LibraryError(f"{where}: has other columns or rows than expected; {AGAIN}")
        return table
