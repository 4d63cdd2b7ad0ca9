"""Peaks: from lines of text to arrays, and from arrays to clean ones."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mzseek.errors import SpectrumError
from mzseek.files.limits import MAX_PEAKS
from mzseek.spectra.numbers import has_decimal_comma, is_number, parse_number, shorten

MAX_MZ = 20_000.0

FloatArray = npt.NDArray[np.float64]


# Nearly every record: two plain numbers a line. Possessive, so that a long text that is otherwise
# fails at once.
_PLAIN = re.compile(r"(?:[ \t]*+[\d.eE+-]++[ \t]++[\d.eE+-]++[ \t]*+\n)*+")


def parse_peak_lines(lines: Sequence[str], numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """m/z and intensity of lines with one peak each; further columns are ignored.

    Columns are divided by white space or semicolons, or by a comma where both numbers have
    decimal points (``100.1,200.5``). ``numbers`` are the lines' numbers in the file, for messages.
    """
    text = "".join(lines)
    if _PLAIN.fullmatch(text):
        try:
            values = np.array([float(number) for number in text.split()])
        except ValueError:  # "1-2" and the like: below, with a reason
            pass
        else:
            return values[0::2], values[1::2]
    decimal_comma = "." not in text and any(
        has_decimal_comma(word, MAX_MZ if place == 0 else np.inf)
        for line in lines
        for place, word in enumerate(line.replace(";", " ").split())
    )
    pairs = [
        _parse_peak(number, line, decimal_comma)
        for number, line in zip(numbers, lines, strict=True)
        if line.strip()
    ]
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return values[:, 0].copy(), values[:, 1].copy()


def _parse_peak(number: int, line: str, decimal_comma: bool) -> tuple[float, float]:
    columns = line.replace(";", " ").split()
    if len(columns) == 1 and columns[0].count(",") == 1 and "." in columns[0]:
        columns = columns[0].split(",")
    where = f"line {number}:"
    if len(columns) < 2:
        raise SpectrumError(f"{where} {shorten(line)!r} is no peak, expected m/z and intensity")
    if len(columns) >= 4 and len(columns) % 2 == 0 and all(is_number(word) for word in columns):
        raise SpectrumError(f"{where} {shorten(line)!r}: one peak with more columns, or several?")
    mz = parse_number(columns[0], f"{where} m/z", decimal_comma=decimal_comma, limit=MAX_MZ)
    return mz, parse_number(columns[1], f"{where} intensity", decimal_comma=decimal_comma)


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
    largest = float(intensities.max())
    # Four comparisons that a NaN fails too: only a damaged record is looked at more closely.
    if not (mz.min() > 0 and mz.max() <= MAX_MZ and intensities.min() >= 0 and largest < np.inf):
        _refuse(~np.isfinite(mz) | ~np.isfinite(intensities), mz, intensities, "is not finite")
        _refuse(mz <= 0, mz, intensities, "has no positive m/z")
        _refuse(mz > MAX_MZ, mz, intensities, f"is past m/z {MAX_MZ:,.0f}")
        _refuse(intensities < 0, mz, intensities, "has a negative intensity")
    if largest == 0:
        raise SpectrumError("has no peak of positive intensity")
    if floor > 0 or intensities.min() == 0:
        keep = (intensities > 0) & (intensities >= floor * largest)
        mz, intensities = mz[keep], intensities[keep]
    if (mz[1:] <= mz[:-1]).any():
        order = np.lexsort((intensities, mz))
        mz, intensities = mz[order], intensities[order]
    return mz, intensities


def _refuse(bad: npt.NDArray[np.bool_], mz: FloatArray, intensities: FloatArray, why: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise SpectrumError(f"peak {first + 1} (m/z {mz[first]:g}, {intensities[first]:g}) {why}")
