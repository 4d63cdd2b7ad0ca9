"""The one place where something is lost: peaks of reference spectra, made compact.

The highest peaks of a spectrum are kept; m/z are rounded to 0.00001, heights to 1/65535 of the
highest. What is packed and unpacked after that comes back bit by bit.
"""

import dataclasses

import numpy as np

from mzseek.annotation.bundle.arrays import HEIGHT_UNITS, MZ_UNITS
from mzseek.library.lists import Ions, Lists, owners_of
from mzseek.ragged import Ragged, pointers
from mzseek.spectra import Spectrum

MOST_PEAKS = 100
_PRECURSOR_UNITS = 1_000_000


def compact_peaks(lists: Lists, most: int = MOST_PEAKS) -> Lists:
    """The highest peaks of each list, in rising order, rounded.

    Of peaks of one height those of lower m/z are kept. Doing it twice changes nothing.

    Parameters
    ----------
    lists : Lists
        Peaks in rising order.
    most : int
        Peaks of a spectrum.

    Examples
    --------
    >>> two = Lists(np.array([0, 3]), np.array([50.123456, 60.0, 70.0]), np.array([1.0, 4.0, 2.0]))
    >>> kept = compact_peaks(two, 2)
    >>> kept.values.tolist(), (kept.weights * 65535).tolist()
    ([60.0, 70.0], [65535.0, 32768.0])
    """
    counts = np.diff(lists.pointers)
    owners = owners_of(lists)
    ragged = Ragged(counts)
    order = np.lexsort((lists.values, -lists.weights, owners))
    rank = np.arange(len(order)) - np.repeat(ragged.starts, counts)
    kept = np.sort(order[rank < most])
    highest = np.maximum.reduceat(lists.weights, ragged.starts)[owners[kept]] if len(kept) else 1.0
    heights = np.maximum(np.rint(lists.weights[kept] / highest * HEIGHT_UNITS), 1)
    return Lists(
        pointers(np.minimum(counts, most)),
        np.rint(lists.values[kept] * MZ_UNITS) / MZ_UNITS,
        heights / HEIGHT_UNITS,
    )


def compact_ions(ions: Ions) -> Ions:
    """Precursors rounded to 0.000001."""
    return ions._replace(precursors=np.rint(ions.precursors * _PRECURSOR_UNITS) / _PRECURSOR_UNITS)


def compact_spectrum(spectrum: Spectrum, most: int = MOST_PEAKS) -> Spectrum:
    """A spectrum with its peaks and its precursor as `compact_peaks` and `compact_ions` have them.

    Parameters
    ----------
    spectrum : Spectrum
        Cleaned, its peaks in rising order.
    most : int
    """
    whole = Lists(np.array([0, len(spectrum.mz)]), spectrum.mz, spectrum.intensities)
    kept = compact_peaks(whole, most)
    ion = compact_ions(Ions(np.array([spectrum.precursor_mz]), np.zeros(1, np.int8)))
    return dataclasses.replace(
        spectrum, mz=kept.values, intensities=kept.weights, precursor_mz=float(ion.precursors[0])
    )
