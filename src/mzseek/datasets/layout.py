"""Files and arrays of a prepared folder."""

import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import CacheError
from mzseek.core.registry import FOLDS
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, load_array, save_array
from mzseek.io.manifest import Manifest

_AT_A_TIME = 4_096


class _Texts(Sequence[str]):
    """Texts by place, from the end too, and slices of them; heirs say what stands at a place."""

    @abstractmethod
    def _at(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """A text, or a list of some."""
        if isinstance(place, slice):
            return [self._at(number) for number in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._at(place % len(self))


class TextColumn(_Texts):
    """Read-only strings on disk, decoded one at a time.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> TextColumn.write(folder, "names", ["caffeine", "", "quercétine"])
    >>> column = TextColumn.open(folder, "names")
    >>> len(column), column[0], column[2]
    (3, 'caffeine', 'quercétine')
    """

    def __init__(
        self, ends: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], where: object = "strings"
    ) -> None:
        pointers = np.concatenate([[0], ends])
        check_pointers(pointers, len(data), f"{where}.ends.npy", CacheError)
        self._ends = ends
        self._data = data
        self._where = where

    @staticmethod
    def write(folder: Path, name: str, values: Iterable[str]) -> None:
        """Write the column's two files."""
        encoded = [value.encode() for value in values]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
        save_array(folder / f"{name}.ends.npy", ends)
        save_array(folder / f"{name}.data.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))

    @classmethod
    def open(cls, folder: Path, name: str) -> "TextColumn":
        """Open a column without reading it."""
        return cls(
            load_array(folder / f"{name}.ends.npy", np.int64, [None], CacheError),
            load_array(folder / f"{name}.data.npy", np.uint8, [None], CacheError),
            folder / name,
        )

    def __len__(self) -> int:
        return len(self._ends)

    def _at(self, place: int) -> str:
        start = int(self._ends[place - 1]) if place else 0
        return self._decoded(bytes(self._data[start : int(self._ends[place])]), place)

    def __iter__(self) -> Iterator[str]:
        # Some thousands at a time: a memory-mapped array is slow to be asked for one number.
        for first in range(0, len(self), _AT_A_TIME):
            ends = self._ends[first : first + _AT_A_TIME].tolist()
            start = int(self._ends[first - 1]) if first else 0
            data = self._data[start : ends[-1]].tobytes()
            for place, (begin, end) in enumerate(pairwise([start, *ends]), first):
                yield self._decoded(data[begin - start : end - start], place)

    def _decoded(self, data: bytes, place: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise CacheError(f"{self._where}.data.npy: entry {place:,} is no text") from error


class JoinedColumns(_Texts):
    """Several columns as one, numbered through.

    Examples
    --------
    >>> both = JoinedColumns([["caffeine"], [], ["aspirin", "quercetin"]])
    >>> len(both), both[1], both[-1], list(both)
    (3, 'aspirin', 'quercetin', ['caffeine', 'aspirin', 'quercetin'])
    """

    def __init__(self, columns: Sequence[Sequence[str]]) -> None:
        self._columns = columns
        self._begins = list(accumulate(map(len, columns), initial=0))

    def __len__(self) -> int:
        return self._begins[-1]

    def _at(self, place: int) -> str:
        column = bisect_right(self._begins, place) - 1
        return self._columns[column][place - self._begins[column]]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._columns)


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
FORMAT_VERSION, WITH_SEGMENTS = 1, 2
AGAIN = "run `mzseek prepare` again"
MANIFEST = Manifest(KIND, CacheError, AGAIN, FIELDS, versions=(FORMAT_VERSION, WITH_SEGMENTS))
REJECTS = "rejects.tsv"

# In what sense a candidate is the truth.
SAME_FINGERPRINT = 1
SAME_INCHIKEY = 2
IDENTITY_BITS = {"fingerprint": SAME_FINGERPRINT, "inchikey": SAME_INCHIKEY}

Facts = dict[str, Any]  # of a manifest


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
    IDENTIFIER = "spectra.identifier"
    SMILES = "molecules.smiles"
    FORMULA = "molecules.formula"
    BLOCK = "molecules.block"
    MASS = "molecules.mass"
    FINGERPRINT_POINTERS = "fingerprints.indptr"
    FINGERPRINT_BITS = "fingerprints.bits"


MOLECULE_ARRAYS = (
    *(f"{column}.{part}" for column in (Array.SMILES, Array.FORMULA) for part in ("ends", "data")),
    Array.BLOCK, Array.MASS, Array.FINGERPRINT_POINTERS, Array.FINGERPRINT_BITS,
)  # fmt: skip
LIST_PARTS = ("indptr", "molecules", "identity", "list_of")
_SEGMENT = re.compile(r"segment-(\d+)\.(.+)")


def path_of(folder: StrPath, name: str) -> Path:
    """The file of an array."""
    return Path(folder) / f"{name}.npy"


def in_segment(segment: int, name: str) -> str:
    """Name of an array of a segment, or, for 0, of the folder itself.

    Examples
    --------
    >>> in_segment(2, Array.MASS), in_segment(0, Array.MASS)
    ('segment-2.molecules.mass', 'molecules.mass')
    """
    return f"segment-{segment}.{name}" if segment else str(name)


def list_array(manifest: Facts, setting: str, part: str) -> str:
    """Name of an array of candidate lists: in their segment, or beside all others."""
    segment = int(manifest["candidates"][setting].get("segment", 0))
    return in_segment(segment, f"candidates.{part}" if segment else f"candidates.{setting}.{part}")


def segments_of(manifest: Facts) -> list[Facts]:
    """What was added, segment by segment."""
    return list(manifest.get("segments", []))


def base_count(manifest: Facts, what: str) -> int:
    """Molecules, or their set bits, without those of segments."""
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


def is_for_training(facts: Mapping[str, Any]) -> bool:
    """Whether lists are negatives, which models are trained on and never measured on.

    Parameters
    ----------
    facts : mapping
        What the manifest says of the lists: how they were mined, if they were.

    Examples
    --------
    >>> is_for_training({"lists": 2, "negatives": {"by": "mass"}}), is_for_training({"lists": 2})
    (True, False)
    """
    return "negatives" in facts


def drawn_by(facts: Mapping[str, Any]) -> Facts:
    """How lists were drawn from a database; empty for lists that came with the data.

    Examples
    --------
    >>> drawn_by({"lists": 2, "matched": {"by": "mass"}}), drawn_by({"lists": 2})
    ({'by': 'mass'}, {})
    """
    return dict(facts.get("negatives") or facts.get("matched") or {})


@dataclass(frozen=True)
class Form:
    """What an array must be.

    Attributes
    ----------
    dtype : numpy type
    length : callable of the manifest
        How many numbers it has; None where the manifest does not say.
    within : callable of the manifest, optional
        The least number in it, and the one past the largest.
    points_into : callable of the manifest, optional
        Row pointers: where the last of them points.
    """

    dtype: npt.DTypeLike
    length: Callable[[Facts], int | None]
    within: Callable[[Facts], tuple[int, int]] | None = None
    points_into: Callable[[Facts], int] | None = None


def _count(name: str, more: int = 0) -> Callable[[Facts], int]:
    return lambda manifest: int(manifest["counts"][name]) + more


def _below(bound: Callable[[Facts], int], least: int = 0) -> Callable[[Facts], Any]:
    return lambda manifest: (least, bound(manifest))


def _any(_: Facts) -> None:
    return None


def _molecule_forms(segment: int) -> dict[str, Form]:
    """Forms of a table of molecules: the folder's, or that of a segment."""

    def told(what: str, more: int = 0) -> Callable[[Facts], int]:
        if not segment:
            return lambda manifest: base_count(manifest, what) + more
        return lambda manifest: int(manifest["segments"][segment - 1][what]) + more

    molecules, bits = told("molecules"), told("fingerprint_bits_set")
    return {
        f"{Array.SMILES}.ends": Form(np.int64, molecules),
        f"{Array.SMILES}.data": Form(np.uint8, _any),
        f"{Array.FORMULA}.ends": Form(np.int64, molecules),
        f"{Array.FORMULA}.data": Form(np.uint8, _any),
        Array.BLOCK: Form("S14", molecules),
        Array.MASS: Form(np.float64, molecules),
        Array.FINGERPRINT_POINTERS: Form(np.int64, told("molecules", 1), points_into=bits),
        Array.FINGERPRINT_BITS: Form(np.uint16, bits, _below(lambda m: int(m["fingerprint_bits"]))),
    }


def _list_forms(setting: Callable[[Facts], str]) -> dict[str, Form]:
    def told(what: str, more: int = 0) -> Callable[[Facts], int]:
        return lambda manifest: int(manifest["candidates"][setting(manifest)][what]) + more

    return {
        "indptr": Form(np.int64, told("lists", 1), points_into=told("candidates")),
        "molecules": Form(np.int32, told("candidates"), _below(_count("molecules"))),
        "identity": Form(np.uint8, told("candidates"), _below(lambda _: 4)),
        "list_of": Form(np.int32, lambda m: base_count(m, "molecules"), _below(told("lists"), -1)),
    }


_SPECTRA = _count("spectra")
_FORMS: dict[str, Form] = {
    Array.PEAK_POINTERS: Form(np.int64, _count("spectra", 1), points_into=_count("peaks")),
    Array.PEAK_MZ: Form(np.float64, _count("peaks")),
    Array.PEAK_INTENSITIES: Form(np.float32, _count("peaks")),
    Array.BIN_POINTERS: Form(np.int64, _count("spectra", 1), points_into=_count("bins_filled")),
    Array.BIN_COLUMNS: Form(
        np.int32, _count("bins_filled"), _below(lambda m: int(m["counts"]["bins_shape"][1]))
    ),
    Array.BIN_VALUES: Form(np.float32, _count("bins_filled")),
    Array.MOLECULE: Form(np.int32, _SPECTRA, _below(lambda m: base_count(m, "molecules"))),
    Array.FOLD: Form(np.int8, _SPECTRA, _below(lambda _: len(FOLDS), -1)),
    Array.PRECURSOR_MZ: Form(np.float64, _SPECTRA),
    Array.COLLISION_ENERGY: Form(np.float32, _SPECTRA),
    Array.ADDUCT: Form(np.int16, _SPECTRA, _below(lambda m: len(m["adducts"]), -1)),
    f"{Array.IDENTIFIER}.ends": Form(np.int64, _SPECTRA),
    f"{Array.IDENTIFIER}.data": Form(np.uint8, _any),
    **_molecule_forms(0),
}


def form_of(name: str) -> Form:
    """What an array of a prepared folder must be, by its name without ``.npy``.

    Examples
    --------
    >>> form_of("candidates.mass.identity").within({})
    (0, 4)
    >>> form_of("segment-1.molecules.mass").length({"segments": [{"molecules": 7}]})
    7
    """
    if name in _FORMS:
        return _FORMS[name]
    if added := _SEGMENT.fullmatch(name):
        segment, inside = int(added[1]), added[2]
        if not inside.startswith("candidates."):
            return _molecule_forms(segment)[inside]
        forms = _list_forms(lambda manifest: _setting_of(manifest, segment))
        return forms[inside.removeprefix("candidates.")]
    setting, _, part = name.removeprefix("candidates.").rpartition(".")
    return _list_forms(lambda _: setting)[part]


def _setting_of(manifest: Facts, segment: int) -> str:
    settings = manifest["candidates"].items()
    return next(str(name) for name, facts in settings if facts.get("segment") == segment)


def names_of(manifest: Facts) -> list[str]:
    """Names of all arrays that a folder with this manifest must have."""
    added = range(1, len(segments_of(manifest)) + 1)
    return [
        *_FORMS,
        *(in_segment(segment, name) for segment in added for name in MOLECULE_ARRAYS),
        *(list_array(manifest, setting, part)
          for setting in manifest["candidates"] for part in LIST_PARTS),
    ]  # fmt: skip
