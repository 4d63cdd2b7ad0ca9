"""Open a prepared folder: memory-mapped sparse arrays and slices of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting import check_version
from mzseek.core.errors import CacheError
from mzseek.core.ragged import gather, gather_indices, pointers
from mzseek.core.registry import FOLDS, check_name
from mzseek.core.text import Table, Tabular
from mzseek.datasets.layout import (
    AGAIN,
    LIST_PARTS,
    MANIFEST,
    MAX_BITS,
    Array,
    ArrayForm,
    TextColumn,
    array_forms,
    base_count,
    in_segment,
    is_for_training,
    list_array,
    path_of,
    segments_of,
)
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, check_range, load_array
from mzseek.spectra.records import INSTRUMENTS


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
        """Return the candidates of a measured molecule (none if it has no list)."""
        # Molecules of segments are candidates, and never measured.
        row = int(self.list_of[molecule]) if molecule < len(self.list_of) else -1
        start, end = self.indptr[row : row + 2] if row >= 0 else (0, 0)
        return self.molecules[start:end]

    def select(self, molecules: npt.NDArray[np.integer]) -> "CandidateLists":
        """Copy the lists of measured molecules, each named once, into memory, in this order."""
        rows = np.asarray(self.list_of)[molecules]
        has_list = rows >= 0
        rows = rows[has_list]
        _, (members, identity) = gather(self.indptr, (self.molecules, self.identity), rows)
        list_of = np.full(len(self.list_of), -1, np.int32)
        list_of[molecules[has_list]] = np.arange(len(rows))
        indptr = pointers(self.sizes[rows])
        return CandidateLists(indptr, np.asarray(members), np.asarray(identity), list_of)


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
        """Return counts of its content."""
        counts = self.manifest["counts"]
        rows = {"spectra": counts["spectra"]}
        rows |= {f"{fold} spectra": n for fold, n in counts["spectra_by_fold"].items()}
        rows["molecules with spectra"] = counts["measured_molecules"]
        rows["molecules with all candidates"] = counts["molecules"]
        rows |= {f"{name} lists": x["lists"] for name, x in self.manifest["candidates"].items()}
        title = f"{self.folder.name}: prepared with {self.manifest['options']['fingerprint']}"
        return Table({"what": list(rows), "number": list(rows.values())}, title)

    def check_arrays(self) -> None:
        """Check that every array has the form that the manifest states."""
        for name in self._forms:
            self._array(name)
        _ = self.identifiers, self.smiles, self.formulas

    @cached_property
    def _forms(self) -> dict[str, ArrayForm]:
        return array_forms(self.manifest)

    def _array(self, name: str) -> npt.NDArray[Any]:
        if name not in self._arrays:
            path, form = path_of(self.folder, name), self._forms[name]
            array = load_array(path, form.dtype, [form.length], CacheError, AGAIN)
            if form.points_into is not None:
                check_pointers(array, form.points_into, path, CacheError, AGAIN)
            if form.within is not None:
                check_range(array, *form.within, path, CacheError, AGAIN)
            self._arrays[name] = array
        return self._arrays[name]

    def _in_tables(self, name: str) -> list[npt.NDArray[Any]]:
        """Return an array of the base table of molecules and of each segment."""
        return [self._array(in_segment(n, name)) for n in range(len(self._first_molecule))]

    def _texts(self, *names: str) -> TextColumn:
        parts = [(self._array(f"{n}.ends"), self._array(f"{n}.data")) for n in names]
        return TextColumn(
            *((*part, self.folder / name) for name, part in zip(names, parts, strict=True))
        )

    def _molecule_texts(self, name: str) -> TextColumn:
        return self._texts(*(in_segment(n, name) for n in range(len(self._first_molecule))))

    def _molecule_values(self, name: str) -> npt.NDArray[Any]:
        parts = self._in_tables(name)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

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
        """Return the cleaned m/z and intensities of a spectrum."""
        start, end = self._array(Array.PEAK_POINTERS)[spectrum : spectrum + 2]
        return self._array(Array.PEAK_MZ)[start:end], self._array(Array.PEAK_INTENSITIES)[start:end]

    @cached_property
    def identifiers(self) -> TextColumn:
        """Each spectrum's identifier."""
        return self._texts(Array.IDENTIFIER)

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
        """Return a spectrum's adduct."""
        code = int(self._array(Array.ADDUCT)[spectrum])
        return str(self.manifest["adducts"][code]) if code >= 0 else None

    def instrument(self, spectrum: int) -> str | None:
        """Kind of a spectrum's instrument, one of `INSTRUMENTS`; None for others."""
        code = int(self._array(Array.INSTRUMENT)[spectrum])
        return INSTRUMENTS[code] if code >= 0 else None

    def in_fold(self, fold: str) -> npt.NDArray[np.int64]:
        """Return the spectra of a fold."""
        check_name(FOLDS, fold, "fold", CacheError)
        return np.flatnonzero(self.fold == FOLDS.index(fold))

    @cached_property
    def _first_molecule(self) -> npt.NDArray[np.int64]:
        """Number of the first molecule of the base table, and of each segment's."""
        added = [int(segment["molecules"]) for segment in segments_of(self.manifest)]
        return pointers([self.base_molecules, *added])[:-1]

    @cached_property
    def smiles(self) -> Sequence[str]:
        """Each molecule's canonical SMILES."""
        return self._molecule_texts(Array.SMILES)

    @cached_property
    def formulas(self) -> Sequence[str]:
        """Each molecule's formula."""
        return self._molecule_texts(Array.FORMULA)

    @cached_property
    def inchikey14(self) -> npt.NDArray[np.bytes_]:
        """Each molecule's first InChIKey block."""
        return self._molecule_values(Array.INCHIKEY14)

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Each molecule's exact mass."""
        return self._molecule_values(Array.MASS)

    @cached_property
    def fingerprint_sizes(self) -> npt.NDArray[np.int32]:
        """Bits that are set in each molecule's fingerprint."""
        tables = self._in_tables(Array.FINGERPRINT_POINTERS)
        return np.concatenate([np.diff(indptr).astype(np.int32) for indptr in tables])

    def base_fingerprints(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        """Return row pointers and bits of the molecules that the folder was made with.

        All measured molecules are among them; segments add candidates alone.
        """
        names = Array.FINGERPRINT_POINTERS, Array.FINGERPRINT_BITS
        indptr, bits = (np.asarray(self._array(name)) for name in names)
        return indptr, bits

    def fingerprint_rows(self, molecules: npt.NDArray[np.integer]) -> csr_array:
        """Return the 0/1 rows of molecules, gathered from their tables."""
        selected = np.asarray(molecules)
        tables = self._in_tables(Array.FINGERPRINT_POINTERS)
        set_bits = self._in_tables(Array.FINGERPRINT_BITS)
        if len(tables) == 1:
            indptr, entries = gather_indices(tables[0], selected)
            bits = set_bits[0][entries].astype(np.int32)
        else:
            indptr = pointers(self.fingerprint_sizes[selected])
            bits = np.empty(int(indptr[-1]), np.int32)
            table_of = np.searchsorted(self._first_molecule, selected, side="right") - 1
            for table in np.unique(table_of).tolist():
                rows = np.flatnonzero(table_of == table)
                local = selected[rows] - self._first_molecule[table]
                _, entries = gather_indices(tables[table], local)
                bits[gather_indices(indptr, rows)[1]] = set_bits[table][entries]
        shape = (len(selected), int(self.manifest["fingerprint_bits"]))
        return csr_array((np.ones(len(bits), np.int32), bits, indptr), shape=shape)

    @property
    def settings(self) -> list[str]:
        """Names of the candidate lists."""
        return list(self.manifest["candidates"])

    @property
    def measured_settings(self) -> list[str]:
        """Names of the candidate lists that models are measured on: all but negatives.

        Those that came with the data, and matched ones.
        """
        lists = self.manifest["candidates"]
        return [setting for setting in lists if not is_for_training(lists[setting])]

    def measured_on(self, setting: str) -> str:
        """Return the lists that a model trained on these is measured on.

        Lists that came with the data and matched ones are measured on themselves, whatever their
        name; negatives on the lists of equal mass or formula, by which they were mined.
        """
        lists = self.manifest["candidates"].get(setting, {})
        return str(lists["negatives"]["by"]) if is_for_training(lists) else setting

    def drawn_by(self, setting: str) -> dict[str, Any]:
        """Return how lists were mined, or matched; empty for those that came with the data."""
        lists = self.manifest["candidates"].get(setting, {})
        return dict(lists.get("negatives") or lists.get("matched") or {})

    @property
    def base_molecules(self) -> int:
        """Molecules of the data set and its lists; others may have been added after them."""
        return base_count(self.manifest, "molecules")

    def candidates(self, setting: str) -> CandidateLists:
        """Return the candidate lists of a retrieval setting."""
        if setting not in self.manifest["candidates"]:
            settings = ", ".join(self.settings) or "none"
            raise CacheError(f"{self.folder}: has no candidates {setting!r}, it has: {settings}")
        arrays = (self._array(list_array(self.manifest, setting, part)) for part in LIST_PARTS)
        return CandidateLists(*arrays)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a prepared folder and check its version and fields.

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
    if not 0 < manifest["fingerprint_bits"] <= MAX_BITS:
        raise CacheError(
            f"{path}: fingerprint_bits is {manifest['fingerprint_bits']}, expected 1 to "
            f"{MAX_BITS:,}; {AGAIN}"
        )
    used = [entry["segment"] for entry in manifest["candidates"].values() if "segment" in entry]
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
