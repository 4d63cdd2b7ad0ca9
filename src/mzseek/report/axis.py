"""The m/z axis of a drawn spectrum: where it begins and ends, its ticks, and who gets a label."""

import math

import numpy as np

from mzseek.spectra import Spectrum

# An m/z this near to the precursor's is shown as the precursor; as in the figures of the pages.
NEAR_PRECURSOR = 0.05
_MARGIN = 0.04
_LEAST_MARGIN = 2.0


def limits(spectrum: Spectrum) -> tuple[float, float]:
    """First and last m/z to show: all peaks and the precursor, with a margin."""
    low = min(float(spectrum.mz[0]), spectrum.precursor_mz)
    high = max(float(spectrum.mz[-1]), spectrum.precursor_mz)
    margin = max(_MARGIN * (high - low), _LEAST_MARGIN)
    return max(0.0, low - margin), high + margin


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers in a range, at most so many, a step of 1, 2 or 5 times a power of ten apart.

    Examples
    --------
    >>> ticks(50.2, 195.3, 5)
    [100.0, 150.0]
    >>> ticks(50.2, 195.3, 10)
    [60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0]
    """
    least = (high - low) / max(most, 1)
    scale = 10.0 ** math.floor(math.log10(least))
    step = next(unit * scale for unit in (1, 2, 5, 10, 20) if unit * scale >= least)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def by_intensity(spectrum: Spectrum, floor: float = 0.0) -> list[int]:
    """Places of the peaks from the strongest down to a fraction of it; of equals the lower m/z."""
    order = np.lexsort((spectrum.mz, -spectrum.intensities))
    least = floor * float(spectrum.intensities.max())
    return [int(place) for place in order if spectrum.intensities[place] >= least]
