"""Spectra made ready for the search of analogs: peaks and neutral losses in narrow bins.

Two spectra of related molecules share the pieces that are alike, and lose what is alike. Each
spectrum is two vectors of square roots of intensities in bins of 0.01: of its peaks, and of its
losses (precursor − peak). The similarity is the mean of the two cosines. Losses below 0.5 are left
out: there nothing was lost, and every spectrum has that in common.
"""

import numpy as np

from mzseek.library.lists import Ions, Lists, losses_of, of_length_one
from mzseek.spectra import bin_peaks
from mzseek.spectra.peaks import MAX_MZ

WIDTH = 0.01
LEAST_LOSS = 0.5
WITHIN_A_BIN = 0.25  # bins are whole numbers: nothing but the same bin is so near


def analog_lists(lists: Lists, ions: Ions) -> tuple[Lists, Lists]:
    """Bins of peaks and bins of losses, the squares of the weights in each summing to a half."""
    return _binned(lists, 0.0), _binned(losses_of(lists, ions.precursors), LEAST_LOSS)


def _binned(lists: Lists, low: float) -> Lists:
    rows = bin_peaks(
        lists.values, lists.weights, np.diff(lists.pointers),
        width=WIDTH, low=low, high=MAX_MZ, normalise=False,
    )  # fmt: skip
    bins = Lists(
        rows.indptr.astype(np.int64),
        rows.indices.astype(np.float64),
        np.sqrt(rows.data, dtype=np.float64),
    )
    return of_length_one(bins, square=0.5)
