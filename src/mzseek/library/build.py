"""Building a library, and adding to one."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rdkit import rdBase

from mzseek.chem.molecules import DescribedMolecule, describe_first
from mzseek.core.errors import LibraryError, Reason
from mzseek.core.ragged import pointers
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.arrays import save_array
from mzseek.io.manifest import SourceGuard, ensure_replaceable
from mzseek.io.skipped import SKIPPED_FILE, Report, read_skipped, write_skipped
from mzseek.library.library import (
    INTENSITIES,
    KIND,
    MANIFEST,
    MODES,
    MOLECULE_OF,
    MOLECULE_SCHEMA,
    MOLECULES,
    MZ,
    POINTERS,
    PRECURSORS,
    RECORD_COLUMNS,
    RECORD_SCHEMA,
    RECORDS,
    Library,
)
from mzseek.parallel import Progress, silent
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.records import UniqueNames
from mzseek.version import __version__

Floats = npt.NDArray[np.float64]

_EVERY = 500  # spectra between two reports of progress


def build_library(
    paths: StrPath | Sequence[StrPath], out: StrPath, *, progress: Progress = silent
) -> Library:
    """Build a library from files of annotated spectra, in any format that `read_spectra` knows.

    Peaks are cleaned as everywhere (`mzseek.spectra.clean_peaks`), molecules put in standard form;
    equal ones (first InChIKey block and mass) are one. Records that cannot be read, have no
    structure, or repeat another (same molecule, ion, energy and peaks) are skipped and listed.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders or zip archives.
    out : path
        Folder to make; a library that is there is replaced.
    progress : callable of (stage, done, total)

    Raises
    ------
    InputError, LibraryError
        A file is none of spectra or has changed while it was read, or no record is usable.
    BusyError, WriteError, DatasetError
        Another process is writing the folder, it cannot be written, or is none of mzseek's.
    """
    files, folder = _paths(paths), Path(out)
    with sole_writer(folder, "building a spectral library"):
        ensure_replaceable(folder, KIND, files)
        return _make(files, folder, None, progress)


def add_spectra(
    library: Library, paths: StrPath | Sequence[StrPath], *, progress: Progress = silent
) -> Library:
    """Add spectra to a library: a new one is made beside it and replaces it when it is complete.

    Processes that have the old one open continue to read it.

    Raises
    ------
    LibraryError, InputError, BusyError, WriteError
        As in `build_library`; or the library is damaged, or was replaced since it was opened.
    """
    files = _paths(paths)
    with sole_writer(library.folder, "adding spectra"):
        ensure_replaceable(library.folder, KIND, files)
        if MANIFEST.read(library.folder) != library.manifest:
            raise LibraryError(f"{library.folder}: was replaced since it was opened; open it again")
        library.check()  # what is copied gets a new checksum
        return _make(files, library.folder, library, progress)


def _paths(paths: StrPath | Sequence[StrPath]) -> list[Path]:
    files = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not files:
        raise LibraryError("no files of spectra, expected at least one")
    return [Path(path) for path in files]


def _make(files: list[Path], out: Path, old: Library | None, progress: Progress) -> Library:
    guard = SourceGuard(files)
    builder = _Builder(old)
    before = len(builder.records)
    for spectrum, molecule, path in described_spectra(files, builder.skip):
        builder.add(spectrum, molecule, path)
        if len(builder.records) % _EVERY == 0:
            progress("spectra", len(builder.records))
    progress("spectra", len(builder.records))
    if len(builder.records) == before:
        where, why = next(iter(builder.skipped), ("", ""))
        first = f" (first: {where}: {why})" if where else ""
        raise LibraryError(f"no usable reference spectrum in the files{first}")
    skipped = read_skipped(old.folder / SKIPPED_FILE) if old else []
    with atomic_directory(out) as folder:
        builder.write(folder)
        write_skipped(folder / SKIPPED_FILE, [*skipped, *builder.skipped])
        guard.ensure_unchanged()
        sources = [{"name": path.name, "sha256": guard.hashes[path]} for path in files]
        MANIFEST.write(
            folder,
            {
                "sources": [*(old.manifest["sources"] if old else []), *sources],
                "versions": {"mzseek": __version__, "rdkit": rdBase.rdkitVersion},
                "counts": builder.counts(),
            },
        )
        Library.open(folder)  # checks that it is complete
    return Library.open(out)


def described_spectra(
    paths: Iterable[Path], report: Report, keep_stereo: bool = False
) -> Iterator[tuple[Spectrum, DescribedMolecule, Path]]:
    """Read spectra with their molecules in standard form; report those without a usable structure.

    A structure is taken from the fields for SMILES and for InChI, whichever of the two stands in
    which; an InChI may lack its prefix.
    """
    described: dict[tuple[str, str], DescribedMolecule | Reason] = {}
    for path in paths:
        for spectrum in read_spectra(path, report):
            fields = (spectrum.metadata.get("smiles", ""), spectrum.metadata.get("inchi", ""))
            if fields not in described:
                described[fields] = describe_first(fields, keep_stereo)
            molecule = described[fields]
            if isinstance(molecule, Reason):
                report(f"{path}: {spectrum.identifier}", molecule)
            else:
                yield spectrum, molecule, path


class _Builder:
    """Collects the reference spectra of a library, those of an old one first."""

    def __init__(self, old: Library | None) -> None:
        self.skipped: list[tuple[str, str]] = []
        self.old_skipped = old.manifest["counts"]["rejects"] if old else 0
        self.records: list[dict[str, str]] = old.records.to_pylist() if old else []
        self.molecules: list[dict[str, Any]] = old.molecules.to_pylist() if old else []
        self._molecule_of: list[int] = old.molecule_of.tolist() if old else []
        self._precursors: list[float] = old.ions.precursors.tolist() if old else []
        self._modes: list[int] = old.ions.modes.tolist() if old else []
        self._mz: list[Floats] = []
        self._intensities: list[Floats] = []
        if old:
            self._mz = np.split(old.peaks.values, old.peaks.pointers[1:-1])
            self._intensities = np.split(old.peaks.weights, old.peaks.pointers[1:-1])
        self._index = {_identity(molecule): row for row, molecule in enumerate(self.molecules)}
        self._names = UniqueNames()
        self._seen: dict[tuple[object, ...], str] = {}
        columns = (self._molecule_of, self._modes, self.records, self._mz, self._intensities)
        for values in zip(*columns, strict=True):
            self._seen[_key(*values)] = self._names.take(values[2]["identifier"])

    def skip(self, where: str, reason: str) -> None:
        """Note a record that is skipped."""
        self.skipped.append((where, reason))

    def add(self, spectrum: Spectrum, molecule: DescribedMolecule, path: Path) -> None:
        """Add a spectrum, or skip it."""
        metadata = spectrum.metadata
        row = {
            "smiles": molecule.smiles, "inchikey": molecule.inchikey14, "formula": molecule.formula,
            "mass": molecule.mass,
        }  # fmt: skip
        index = self._index.setdefault(_identity(row), len(self.molecules))
        if index == len(self.molecules):
            self.molecules.append(row)
        values = {
            **metadata, "adduct": spectrum.adduct or "", "source": path.name,
            "license": metadata.get("license") or metadata.get("licence", ""),
        }  # fmt: skip
        record = {name: values.get(name, "") for name in RECORD_COLUMNS}
        mode = spectrum.polarity
        key = _key(index, mode, record, spectrum.mz, spectrum.intensities)
        if key in self._seen:
            reason = Reason(f"is a duplicate (of {self._seen[key]})", "duplicate")
            self.skip(f"{path}: {spectrum.identifier}", reason)
            return
        name = spectrum.identifier
        name = self._names.take(f"{path.stem} {name}" if name in self._names else name)
        self._seen[key] = record["identifier"] = name
        self.records.append(record)
        self._molecule_of.append(index)
        self._precursors.append(spectrum.precursor_mz)
        self._modes.append(mode)
        self._mz.append(spectrum.mz)
        self._intensities.append(spectrum.intensities)

    def write(self, folder: Path) -> None:
        """Write all arrays and tables."""
        arrays = {
            POINTERS: pointers([len(mz) for mz in self._mz]),
            MZ: np.concatenate(self._mz),
            INTENSITIES: np.concatenate(self._intensities),
            PRECURSORS: np.array(self._precursors, np.float64),
            MODES: np.array(self._modes, np.int8),
            MOLECULE_OF: np.array(self._molecule_of, np.int32),
        }
        for name, array in arrays.items():
            save_array(folder / name, array)
        pq.write_table(pa.Table.from_pylist(self.records, RECORD_SCHEMA), folder / RECORDS)
        pq.write_table(pa.Table.from_pylist(self.molecules, MOLECULE_SCHEMA), folder / MOLECULES)

    def counts(self) -> dict[str, int]:
        """Return the counts for the manifest."""
        return {
            "spectra": len(self.records),
            "molecules": len(self.molecules),
            "peaks": sum(map(len, self._mz)),
            "rejects": len(self.skipped) + self.old_skipped,
        }


def _key(
    molecule: int, mode: int, record: dict[str, str], mz: Floats, intensities: Floats
) -> tuple[object, ...]:
    """Return a key that is equal for records of one measurement, entered twice or rescaled."""
    relative = np.round(intensities / intensities.max(), 4)
    energy = record["collision_energy"]
    return molecule, mode, record["adduct"], energy, mz.tobytes(), relative.tobytes()


def _identity(molecule: dict[str, Any]) -> tuple[str, float]:
    return DescribedMolecule(**molecule).identity
