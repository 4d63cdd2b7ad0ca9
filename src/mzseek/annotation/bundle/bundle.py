"""A bundle, opened: all that `annotate` needs, and nothing else."""

from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.annotation.bundle.arrays import Arrays
from mzseek.annotation.bundle.layout import (
    AGAIN,
    ARRAYS,
    CARD,
    CONFIDENCE,
    LICENCE,
    MANIFEST,
    MODEL,
    MOLECULES,
    PRIOR,
    RECORDS,
)
from mzseek.annotation.bundle.molecules import SCHEMA, BoxedMolecules, column_of
from mzseek.annotation.bundle.peaks import MOST_PEAKS
from mzseek.annotation.confidence import Confidence
from mzseek.errors import BundleError, LibraryError
from mzseek.files import StrPath
from mzseek.files.json_file import read_object
from mzseek.library import Library
from mzseek.library.folder import RECORD_SCHEMA
from mzseek.library.lists import Ions, Lists

if TYPE_CHECKING:
    from mzseek.annotation.bundle.prior import LearnedPrior
    from mzseek.evidence.fitted import Fitted

_SHIPPED = "bundle"  # folder inside the package
_LIBRARY = "library/"
LIBRARY_ROWS, MASSES = f"{_LIBRARY}molecules", "molecules/masses"


class Bundle:
    """A ranker with its channels, confidence, reference spectra, molecules, and a card.

    Every file is held against its checksum when the bundle is opened; what is in it is read when
    it is first asked for.

    Parameters
    ----------
    folder : Path
    manifest : dict
        As `mzseek.annotation.bundle.layout.MANIFEST` has read it.

    Attributes
    ----------
    folder : Path
    manifest : dict
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def open(cls, path: StrPath | None = None) -> "Bundle":
        """Open a bundle; the one that comes with mzseek where no path is given.

        Raises
        ------
        BundleError
            It is none, of a newer version, or a file of it is missing, cut short or changed.
        """
        folder = shipped() if path is None else Path(path)
        manifest = MANIFEST.read(folder)
        missing = {MODEL, CONFIDENCE, CARD, ARRAYS, RECORDS, MOLECULES} - set(manifest["files"])
        if missing:
            raise BundleError(f"{folder}: its manifest does not list {min(missing)}; {AGAIN}")
        MANIFEST.check_files(folder, manifest, checksums=True)
        return cls(folder, manifest)

    def verify(self) -> None:
        """Read all of it, as `open` and use would; raises `BundleError`."""
        _ = self.card, self.confidence, self.library, self.molecules
        states = [*self.fitted.learned, *([self.prior.learned] if self.prior else [])]
        for learned in states:
            _ = list(learned.arrays.values())  # each is unpacked when it is looked at

    @cached_property
    def fitted(self) -> "Fitted":
        """Channels and ranker, ready to score `mzseek.evidence.lists.Lists`."""
        from mzseek.annotation.bundle.states import open_states  # compiled code: takes time to load

        return open_states(self._object(MODEL), self._arrays, self.folder / MODEL)

    @cached_property
    def prior(self) -> "LearnedPrior | None":
        """Which molecules people measure; None where the bundle has not learned it."""
        if PRIOR not in self.manifest["files"]:
            return None
        from mzseek.annotation.bundle.prior import open_prior

        return open_prior(self._object(PRIOR), self._arrays, self.folder / PRIOR)

    @property
    def fingerprint(self) -> str:
        """The kind of fingerprint that candidates must have (`Lists.of(…, fingerprint=…)`)."""
        return str(self._object(MODEL).get("fingerprint", "morgan2"))

    @cached_property
    def confidence(self) -> Confidence:
        """How scores become probabilities, sets and doubts."""
        return Confidence.from_dict(self._object(CONFIDENCE), self.folder / CONFIDENCE)

    @cached_property
    def library(self) -> Library:
        """Reference spectra with their molecules."""
        own = self._arrays.under(_LIBRARY)
        try:
            peaks = Lists(own["pointers"], own["mz"], own["heights"])
            ions = Ions(own["precursors"], own["modes"])
            rows, molecule_of = own["molecules"], own["molecule_of"]
        except KeyError as error:
            raise BundleError(f"{self.folder}: {ARRAYS} lacks {error}; {AGAIN}") from None
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.molecules):
            raise BundleError(f"{self.folder}: the library names molecules it does not have")
        known = self.molecules.table.take(column_of(rows))
        molecules = pa.table(
            {
                "smiles": known["smiles"],
                "inchikey": known["key"],
                "formula": known["formula"],
                "mass": known["mass"],
            }
        )
        try:
            records = self._table(RECORDS, RECORD_SCHEMA)
            return Library.held(self.folder, peaks, ions, molecule_of, records, molecules)
        except LibraryError as error:
            raise BundleError(str(error)) from error

    @cached_property
    def molecules(self) -> BoxedMolecules:
        """The database in the box."""
        table = self._table(MOLECULES, None)
        masses = self._arrays.get(MASSES)
        if masses is None or len(masses) != len(table) or "mass" in table.column_names:
            raise BundleError(f"{self.folder}: {MOLECULES} is damaged; {AGAIN}")
        whole = table.append_column("mass", column_of(masses)).select(SCHEMA.names)
        try:
            return BoxedMolecules(whole.cast(SCHEMA))
        except pa.ArrowException as error:
            raise BundleError(f"{self.folder}: {MOLECULES} is damaged ({error}); {AGAIN}") from None

    @cached_property
    def names(self) -> Mapping[str, str]:
        """A name for the key (first InChIKey block) of each molecule that has one."""
        table = self.molecules.table
        pairs = zip(table["key"].to_pylist(), table["names"].to_pylist(), strict=True)
        return {key: names[0] for key, names in pairs if names}

    @cached_property
    def card(self) -> Mapping[str, Any]:
        """What it was made of, what it reaches, and what it cannot do."""
        return self._object(CARD)

    @property
    def most_peaks(self) -> int:
        """Peaks of a reference spectrum that were kept, at the most."""
        return int(self.card.get("library", {}).get("most_peaks", MOST_PEAKS))

    @property
    def licence(self) -> str:
        """Under which licences it stands, as text."""
        return (self.folder / LICENCE).read_text(encoding="utf-8")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(each["bytes"]) for each in self.manifest["files"].values())

    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """All arrays by name, in the order in which they are stored."""
        return dict(self._arrays)

    @cached_property
    def _arrays(self) -> Arrays:
        return Arrays(self.folder / ARRAYS)

    def _object(self, name: str) -> dict[str, Any]:
        return read_object(self.folder / name, BundleError, AGAIN)

    def _table(self, name: str, schema: pa.Schema | None) -> pa.Table:
        where = self.folder / name
        try:
            # Not `read_table`, which loads what reads whole folders of files.
            table = pq.ParquetFile(where).read()
            return table if schema is None else table.cast(schema)
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:100]
            raise BundleError(f"{where}: cannot be read ({reason}); {AGAIN}") from error

    def __repr__(self) -> str:
        counts = self.manifest["counts"]
        return (
            f"Bundle({str(self.folder)!r}, {counts['spectra']:,} reference spectra, "
            f"{counts['database']:,} molecules)"
        )


def shipped() -> Path:
    """Folder of the bundle that comes with mzseek.

    Raises
    ------
    BundleError
        This copy of mzseek has none.
    """
    folder = Path(str(files("mzseek"))) / _SHIPPED
    if not (folder / MANIFEST.name).is_file():
        raise BundleError(
            "this copy of mzseek comes without a model bundle; name one, or make one with "
            "`mzseek model build` or `mzseek model export`"
        )
    return folder


def library_arrays(
    peaks: Lists, ions: Ions, molecule_of: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
) -> dict[str, Any]:
    """Arrays of a library by the names under which a bundle keeps them.

    Parameters
    ----------
    peaks, ions : Lists, Ions
        Compact.
    molecule_of : int array, shape (spectra,)
    rows : int array
        Place of each of the library's molecules in the table of molecules.
    """
    return {
        f"{_LIBRARY}pointers": np.asarray(peaks.pointers, np.int64),
        f"{_LIBRARY}mz": np.asarray(peaks.values, np.float64),
        f"{_LIBRARY}heights": np.asarray(peaks.weights, np.float64),
        f"{_LIBRARY}precursors": np.asarray(ions.precursors, np.float64),
        f"{_LIBRARY}modes": np.asarray(ions.modes, np.int8),
        f"{_LIBRARY}molecule_of": np.asarray(molecule_of, np.int64),
        LIBRARY_ROWS: np.asarray(rows, np.int64),
    }
