"""Spectra made ready for spectral entropy: centroided, freed of noise, weighted.

Li et al., Nature Methods 18, 1524 (2021), in the steps and the single precision of the authors'
package ms-entropy, so that scores are the same:

1. Peaks within twice the tolerance of a larger one become one with it, at their weighted mean m/z,
   until none are left that close.
2. Peaks below 1 % of the largest are left out.
3. With S = −Σ I ln I of intensities that sum to 1, those of spectra with S < 3 are raised to the
   power 0.25 + 0.25 S and made to sum to 1 again: a spectrum of few peaks says less by their ratio.
"""

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled
from mzseek.library.lists import Lists
from mzseek.ragged import pointers

NOISE = 0.01
_RICH = 3.0  # spectra of more entropy are taken as they are

Singles = npt.NDArray[np.float32]


def entropy_lists(lists: Lists, tolerance: float) -> Lists:
    """Lists of peaks, each made ready for `mzseek.library.pairs.entropy_similarity`."""
    values = lists.values.astype(np.float32)
    weights = lists.weights.astype(np.float32)
    counts = _make_ready(lists.pointers, values, weights, np.float32(2 * tolerance))
    kept = np.repeat(lists.pointers[:-1], counts) + _places(counts)
    return Lists(
        pointers(counts), values[kept].astype(np.float64), weights[kept].astype(np.float64)
    )


def _places(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, 2 … within each list."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


@compiled
def _make_ready(
    begins: npt.NDArray[np.int64], values: Singles, weights: Singles, apart: np.float32
) -> npt.NDArray[np.int64]:
    """Rewrite each list at its beginning; how many peaks are left in each."""
    counts = np.zeros(len(begins) - 1, np.int64)
    for row in range(len(counts)):
        mz, heights = values[begins[row] : begins[row + 1]], weights[begins[row] : begins[row + 1]]
        while not _are_apart(mz, apart):
            mz, heights = _centroided(mz, heights, apart)
        strong = heights >= np.float32(NOISE) * heights.max()
        mz, heights = mz[strong], heights[strong]
        heights = heights / heights.sum()
        entropy = -(heights * np.log(heights)).sum()
        if entropy < _RICH:
            heights = heights ** np.float32(0.25 + 0.25 * entropy)
            heights = heights / heights.sum()
        counts[row] = len(mz)
        values[begins[row] : begins[row] + len(mz)] = mz
        weights[begins[row] : begins[row] + len(mz)] = heights
    return counts


@compiled
def _are_apart(mz: Singles, apart: np.float32) -> bool:
    for place in range(1, len(mz)):  # noqa: SIM110 (compiled, a generator would be slow)
        if mz[place] - mz[place - 1] < apart:
            return False
    return True


@compiled
def _centroided(mz: Singles, heights: Singles, apart: np.float32) -> tuple[Singles, Singles]:
    """Peaks merged into the largest one near them, the largest of all first."""
    left = heights.copy()
    new_mz, new_heights = np.empty_like(mz), np.empty_like(mz)
    count = 0
    for place in np.argsort(heights, kind="mergesort")[::-1]:
        if left[place] <= 0:
            continue
        begin, end = place, place + 1
        while begin > 0 and mz[place] - mz[begin - 1] <= apart:
            begin -= 1
        while end < len(mz) and mz[end] - mz[place] <= apart:
            end += 1
        total = left[begin:end].sum()
        new_mz[count] = (left[begin:end] * mz[begin:end]).sum() / total
        new_heights[count] = total
        count += 1
        left[begin:end] = 0
    order = np.argsort(new_mz[:count], kind="mergesort")
    return new_mz[:count][order], new_heights[:count][order]
