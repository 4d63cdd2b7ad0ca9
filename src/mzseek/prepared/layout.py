"""The form of a prepared folder: fields of its manifest, and of every array type and length."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.datasets.table import FOLDS
from mzseek.errors import CacheError
from mzseek.files.manifest import Manifest

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
              "molecules_without": int, "negatives?": {"by": str}},
    },
}  # fmt: skip

KIND = "prepared folder"
FORMAT_VERSION = 1
AGAIN = "run `mzseek prepare` again"
MANIFEST = Manifest(
    KIND, CacheError, AGAIN, FIELDS, versions=(FORMAT_VERSION,), may_be_unsigned=True
)

Facts = dict[str, Any]  # of a manifest


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


_MOLECULES, _SPECTRA = _count("molecules"), _count("spectra")
_FORMS = {
    "peaks.indptr": Form(np.int64, _count("spectra", 1), points_into=_count("peaks")),
    "peaks.mz": Form(np.float64, _count("peaks")),
    "peaks.intensities": Form(np.float32, _count("peaks")),
    "bins.indptr": Form(np.int64, _count("spectra", 1), points_into=_count("bins_filled")),
    "bins.indices": Form(
        np.int32, _count("bins_filled"), _below(lambda m: int(m["counts"]["bins_shape"][1]))
    ),
    "bins.data": Form(np.float32, _count("bins_filled")),
    "spectra.molecule": Form(np.int32, _SPECTRA, _below(_MOLECULES)),
    "spectra.fold": Form(np.int8, _SPECTRA, _below(lambda _: len(FOLDS), -1)),
    "spectra.precursor_mz": Form(np.float64, _SPECTRA),
    "spectra.collision_energy": Form(np.float32, _SPECTRA),
    "spectra.adduct": Form(np.int16, _SPECTRA, _below(lambda m: len(m["adducts"]), -1)),
    "spectra.identifier.ends": Form(np.int64, _SPECTRA),
    "spectra.identifier.data": Form(np.uint8, _any),
    "molecules.smiles.ends": Form(np.int64, _MOLECULES),
    "molecules.smiles.data": Form(np.uint8, _any),
    "molecules.formula.ends": Form(np.int64, _MOLECULES),
    "molecules.formula.data": Form(np.uint8, _any),
    "molecules.block": Form("S14", _MOLECULES),
    "molecules.mass": Form(np.float64, _MOLECULES),
    "fingerprints.indptr": Form(
        np.int64, _count("molecules", 1), points_into=_count("fingerprint_bits_set")
    ),
    "fingerprints.bits": Form(
        np.uint16, _count("fingerprint_bits_set"), _below(lambda m: int(m["fingerprint_bits"]))
    ),
}  # fmt: skip


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


def form_of(name: str) -> Form:
    """What an array of a prepared folder must be, by its name without ``.npy``.

    Examples
    --------
    >>> form_of("candidates.mass.identity").within({})
    (0, 4)
    """
    if name in _FORMS:
        return _FORMS[name]
    setting, _, part = name.removeprefix("candidates.").rpartition(".")

    def told(what: str, more: int = 0) -> Callable[[Facts], int]:
        return lambda manifest: int(manifest["candidates"][setting][what]) + more

    return {
        "indptr": Form(np.int64, told("lists", 1), points_into=told("candidates")),
        "molecules": Form(np.int32, told("candidates"), _below(_MOLECULES)),
        "identity": Form(np.uint8, told("candidates"), _below(lambda _: 4)),
        "list_of": Form(np.int32, _MOLECULES, _below(told("lists"), -1)),
    }[part]


def names_of(manifest: Facts) -> list[str]:
    """Names of all arrays that a folder with this manifest must have."""
    parts = ("indptr", "molecules", "identity", "list_of")
    lists = [f"candidates.{setting}.{part}" for setting in manifest["candidates"] for part in parts]
    return [*_FORMS, *lists]
