"""Open a prepared folder: memory-mapped sparse arrays and slices of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting import check_version
from mzseek.core.errors import CacheError
from mzseek.core.ragged import gather_indices, pointers
from mzseek.core.registry import FOLDS, check_name
from mzseek.core.tables import Table, Tabular
from mzseek.datasets.layout import (
    AGAIN,
    LIST_PARTS,
    MANIFEST,
    Array,
    JoinedColumns,
    TextColumn,
    base_count,
    drawn_by,
    form_of,
    in_segment,
    is_for_training,
    list_array,
    names_of,
    path_of,
    segments_of,
)
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, check_range, load_array

Ints = npt.NDArray[np.int64]


class Molecules:
    """Several tables of molecules, numbered through.

    Parameters
    ----------
    array : callable of str
        Opens an array by its name.
    column : callable of str
        Opens a column of texts by its name.
    segments : int
        Segments there are beside the folder's own table.
    bits : int
        Length of a fingerprint.
    """

    def __init__(
        self,
        array: Callable[[str], npt.NDArray[Any]],
        column: Callable[[str], TextColumn],
        segments: int,
        bits: int,
    ) -> None:
        self._array, self._column, self._bits = array, column, bits
        self._tables = range(segments + 1)

    def __len__(self) -> int:
        return int(self._begins[-1])

    @cached_property
    def smiles(self) -> Sequence[str]:
        """Each molecule's canonical SMILES."""
        return self._texts(Array.SMILES)

    @cached_property
    def formulas(self) -> Sequence[str]:
        """Each molecule's formula."""
        return self._texts(Array.FORMULA)

    @cached_property
    def inchikey14(self) -> npt.NDArray[np.bytes_]:
        """Each molecule's first InChIKey block."""
        return self._joined(Array.BLOCK)

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Each molecule's exact mass."""
        return self._joined(Array.MASS)

    @cached_property
    def fingerprint_sizes(self) -> npt.NDArray[np.int32]:
        """Bits that are set in each molecule's fingerprint."""
        parts = [np.diff(self._pointers(table)).astype(np.int32) for table in self._tables]
        return np.concatenate(parts)

    def base_fingerprints(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        """Row pointers and bits of the folder's own molecules, all measured ones among them."""
        return np.asarray(self._pointers(0)), np.asarray(self._set_bits(0))

    def fingerprint_rows(self, molecules: npt.NDArray[np.integer]) -> csr_array:
        """0/1 rows of the molecules asked for, gathered from their tables."""
        asked = np.asarray(molecules)
        if len(self._tables) == 1:
            indptr, where = gather_indices(self._pointers(0), asked)
            bits = self._set_bits(0)[where].astype(np.int32)
        else:
            indptr, bits = self._gathered(asked)
        shape = (len(asked), self._bits)
        return csr_array((np.ones(len(bits), np.int32), bits, indptr), shape=shape)

    def _gathered(self, asked: npt.NDArray[np.integer]) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Row pointers and bits of molecules of several tables, in the order asked for."""
        indptr = pointers(self.fingerprint_sizes[asked])
        bits = np.empty(int(indptr[-1]), np.int32)
        table_of = np.searchsorted(self._begins, asked, side="right") - 1
        for table in np.unique(table_of).tolist():
            here = np.flatnonzero(table_of == table)
            _, where = gather_indices(self._pointers(table), asked[here] - self._begins[table])
            bits[gather_indices(indptr, here)[1]] = self._set_bits(table)[where]
        return indptr, bits

    @cached_property
    def _begins(self) -> Ints:
        return pointers([len(self._pointers(table)) - 1 for table in self._tables])

    def _pointers(self, table: int) -> npt.NDArray[np.int64]:
        return self._array(in_segment(table, Array.FINGERPRINT_POINTERS))

    def _set_bits(self, table: int) -> npt.NDArray[np.uint16]:
        return self._array(in_segment(table, Array.FINGERPRINT_BITS))

    def _joined(self, name: str) -> npt.NDArray[Any]:
        parts = [self._array(in_segment(table, name)) for table in self._tables]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _texts(self, name: str) -> Sequence[str]:
        parts = [self._column(in_segment(table, name)) for table in self._tables]
        return parts[0] if len(parts) == 1 else JoinedColumns(parts)


@dataclass(frozen=True)
class CandidateLists:
    """Candidate lists of one retrieval setting, as indices into the molecule table.

    Attributes
    ----------
    indptr : int64 array, shape (lists + 1,)
        List i is ``molecules[indptr[i]:indptr[i + 1]]``.
    molecules : int32 array
    identity : uint8 array, parallel to ``molecules``
        `SAME_FINGERPRINT` and `SAME_INCHIKEY` where the candidate is the truth in that sense.
        Each list has at least one candidate that is the truth in one of the two.
    list_of : int32 array, shape (molecules that the folder was made with,)
        The list of a measured molecule, or -1.
    """

    indptr: npt.NDArray[np.int64]
    molecules: npt.NDArray[np.int32]
    identity: npt.NDArray[np.uint8]
    list_of: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Candidates in each list."""
        return np.diff(self.indptr)

    def of_molecule(self, molecule: int) -> npt.NDArray[np.int32]:
        """Candidates of a measured molecule (none if it has no list)."""
        # Molecules of segments are candidates, and never measured.
        place = int(self.list_of[molecule]) if molecule < len(self.list_of) else -1
        if place < 0:
            return self.molecules[:0]
        return self.molecules[self.indptr[place] : self.indptr[place + 1]]


class Prepared(Tabular):
    """A prepared folder, memory-mapped."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    @classmethod
    def open(cls, folder: StrPath, *, verify: bool = False) -> "Prepared":
        """Open a folder that `prepare` has written.

        Parameters
        ----------
        folder : Path
        verify : bool
            Read every file and compare its checksum, not only its size.

        Raises
        ------
        CacheError
            It is none, of another version, its fingerprints are, or a file of it is missing or
            changed.
        """
        folder = Path(folder)
        prepared = cls(folder, read_manifest(folder))
        kind = str(prepared.manifest["options"]["fingerprint"])
        check_version(kind, prepared.manifest, folder, CacheError, AGAIN)
        MANIFEST.check_files(folder, prepared.manifest, checksums=verify)
        return prepared

    def verify(self) -> None:
        """Read every file and compare its checksum, once a process.

        Raises
        ------
        CacheError
            One has changed since it was written.
        """
        MANIFEST.check_files(self.folder, self.manifest, checksums=True)

    def to_table(self) -> Table:
        """What it holds, in numbers."""
        counts = self.manifest["counts"]
        rows = {"spectra": counts["spectra"]}
        rows |= {f"{fold} spectra": n for fold, n in counts["spectra_by_fold"].items()}
        rows["molecules with spectra"] = counts["measured_molecules"]
        rows["molecules with all candidates"] = counts["molecules"]
        rows |= {f"{name} lists": x["lists"] for name, x in self.manifest["candidates"].items()}
        title = f"{self.folder.name}: prepared with {self.manifest['options']['fingerprint']}"
        return Table({"what": list(rows), "number": list(rows.values())}, title)

    def check_arrays(self) -> None:
        """Make sure that every array is there, and has the form that the manifest says."""
        for name in names_of(self.manifest):
            self._array(name)
        for column in (self.identifiers, self.smiles, self.formulas):
            len(column)
        len(self._molecules)

    def _array(self, name: str) -> npt.NDArray[Any]:
        if name not in self._arrays:
            path, form = path_of(self.folder, name), form_of(name)
            array = load_array(path, form.dtype, [form.length(self.manifest)], CacheError, AGAIN)
            if form.points_into:
                check_pointers(array, form.points_into(self.manifest), path, CacheError, AGAIN)
            if form.within:
                check_range(array, *form.within(self.manifest), path, CacheError, AGAIN)
            self._arrays[name] = array
        return self._arrays[name]

    def _strings(self, name: str) -> TextColumn:
        ends, data = self._array(f"{name}.ends"), self._array(f"{name}.data")
        return TextColumn(ends, data, self.folder / name)

    def __len__(self) -> int:
        return len(self.molecule)

    def __repr__(self) -> str:
        counts = self.manifest["counts"]
        lists = ", ".join(self.settings) or "no"
        return (
            f"Prepared({str(self.folder)!r}, {counts['spectra']:,} spectra, "
            f"{counts['molecules']:,} molecules, {lists} candidates)"
        )

    @cached_property
    def bins(self) -> csr_array:
        """Binned spectra, float32, shape (spectra, bins)."""
        parts = (Array.BIN_VALUES, Array.BIN_COLUMNS, Array.BIN_POINTERS)
        shape = tuple(self.manifest["counts"]["bins_shape"])
        return csr_array(tuple(self._array(part) for part in parts), shape=shape)

    def peaks(self, spectrum: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        """m/z and intensities of one spectrum, as cleaned."""
        start, end = self._array(Array.PEAK_POINTERS)[spectrum : spectrum + 2]
        return self._array(Array.PEAK_MZ)[start:end], self._array(Array.PEAK_INTENSITIES)[start:end]

    @cached_property
    def identifiers(self) -> TextColumn:
        """Each spectrum's identifier."""
        return self._strings(Array.IDENTIFIER)

    @cached_property
    def molecule(self) -> npt.NDArray[np.int32]:
        """Each spectrum's molecule."""
        return self._array(Array.MOLECULE)

    @cached_property
    def fold(self) -> npt.NDArray[np.int8]:
        """Each spectrum's fold, an index into `FOLDS`; -1 where the table has none."""
        return self._array(Array.FOLD)

    @cached_property
    def precursor_mz(self) -> npt.NDArray[np.float64]:
        """Each spectrum's precursor m/z."""
        return self._array(Array.PRECURSOR_MZ)

    @cached_property
    def collision_energy(self) -> npt.NDArray[np.float32]:
        """Each spectrum's collision energy; NaN where it is not a number."""
        return self._array(Array.COLLISION_ENERGY)

    def adduct(self, spectrum: int) -> str | None:
        """A spectrum's adduct."""
        code = int(self._array(Array.ADDUCT)[spectrum])
        return str(self.manifest["adducts"][code]) if code >= 0 else None

    def in_fold(self, fold: str) -> npt.NDArray[np.int64]:
        """Spectra of a fold."""
        check_name(FOLDS, fold, "fold", CacheError)
        return np.flatnonzero(self.fold == FOLDS.index(fold))

    @cached_property
    def _molecules(self) -> Molecules:
        added, bits = len(segments_of(self.manifest)), int(self.manifest["fingerprint_bits"])
        return Molecules(self._array, self._strings, added, bits)

    @property
    def smiles(self) -> Sequence[str]:
        """Each molecule's canonical SMILES."""
        return self._molecules.smiles

    @property
    def formulas(self) -> Sequence[str]:
        """Each molecule's formula."""
        return self._molecules.formulas

    @property
    def inchikey14(self) -> npt.NDArray[np.bytes_]:
        """Each molecule's first InChIKey block."""
        return self._molecules.inchikey14

    @property
    def masses(self) -> npt.NDArray[np.float64]:
        """Each molecule's exact mass."""
        return self._molecules.masses

    @property
    def fingerprint_sizes(self) -> npt.NDArray[np.int32]:
        """Bits that are set in each molecule's fingerprint."""
        return self._molecules.fingerprint_sizes

    def base_fingerprints(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        """Row pointers and bits of the molecules that the folder was made with.

        All measured molecules are among them; segments add candidates alone.
        """
        return self._molecules.base_fingerprints()

    def fingerprint_rows(self, molecules: npt.NDArray[np.integer]) -> csr_array:
        """0/1 rows of the molecules asked for, gathered from the table."""
        return self._molecules.fingerprint_rows(molecules)

    @property
    def settings(self) -> list[str]:
        """Names of the candidate lists there are."""
        return list(self.manifest["candidates"])

    @property
    def measured_settings(self) -> list[str]:
        """Names of the candidate lists that models are measured on: all but negatives.

        Those that came with the data, and matched ones.
        """
        facts = self.manifest["candidates"]
        return [setting for setting in facts if not is_for_training(facts[setting])]

    def measured_on(self, setting: str) -> str:
        """The lists that a model trained on these is measured on.

        Lists that came with the data and matched ones are measured on themselves, whatever their
        name; negatives on the lists of equal mass or formula, by which they were mined.
        """
        facts = self.manifest["candidates"].get(setting, {})
        return str(facts["negatives"]["by"]) if is_for_training(facts) else setting

    def drawn_by(self, setting: str) -> dict[str, Any]:
        """How lists were mined, or matched; empty for those that came with the data."""
        return drawn_by(self.manifest["candidates"].get(setting, {}))

    @property
    def base_molecules(self) -> int:
        """Molecules of the data set and its lists; others may have been added after them."""
        return base_count(self.manifest, "molecules")

    def candidates(self, setting: str) -> CandidateLists:
        """Candidate lists of a retrieval setting."""
        if setting not in self.manifest["candidates"]:
            settings = ", ".join(self.settings) or "none"
            raise CacheError(f"{self.folder}: has no candidates {setting!r}, it has: {settings}")
        arrays = (self._array(list_array(self.manifest, setting, part)) for part in LIST_PARTS)
        return CandidateLists(*arrays)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Manifest of a prepared folder, checked for its version and its fields.

    Raises
    ------
    CacheError
        There is none, it is damaged, of another kind or version, or lacks a field.
    """
    manifest, path = MANIFEST.read(folder), folder / MANIFEST.name
    counts = manifest["counts"]
    if len(counts["bins_shape"]) != 2 or counts["bins_shape"][0] != counts["spectra"]:
        raise CacheError(
            f"{path}: counts.bins_shape is {str(counts['bins_shape'])[:40]}, expected "
            f"[{counts['spectra']}, bins]; {AGAIN}"
        )
    used = [facts["segment"] for facts in manifest["candidates"].values() if "segment" in facts]
    added = range(1, len(segments_of(manifest)) + 1)
    if not set(used) <= set(added) or len(set(used)) < len(used):
        raise CacheError(
            f"{path}: candidates are in segments {str(used)[:60]}, expected each at most once of "
            f"{len(added)}; {AGAIN}"
        )
    for what in ("molecules", "fingerprint_bits_set"):
        if base_count(manifest, what) < 0:
            raise CacheError(f"{path}: segments have more {what} than the folder; {AGAIN}")
    return manifest
