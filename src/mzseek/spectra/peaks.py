"""Peaks: from lines of text to arrays, and from arrays to clean ones."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mzseek.errors import SpectrumError
from mzseek.spectra.numbers import parse_number, shorten

MAX_PEAKS = 100_000
MAX_MZ = 20_000.0

FloatArray = npt.NDArray[np.float64]


def parse_peak_lines(lines: Sequence[tuple[int, str]]) -> tuple[FloatArray, FloatArray]:
    """m/z and intensity of numbered lines with one peak each; further columns are ignored.

    Columns are divided by white space or semicolons, or by a comma where both numbers have
    decimal points (``100.1,200.5``).
    """
    plain = [line.split() for _, line in lines]
    if all(len(columns) == 2 for columns in plain) and not any("_" in line for _, line in lines):
        try:
            values = np.array([float(text) for columns in plain for text in columns])
        except ValueError:  # decimal commas and the like: below, with a reason for each failure
            pass
        else:
            return values[0::2], values[1::2]
    pairs = [_parse_peak(number, line) for number, line in lines]
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return values[:, 0].copy(), values[:, 1].copy()


def _parse_peak(number: int, line: str) -> tuple[float, float]:
    columns = line.replace(";", " ").split()
    if len(columns) == 1 and columns[0].count(",") == 1 and "." in columns[0]:
        columns = columns[0].split(",")
    if len(columns) < 2:
        raise SpectrumError(
            f"line {number}: {shorten(line)!r} is no peak, expected m/z and intensity"
        )
    where = f"line {number}:"
    return parse_number(columns[0], f"{where} m/z"), parse_number(columns[1], f"{where} intensity")


def clean_peaks(
    mz: npt.ArrayLike, intensities: npt.ArrayLike, floor: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Sorted peaks of positive intensity; refuses what no instrument measures.

    Peaks of zero intensity are padding and are left out. A peak that is not finite or is negative
    shows that the record is damaged, and the record is refused whole.

    Parameters
    ----------
    mz, intensities : array-like, shape (peaks,)
    floor : float
        Peaks below this fraction of the largest are left out.

    Returns
    -------
    mz, intensities : float64 arrays
        m/z rising; equal m/z by rising intensity, so that the file's order leaves no trace.

    Raises
    ------
    SpectrumError

    Examples
    --------
    >>> clean_peaks([80.0, 50.0, 60.0], [1.0, 100.0, 0.0])
    (array([50., 80.]), array([100.,   1.]))
    """
    mz = np.asarray(mz, dtype=np.float64)
    intensities = np.asarray(intensities, dtype=np.float64)
    if mz.shape != intensities.shape or mz.ndim != 1:
        raise SpectrumError(f"{mz.size} m/z values but {intensities.size} intensities")
    if mz.size == 0:
        raise SpectrumError("has no peaks")
    if mz.size > MAX_PEAKS:
        raise SpectrumError(f"has {mz.size:,} peaks, expected at most {MAX_PEAKS:,}")
    _refuse(~np.isfinite(mz) | ~np.isfinite(intensities), mz, intensities, "is not finite")
    _refuse(mz <= 0, mz, intensities, "has no positive m/z")
    _refuse(mz > MAX_MZ, mz, intensities, f"is past m/z {MAX_MZ:,.0f}")
    _refuse(intensities < 0, mz, intensities, "has a negative intensity")
    largest = float(intensities.max())
    if largest == 0:
        raise SpectrumError("has no peak of positive intensity")
    keep = (intensities > 0) & (intensities >= floor * largest)
    mz, intensities = mz[keep], intensities[keep]
    order = np.lexsort((intensities, mz))
    return mz[order], intensities[order]


def _refuse(bad: npt.NDArray[np.bool_], mz: FloatArray, intensities: FloatArray, why: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise SpectrumError(f"peak {first + 1} (m/z {mz[first]:g}, {intensities[first]:g}) {why}")
