"""Files and arrays of a prepared folder: names, forms and versions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.core.errors import CacheError
from mzseek.core.ragged import pointers
from mzseek.core.registry import FOLDS
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, save_array
from mzseek.io.manifest import Manifest
from mzseek.spectra.records import INSTRUMENTS

_DECODED_AT_ONCE = 4_096


class TextColumn(Sequence[str]):
    """Read-only strings on disk, decoded when they are read.

    Parameters
    ----------
    parts : (ends, data, where)
        Where each string ends (int64), all their bytes (uint8), and what messages call them; the
        strings of several parts are numbered through.

    Examples
    --------
    >>> ends, data = np.array([3, 3, 9]), np.frombuffer("CCOc1ccc1".encode(), np.uint8)
    >>> column = TextColumn((ends, data, "smiles"), (ends[:1], data[:3], "more"))
    >>> len(column), column[2], column[-1], column[:2]
    (4, 'c1ccc1', 'CCO', ['CCO', ''])
    """

    def __init__(self, *parts: tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], object]) -> None:
        texts = []
        for ends, data, where in parts:
            offsets = np.concatenate([np.zeros(1, np.int64), ends])
            check_pointers(offsets, len(data), f"{where}.ends.npy", CacheError)
            buffers = pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))
            texts.append(pa.LargeStringArray.from_buffers(len(ends), *buffers))
        self._texts = pa.chunked_array(texts, pa.large_string())
        self._names = [where for _, _, where in parts]

    @staticmethod
    def write(folder: Path, name: str, values: Iterable[str]) -> None:
        """Write the two files of a column."""
        encoded = [value.encode() for value in values]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
        save_array(folder / f"{name}.ends.npy", ends)
        save_array(folder / f"{name}.data.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return a string, or a list of some."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        try:
            return str(self._texts[int(index)].as_py())
        except UnicodeDecodeError as error:
            starts = pointers([len(part) for part in self._texts.chunks])
            part = int(np.searchsorted(starts, index % len(self), side="right")) - 1
            row = index % len(self) - starts[part]
            raise CacheError(f"{self._names[part]}.data.npy: entry {row:,} is no text") from error

    def __iter__(self) -> Iterator[str]:
        # Some thousands at a time: indexing one at a time is slow.
        for start in range(0, len(self), _DECODED_AT_ONCE):
            try:
                yield from self._texts.slice(start, _DECODED_AT_ONCE).to_pylist()
            except UnicodeDecodeError:
                yield from self[start : start + _DECODED_AT_ONCE]  # raises with the position


FIELDS = {
    "key": str,
    "options": {"fingerprint": str},
    "fingerprint_bits": int,
    "adducts": [str],
    "counts": {
        "spectra": int,
        "spectra_by_fold": {...: int},
        "peaks": int,
        "bins_shape": [int],
        "bins_filled": int,
        "measured_molecules": int,
        "molecules": int,
        "fingerprint_bits_set": int,
    },
    "candidates": {
        ...: {"lists": int, "candidates": int, "median": float, "largest": int,
              "molecules_without": int, "negatives?": {"by": str}, "matched?": {"by": str},
              "segment?": int},
    },
    "segments?": [{"molecules": int, "fingerprint_bits_set": int}],
}  # fmt: skip

KIND = "prepared folder"
FORMAT_VERSION, WITH_SEGMENTS = 3, 4
AGAIN = "run `mzseek prepare` again"
MANIFEST = Manifest(KIND, CacheError, AGAIN, FIELDS, versions=(FORMAT_VERSION, WITH_SEGMENTS))

# In what sense a candidate is the truth.
SAME_FINGERPRINT = 1
SAME_INCHIKEY = 2
IDENTITY_BITS = {"fingerprint": SAME_FINGERPRINT, "inchikey": SAME_INCHIKEY}


class Array(StrEnum):
    """Names of the arrays; a column of texts is two arrays, and named without their endings."""

    PEAK_POINTERS = "peaks.indptr"
    PEAK_MZ = "peaks.mz"
    PEAK_INTENSITIES = "peaks.intensities"
    BIN_POINTERS = "bins.indptr"
    BIN_COLUMNS = "bins.indices"
    BIN_VALUES = "bins.data"
    MOLECULE = "spectra.molecule"
    FOLD = "spectra.fold"
    PRECURSOR_MZ = "spectra.precursor_mz"
    COLLISION_ENERGY = "spectra.collision_energy"
    ADDUCT = "spectra.adduct"
    INSTRUMENT = "spectra.instrument"
    IDENTIFIER = "spectra.identifier"
    SMILES = "molecules.smiles"
    FORMULA = "molecules.formula"
    INCHIKEY14 = "molecules.block"
    MASS = "molecules.mass"
    FINGERPRINT_POINTERS = "fingerprints.indptr"
    FINGERPRINT_BITS = "fingerprints.bits"


LIST_PARTS = ("indptr", "molecules", "identity", "list_of")
_SEGMENT = re.compile(r"segment-(\d+)\.(.+)")


def path_of(folder: StrPath, name: str) -> Path:
    """Return the path of an array."""
    return Path(folder) / f"{name}.npy"


def in_segment(segment: int, name: str) -> str:
    """Return the name of an array of a segment, or, for 0, of the folder itself.

    Examples
    --------
    >>> in_segment(2, Array.MASS), in_segment(0, Array.MASS)
    ('segment-2.molecules.mass', 'molecules.mass')
    """
    return f"segment-{segment}.{name}" if segment else str(name)


def list_array(manifest: Mapping[str, Any], setting: str, part: str) -> str:
    """Return the name of an array of candidate lists, of their segment or the folder."""
    segment = int(manifest["candidates"][setting].get("segment", 0))
    return in_segment(segment, f"candidates.{part}" if segment else f"candidates.{setting}.{part}")


def segments_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counts of each segment."""
    return list(manifest.get("segments", []))


def base_count(manifest: Mapping[str, Any], what: str) -> int:
    """Return the number of molecules, or of their set bits, without those of segments."""
    added = sum(int(segment[what]) for segment in segments_of(manifest))
    return int(manifest["counts"][what]) - added


def is_leftover(name: str) -> bool:
    """Whether a file that no manifest lists was left by a process killed while it added a segment.

    Examples
    --------
    >>> is_leftover("segment-2.molecules.mass.npy"), is_leftover("thesis.txt")
    (True, False)
    """
    return _SEGMENT.fullmatch(name) is not None


def is_for_training(metadata: Mapping[str, Any]) -> bool:
    """Whether lists are negatives, which models are trained on and never measured on.

    Examples
    --------
    >>> is_for_training({"lists": 2, "negatives": {"by": "mass"}}), is_for_training({"lists": 2})
    (True, False)
    """
    return "negatives" in metadata


@dataclass(frozen=True)
class ArrayForm:
    """Required form of an array.

    Attributes
    ----------
    dtype : numpy type
    length : int or None
        None where the manifest does not say.
    within : (int, int), optional
        Range of its values: the least, and one past the largest.
    points_into : int, optional
        Of row pointers: where the last of them points.
    """

    dtype: npt.DTypeLike
    length: int | None
    within: tuple[int, int] | None = None
    points_into: int | None = None


MAX_BITS = 1 << 16  # of a fingerprint, whose bits are stored as uint16


def array_forms(manifest: Mapping[str, Any]) -> dict[str, ArrayForm]:
    """Return the form of every array that a folder with this manifest must have, by name."""
    counts = {name: n for name, n in manifest["counts"].items() if isinstance(n, int)}
    spectra, peaks, filled = counts["spectra"], counts["peaks"], counts["bins_filled"]
    base = {what: base_count(manifest, what) for what in ("molecules", "fingerprint_bits_set")}
    forms: dict[str, ArrayForm] = {
        Array.PEAK_POINTERS: ArrayForm(np.int64, spectra + 1, points_into=peaks),
        Array.PEAK_MZ: ArrayForm(np.float64, peaks),
        Array.PEAK_INTENSITIES: ArrayForm(np.float32, peaks),
        Array.BIN_POINTERS: ArrayForm(np.int64, spectra + 1, points_into=filled),
        Array.BIN_COLUMNS: ArrayForm(np.int32, filled, (0, manifest["counts"]["bins_shape"][1])),
        Array.BIN_VALUES: ArrayForm(np.float32, filled),
        Array.MOLECULE: ArrayForm(np.int32, spectra, (0, base["molecules"])),
        Array.FOLD: ArrayForm(np.int8, spectra, (-1, len(FOLDS))),
        Array.PRECURSOR_MZ: ArrayForm(np.float64, spectra),
        Array.COLLISION_ENERGY: ArrayForm(np.float32, spectra),
        Array.ADDUCT: ArrayForm(np.int16, spectra, (-1, len(manifest["adducts"]))),
        Array.INSTRUMENT: ArrayForm(np.int8, spectra, (-1, len(INSTRUMENTS))),
        f"{Array.IDENTIFIER}.ends": ArrayForm(np.int64, spectra),
        f"{Array.IDENTIFIER}.data": ArrayForm(np.uint8, None),
    }
    for segment, table in enumerate([base, *segments_of(manifest)]):
        molecules, bits = int(table["molecules"]), int(table["fingerprint_bits_set"])
        of_table = {
            f"{Array.SMILES}.ends": ArrayForm(np.int64, molecules),
            f"{Array.SMILES}.data": ArrayForm(np.uint8, None),
            f"{Array.FORMULA}.ends": ArrayForm(np.int64, molecules),
            f"{Array.FORMULA}.data": ArrayForm(np.uint8, None),
            Array.INCHIKEY14: ArrayForm("S14", molecules),
            Array.MASS: ArrayForm(np.float64, molecules),
            Array.FINGERPRINT_POINTERS: ArrayForm(np.int64, molecules + 1, points_into=bits),
            Array.FINGERPRINT_BITS: ArrayForm(np.uint16, bits, (0, manifest["fingerprint_bits"])),
        }
        forms |= {in_segment(segment, name): form for name, form in of_table.items()}
    for setting, lists in manifest["candidates"].items():
        of_lists = (
            ArrayForm(np.int64, lists["lists"] + 1, points_into=lists["candidates"]),
            ArrayForm(np.int32, lists["candidates"], (0, counts["molecules"])),
            ArrayForm(np.uint8, lists["candidates"], (0, 4)),
            ArrayForm(np.int32, base["molecules"], (-1, lists["lists"])),
        )
        for part, form in zip(LIST_PARTS, of_lists, strict=True):
            forms[list_array(manifest, setting, part)] = form
    return forms
