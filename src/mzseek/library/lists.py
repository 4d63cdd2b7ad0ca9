"""Lists of peaks, one for each spectrum, strung together: what kernels read.

Kernels take named tuples of arrays and no objects, so that they compile.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.errors import SpectrumError
from mzseek.ragged import pointers
from mzseek.spectra import Spectrum, clean_peaks

Array = npt.NDArray[Any]


class Lists(NamedTuple):
    """One list of (value, weight) for each spectrum; list i is ``pointers[i]:pointers[i + 1]``."""

    pointers: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]


class Ions(NamedTuple):
    """The ion of each spectrum: m/z of the precursor, and 1, −1 or 0 (unknown) for the mode."""

    precursors: npt.NDArray[np.float64]
    modes: npt.NDArray[np.int8]


class Entries(NamedTuple):
    """All values of lists in rising order, each with its list: an inverted index."""

    values: npt.NDArray[np.float64]
    owners: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64]


def lists_of(spectra: Iterable[Spectrum]) -> tuple[Lists, Ions]:
    """Peaks of spectra, cleaned: in rising order, whatever order they came in.

    Raises
    ------
    SpectrumError
        One has no usable peaks, or no precursor; the message names it.
    """
    mz: list[Array] = []
    heights: list[Array] = []
    precursors: list[float] = []
    modes: list[int] = []
    for spectrum in spectra:
        try:
            cleaned = clean_peaks(spectrum.mz, spectrum.intensities)
        except SpectrumError as error:
            raise SpectrumError(f"{spectrum.identifier}: {error}") from error
        if not 0 < spectrum.precursor_mz < np.inf:
            raise SpectrumError(f"{spectrum.identifier}: has no precursor m/z")
        mz.append(cleaned[0])
        heights.append(cleaned[1])
        precursors.append(spectrum.precursor_mz)
        modes.append(mode_of(spectrum))
    lengths = np.array([len(each) for each in mz], np.int64)
    nothing = [np.zeros(0)]
    lists = Lists(
        pointers(lengths), np.concatenate(mz or nothing), np.concatenate(heights or nothing)
    )
    return lists, Ions(np.array(precursors, np.float64), np.array(modes, np.int8))


def mode_of(spectrum: Spectrum) -> int:
    """1 for positive, −1 for negative, 0 where neither charge nor record tells."""
    if spectrum.charge:
        return 1 if spectrum.charge > 0 else -1
    return {"positive": 1, "negative": -1}.get(spectrum.metadata.get("ionmode", ""), 0)


def owners_of(lists: Lists) -> npt.NDArray[np.int64]:
    """The list that each value is in."""
    return np.repeat(np.arange(len(lists.pointers) - 1), np.diff(lists.pointers))


def inverted(lists: Lists) -> Entries:
    """The inverted index of lists."""
    order = np.argsort(lists.values, kind="stable")
    owners = owners_of(lists)[order].astype(np.int32)
    return Entries(lists.values[order], owners, lists.weights[order])


def of_length_one(lists: Lists, square: float = 1.0) -> Lists:
    """Lists with weights scaled so that their squares sum to ``square`` in each."""
    owners = owners_of(lists)
    # Of nothing at all, bincount makes whole numbers.
    sums = np.bincount(owners, lists.weights**2, len(lists.pointers) - 1).astype(np.float64)
    scale = np.sqrt(np.divide(square, sums, out=np.zeros_like(sums), where=sums > 0))
    return lists._replace(weights=lists.weights * scale[owners])


def losses_of(lists: Lists, precursors: npt.NDArray[np.float64]) -> Lists:
    """The same lists by neutral loss: precursor − peak."""
    return lists._replace(values=precursors[owners_of(lists)] - lists.values)


def no_lists(count: int) -> Lists:
    """So many empty lists."""
    return Lists(np.zeros(count + 1, np.int64), np.zeros(0), np.zeros(0))
