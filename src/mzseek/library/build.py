"""Building a library, and adding to one."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rdkit import rdBase

from mzseek.chem.molecules import DescribedMolecule, describe_first
from mzseek.core.errors import LibraryError
from mzseek.core.ragged import pointers
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.arrays import save_array
from mzseek.io.manifest import SourceGuard, ensure_replaceable
from mzseek.io.text_tables import text_cell
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
    REJECTS,
    Library,
)
from mzseek.library.similarity import polarity_of
from mzseek.parallel import Progress, silent
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.records import UniqueNames
from mzseek.version import __version__

Floats = npt.NDArray[np.float64]

_HEAD = "where\treason\n"
_EVERY = 500  # spectra between two reports of progress


def build_library(
    paths: StrPath | Sequence[StrPath], out: StrPath, *, progress: Progress = silent
) -> Library:
    """Build a library from files of annotated spectra, in any format that `read_spectra` knows.

    Peaks are cleaned as everywhere (`mzseek.spectra.clean_peaks`), molecules put in standard form;
    equal ones (first InChIKey block and mass) are one. Records that cannot be read, have no
    structure, or repeat another (same molecule, ion, energy and peaks) are set aside and listed.

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
    """Add spectra to a library: a new one is made beside it, and takes its place when it is whole.

    Whoever has the old one open goes on reading it.

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
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not given:
        raise LibraryError("no files of spectra, expected at least one")
    return [Path(path) for path in given]


def _make(files: list[Path], out: Path, old: Library | None, progress: Progress) -> Library:
    steady = SourceGuard(files)
    gathered = _Gathered(old)
    before = len(gathered.records)
    for path in files:
        for spectrum in read_spectra(path, gathered.reject):
            gathered.take(spectrum, path)
            if len(gathered.records) % _EVERY == 0:
                progress("spectra", len(gathered.records))
    progress("spectra", len(gathered.records))
    if len(gathered.records) == before:
        where, why = next(iter(gathered.rejects), ("", ""))
        first = f" (first: {where}: {why})" if where else ""
        raise LibraryError(f"no usable reference spectrum in the files{first}")
    listed = old.rejects_text() if old else _HEAD
    with atomic_directory(out) as folder:
        gathered.write(folder)
        listed += "".join(f"{text_cell(at)}\t{text_cell(why)}\n" for at, why in gathered.rejects)
        (folder / REJECTS).write_text(listed, encoding="utf-8")
        steady.ensure_unchanged()
        sources = [{"name": path.name, "sha256": steady.hashes[path]} for path in files]
        MANIFEST.write(
            folder,
            {
                "sources": [*(old.manifest["sources"] if old else []), *sources],
                "versions": {"mzseek": __version__, "rdkit": rdBase.rdkitVersion},
                "counts": gathered.counts(old),
            },
        )
        Library.open(folder)  # it is whole before it gets its name
    return Library.open(out)


class _Gathered:
    """Reference spectra on their way into a library, those of an old one first."""

    def __init__(self, old: Library | None) -> None:
        self.rejects: list[tuple[str, str]] = []
        self.records: list[dict[str, str]] = old.records.to_pylist() if old else []
        self.molecules: list[dict[str, Any]] = old.molecules.to_pylist() if old else []
        self._molecule_of: list[int] = old.molecule_of.tolist() if old else []
        self._precursors: list[float] = old.ions.precursors.tolist() if old else []
        self._modes: list[int] = old.ions.modes.tolist() if old else []
        self._mz = _apart(old.peaks.values, old) if old else []
        self._heights = _apart(old.peaks.weights, old) if old else []
        self._described: dict[tuple[str, str], DescribedMolecule | str] = {}
        self._places = {_identity(molecule): place for place, molecule in enumerate(self.molecules)}
        self._names = UniqueNames()
        self._seen: dict[tuple[object, ...], str] = {}
        for place, record in enumerate(self.records):
            self._seen[self._key(place)] = self._names.take(record["identifier"])

    def reject(self, where: str, reason: str) -> None:
        """Take note of a record that is set aside."""
        self.rejects.append((where, reason))

    def take(self, spectrum: Spectrum, path: Path) -> None:
        """Add a spectrum, or set it aside."""
        given = spectrum.metadata
        fields = (given.get("smiles", ""), given.get("inchi", ""))
        if fields not in self._described:
            self._described[fields] = describe_first(fields)
        molecule = self._described[fields]
        where = f"{path}: {spectrum.identifier}"
        if isinstance(molecule, str):
            self.reject(where, molecule)
            return
        self._append(spectrum, molecule, path)
        earlier = self._seen.get(self._key(-1))
        if earlier is not None:
            for column in self._columns():
                column.pop()
            self.reject(where, f"is a duplicate (of {earlier})")
            return
        name = spectrum.identifier
        name = self._names.take(f"{path.stem} {name}" if name in self._names else name)
        self.records[-1]["identifier"] = name
        self._seen[self._key(-1)] = name

    def _append(self, spectrum: Spectrum, molecule: DescribedMolecule, path: Path) -> None:
        known = {
            "smiles": molecule.smiles, "inchikey": molecule.inchikey14, "formula": molecule.formula,
            "mass": molecule.mass,
        }  # fmt: skip
        place = self._places.setdefault(_identity(known), len(self.molecules))
        if place == len(self.molecules):
            self.molecules.append(known)
        given = {
            **spectrum.metadata, "adduct": spectrum.adduct or "", "source": path.name,
            "license": spectrum.metadata.get("license") or spectrum.metadata.get("licence", ""),
        }  # fmt: skip
        self.records.append({name: given.get(name, "") for name in RECORD_COLUMNS})
        self._molecule_of.append(place)
        self._precursors.append(spectrum.precursor_mz)
        self._modes.append(polarity_of(spectrum))
        self._mz.append(spectrum.mz)
        self._heights.append(spectrum.intensities)

    def _columns(self) -> tuple[list[Any], ...]:
        return (
            self.records, self._molecule_of, self._precursors, self._modes, self._mz, self._heights,
        )  # fmt: skip

    def _key(self, place: int) -> tuple[object, ...]:
        """Equal for records of one measurement, entered twice or rescaled."""
        heights = self._heights[place]
        return (
            self._molecule_of[place], self._modes[place], self.records[place]["adduct"],
            self.records[place]["collision_energy"], self._mz[place].tobytes(),
            np.round(heights / heights.max(), 4).tobytes(),
        )  # fmt: skip

    def write(self, folder: Path) -> None:
        """Write all arrays and tables."""
        lengths = np.array([len(each) for each in self._mz], np.int64)
        arrays = {
            POINTERS: pointers(lengths),
            MZ: np.concatenate(self._mz),
            INTENSITIES: np.concatenate(self._heights),
            PRECURSORS: np.array(self._precursors, np.float64),
            MODES: np.array(self._modes, np.int8),
            MOLECULE_OF: np.array(self._molecule_of, np.int32),
        }
        for name, array in arrays.items():
            save_array(folder / name, array)
        pq.write_table(pa.Table.from_pylist(self.records, RECORD_SCHEMA), folder / RECORDS)
        pq.write_table(pa.Table.from_pylist(self.molecules, MOLECULE_SCHEMA), folder / MOLECULES)

    def counts(self, old: Library | None) -> dict[str, int]:
        """What the manifest says of it."""
        return {
            "spectra": len(self.records),
            "molecules": len(self.molecules),
            "peaks": sum(map(len, self._mz)),
            "rejects": len(self.rejects) + (old.manifest["counts"]["rejects"] if old else 0),
        }


def _apart(values: Floats, old: Library) -> list[Floats]:
    """The values of each spectrum of a library."""
    return list(np.split(values, old.peaks.pointers[1:-1]))


def _identity(molecule: dict[str, Any]) -> tuple[str, float]:
    return DescribedMolecule(**molecule).identity
