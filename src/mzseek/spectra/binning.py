"""Binning: peaks to sparse rows.

A peak of m/z x with 10 ≤ x ≤ 1005 belongs to bin ⌊x / 0.1⌋ of 10,050 (the last also takes
1005). Intensities in a bin are summed, and a row is divided by its largest bin.

**Edges.** In floating point 77.1 / 0.1 is 770.999…, though 77.1 is the edge where bin 771 begins.
A quotient within one millionth of a bin of a whole number counts as that number, so that an edge
belongs to the bin that begins there, however the value was computed: 10⁻⁷ m/z units are a
thousandth of what the best instruments resolve.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mzseek.spectra.spectrum import Spectrum

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BIN_WIDTH = 0.1
LOW = 10.0
HIGH = 1005.0
BINS = 10_050
_EDGE = 1e-6


def bin_index(
    mz: npt.NDArray[np.floating], width: float = BIN_WIDTH, high: float = HIGH
) -> npt.NDArray[np.int64]:
    """Bin of each m/z; the last bin includes its upper edge.

    Examples
    --------
    >>> bin_index(np.array([77.1, 77.0999, 1005.0]))
    array([  771,   770, 10049])
    """
    quotient = mz.astype(np.float64) / width
    nearest = np.rint(quotient)
    # Single-precision input carries its own, larger noise.
    edge = np.maximum(_EDGE, 4 * np.finfo(mz.dtype).eps * np.abs(quotient))
    index = np.where(np.abs(quotient - nearest) <= edge, nearest, np.floor(quotient))
    return np.minimum(index.astype(np.int64), round(high / width) - 1)


def bin_peaks(
    mz: npt.NDArray[np.floating],
    intensities: npt.NDArray[np.floating],
    counts: npt.NDArray[np.integer],
    *,
    width: float = BIN_WIDTH,
    low: float = LOW,
    high: float = HIGH,
    normalise: bool = True,
) -> "csr_array":
    """Bin concatenated peaks of many spectra to one sparse row a spectrum.

    Parameters
    ----------
    mz, intensities : float arrays, shape (all peaks,)
    counts : int array, shape (spectra,)
        Peaks of each spectrum, in order.
    width, low, high : float
        Bin width; peaks outside ``[low, high]`` are left out. Bins are counted from m/z 0.
    normalise : bool
        Divide each row by its largest bin. Without it, a row sums to the intensity in range.

    Returns
    -------
    scipy.sparse.csr_array of float32, shape (spectra, high / width)
        Column indices rise within a row. The order of a spectrum's peaks leaves no trace.
    """
    from scipy.sparse import csr_array  # here, since reading spectra does without it

    counts = np.asarray(counts, dtype=np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    inside = (mz >= low) & (mz <= high)
    rows, mz = rows[inside], mz[inside]
    heights = intensities[inside].astype(np.float64)
    columns = round(high / width)
    cells = rows * columns + bin_index(mz, width, high)
    cells, heights = _in_one_order(cells, heights)
    starts = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]]) if cells.size else cells
    sums = np.add.reduceat(heights, starts) if cells.size else heights
    filled_rows, indices = np.divmod(cells[starts], columns)
    indptr = np.searchsorted(filled_rows, np.arange(len(counts) + 1))
    if normalise and sums.size:
        sizes = np.diff(indptr)
        largest = np.maximum.reduceat(sums, indptr[:-1][sizes > 0])
        sums = sums / np.repeat(largest, sizes[sizes > 0])
    return csr_array(
        (sums.astype(np.float32), indices.astype(np.int32), indptr.astype(np.int64)),
        shape=(len(counts), columns),
    )


def _in_one_order(
    cells: npt.NDArray[np.int64], intensities: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Sort peaks by cell, those of one cell by intensity.

    Sums in floating point depend on the order of their terms, and the order of a file's peaks
    must not show. Clean spectra arrive sorted, and few cells get more than one peak.
    """
    if (cells[1:] < cells[:-1]).any():
        order = np.argsort(cells, kind="stable")
        cells, intensities = cells[order], intensities[order]
    same = cells[1:] == cells[:-1]
    shared = np.flatnonzero(np.r_[same, False] | np.r_[False, same])
    if shared.size:
        intensities = intensities.copy()
        order = np.lexsort((intensities[shared], cells[shared]))
        intensities[shared] = intensities[shared][order]
    return cells, intensities


def bin_spectra(
    spectra: Spectrum | Iterable[Spectrum],
    *,
    width: float = BIN_WIDTH,
    low: float = LOW,
    high: float = HIGH,
    normalise: bool = True,
) -> "csr_array":
    """Bin one spectrum or many to sparse rows, one a spectrum (see `bin_peaks`).

    A spectrum without a peak in range gives an empty row.

    Examples
    --------
    >>> caffeine = Spectrum(np.array([138.066, 195.088]), np.array([50.0, 100.0]), 195.088,
    ...                     "[M+H]+", 1, "caffeine")
    >>> row = bin_spectra(caffeine)
    >>> row.shape, row.indices.tolist(), row.data.tolist()
    ((1, 10050), [1380, 1950], [0.5, 1.0])
    """
    spectra = [spectra] if isinstance(spectra, Spectrum) else list(spectra)
    empty = np.empty(0)
    return bin_peaks(
        np.concatenate([empty, *(s.mz for s in spectra)]),
        np.concatenate([empty, *(s.intensities for s in spectra)]),
        np.array([len(s) for s in spectra], dtype=np.int64),
        width=width,
        low=low,
        high=high,
        normalise=normalise,
    )
