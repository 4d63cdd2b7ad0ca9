"""Parse numbers and peaks as they are written in spectrum files."""

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import SpectrumError
from mzseek.io.sources import MAX_PEAKS

# Beyond it lies no energy, time or mass, and not much further on what 32 bits can hold.
LARGEST = 1e30

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_MAYBE_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")
# "-1+" is GNPS's: a signed charge with a plus behind it.
_CHARGE = re.compile(r"(?:([+-])(\d{1,3})|(\d{1,3})([+-]?)|(\+{1,4})|(-{1,4}))")
_MINUS_WITH_PLUS = re.compile(r"(-\d{1,3})\+")
_TIME = re.compile(r"([^\s]*?[\d.,])(?:\s*([A-Za-z]+)\b\.?(?:[\s,;(].*)?)?", re.DOTALL)
_DURATION = re.compile(r"P(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+(?:[eE][+-]?\d+)?)S)?)?", re.I)
_MOST_TIME_TEXT = 200
TIME_UNITS = {"s": 1.0, "min": 60.0}
_UNIT_WORDS = {
    word: unit
    for unit, words in (("s", "s sec secs second seconds"), ("min", "m min mins minute minutes"))
    for word in words.split()
}
_POSITIVE_MODE = re.compile(r"pos\w*\b.*|p|\+|1\+|\+1", re.IGNORECASE)
_NEGATIVE_MODE = re.compile(r"neg\w*\b.*|n|-|1-|-1", re.IGNORECASE)

# What files write where they know nothing.
_NOTHING = {"", "n/a", "na", "null", "none", "unknown", "nan", "-", "?"}
_LONGEST_NOTHING = 30  # with blanks around it


def is_nothing(text: str) -> bool:
    """Whether a field's value means "not known"."""
    return len(text) < _LONGEST_NOTHING and text.strip().lower() in _NOTHING


def parse_number(
    text: str, what: str, *, decimal_comma: bool = False, limit: float | None = None
) -> float:
    """Number with a decimal point or a decimal comma.

    A comma is a decimal comma (``445,12``), unless it could stand between thousands (``1,234``):
    then it is one only where ``decimal_comma`` says that the record writes them so, or where
    thousands would lie beyond ``limit``. What stays open, and what has two separators
    (``1,234.5``), is refused.

    Examples
    --------
    >>> parse_number("445,12", "precursor m/z")
    445.12
    >>> parse_number("445,123", "precursor m/z", limit=20_000)
    445.123
    """
    text = text.strip()
    if _MAYBE_THOUSANDS.fullmatch(text) and not decimal_comma:
        thousands = float(text.replace(",", ""))
        if limit is None or thousands <= limit:
            raise SpectrumError(
                f"{what} {text!r} could be {thousands:g} or a decimal comma", "bad-number"
            )
    if _NUMBER.fullmatch(text):
        return float(text.replace(",", "."))
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    raise SpectrumError(f"{what} {shorten(text)!r} is not a number", "bad-number")


def leading_number(text: str) -> float | None:
    """Number that a text begins with; None where it begins with none, or with a NaN.

    A number past `LARGEST` comes out infinite: no quantity of a spectrum is so large.

    Examples
    --------
    >>> leading_number("35 % (nominal)"), leading_number("30eV"), leading_number("ramped")
    (35.0, 30.0, None)
    >>> leading_number("1e999")
    inf
    """
    words = text.split(maxsplit=1)
    if not words:
        return None
    word = words[0] if _NOT_FINITE.fullmatch(words[0]) else words[0].rstrip("%eVv")
    try:
        value = parse_number(word, "value")
    except SpectrumError:
        return None
    if math.isnan(value):
        return None
    return value if abs(value) <= LARGEST else math.copysign(math.inf, value)


def has_decimal_comma(text: str, limit: float = float("inf")) -> bool:
    """Whether a number's comma can only be a decimal one: thousands would lie beyond ``limit``."""
    if "," not in text or not _NUMBER.fullmatch(text):
        return False
    return not _MAYBE_THOUSANDS.fullmatch(text) or float(text.replace(",", "")) > limit


def is_number(text: str) -> bool:
    """Whether a word is a number in one of the usual spellings."""
    return bool(_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text))


def parse_time(text: str) -> tuple[float, str] | None:
    """Number and unit (``"s"``, ``"min"``, or ``""`` where none is written) of a retention time.

    An ISO duration (``PT1M30S``) is in seconds. None where the text is no time of zero or more, or
    has a unit that is neither minutes nor seconds.

    Examples
    --------
    >>> parse_time("7.3 min"), parse_time("438s"), parse_time("PT1M30S"), parse_time("635.4")
    ((7.3, 'min'), (438.0, 's'), (90.0, 's'), (635.4, ''))
    >>> parse_time("3-5 min"), parse_time("-1"), parse_time("late")
    (None, None, None)
    """
    text = text.strip()[:_MOST_TIME_TEXT]
    if duration := _DURATION.fullmatch(text):
        try:
            hours, minutes, seconds = (float(part or 0) for part in duration.groups())
        except ValueError:  # "1.2.3"
            return None
        return hours * 3600 + minutes * 60 + seconds, "s"
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    unit = _UNIT_WORDS.get((match[2] or "").lower(), None if match[2] else "")
    number = leading_number(match[1])
    if unit is None or number is None or not 0 <= number < math.inf:
        return None
    return number, unit


def time_in_seconds(text: str, unit: str = "") -> float | None:
    """Seconds of a retention time; ``unit`` holds for a text that has none.

    None where the text is no time, or where nothing tells its unit.

    Examples
    --------
    >>> time_in_seconds("2.5 min"), time_in_seconds("150"), time_in_seconds("150", "s")
    (150.0, None, 150.0)
    """
    time = parse_time(text)
    unit = (time[1] or unit) if time else ""
    return time[0] * TIME_UNITS[unit] if time and unit else None


def with_time_unit(text: str, unit: str) -> str:
    """Append a unit to a retention time that is written as a bare number.

    Examples
    --------
    >>> with_time_unit("12.5", "s"), with_time_unit("12.5 min", "s"), with_time_unit("12.5", "")
    ('12.5 s', '12.5 min', '12.5')
    """
    return f"{text} {unit}" if unit and is_number(text) else text


def parse_charge(text: str) -> tuple[int, bool] | None:
    """Size and whether a sign was written, of ``1+``, ``+1``, ``1``, ``2-``, ``--``, ``-1+``.

    Returns ``(charge, sign was written)``, or None where the charge is unknown (0). A charge
    without a sign is positive, unless the ion mode or the adduct says otherwise.
    """
    text = text.strip().replace(" ", "")
    if signed := _MINUS_WITH_PLUS.fullmatch(text):
        text = signed[1]
    match = _CHARGE.fullmatch(text)
    if match is None:
        raise SpectrumError(
            f"charge {shorten(text)!r} is not one charge such as 1+, -2 or 1", "bad-charge"
        )
    leading, after, digits, trailing, plus, minus = match.groups()
    if plus or minus:
        return (len(plus) if plus else -len(minus)), True
    sign = leading or trailing
    size = int(after or digits)
    if size == 0:
        return None
    return (-size if sign == "-" else size), bool(sign)


def parse_ion_mode(text: str) -> str | None:
    """``"positive"``, ``"negative"``, or None where the text tells neither."""
    text = text.strip()
    if _POSITIVE_MODE.fullmatch(text):
        return "positive"
    if _NEGATIVE_MODE.fullmatch(text):
        return "negative"
    return None


def shorten(text: str, limit: int = 60) -> str:
    """A quotation that keeps a message to one line."""
    text = " ".join(text[: 10 * limit].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


MAX_MZ = 20_000.0
# No instrument counts so many ions, and squares of larger numbers overflow.
MAX_INTENSITY = 1e30
# Peaks nearer to each other than this share of their m/z (0.1 ppm) are one: no instrument resolves
# them, and numbers of 32 bits are no more precise.
SAME_MZ = 1e-7
# A spectrum is in profile mode if most of its points are this near to the next one, and few of
# them are maxima: none of 64,209 centroided MassBank spectra is.
_PROFILE_POINTS, _PROFILE_GAP = 100, 0.05
_PROFILE_NEAR, _PROFILE_MAXIMA = 0.7, 0.25

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
        has_decimal_comma(word, MAX_MZ if column == 0 else np.inf)
        for line in lines
        for column, word in enumerate(line.replace(";", " ").split())
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
        raise SpectrumError(
            f"{where} {shorten(line)!r} is no peak, expected m/z and intensity", "bad-peak"
        )
    if len(columns) >= 4 and len(columns) % 2 == 0 and all(is_number(word) for word in columns):
        raise SpectrumError(
            f"{where} {shorten(line)!r}: one peak with more columns, or several?", "bad-peak"
        )
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
        raise SpectrumError(
            f"{mz.size} m/z values but {intensities.size} intensities", "peak-count"
        )
    if mz.size == 0:
        raise SpectrumError("has no peaks", "no-peaks")
    if mz.size > MAX_PEAKS:
        raise SpectrumError(f"has {mz.size:,} peaks, expected at most {MAX_PEAKS:,}", "too-large")
    largest = float(intensities.max())
    # Four comparisons that a NaN fails too: only a damaged record is looked at more closely.
    is_sound = mz.min() > 0 and mz.max() <= MAX_MZ and intensities.min() >= 0
    if not (is_sound and largest <= MAX_INTENSITY):
        _refuse(~np.isfinite(mz) | ~np.isfinite(intensities), mz, intensities, "is not finite")
        _refuse(mz <= 0, mz, intensities, "has no positive m/z")
        _refuse(mz > MAX_MZ, mz, intensities, f"is past m/z {MAX_MZ:,.0f}")
        _refuse(intensities < 0, mz, intensities, "has a negative intensity")
        _refuse(intensities > MAX_INTENSITY, mz, intensities, f"is past {MAX_INTENSITY:g}")
    if largest == 0:
        raise SpectrumError("has no peak of positive intensity", "no-peaks")
    if floor > 0 or intensities.min() == 0:
        keep = (intensities > 0) & (intensities >= floor * largest)
        mz, intensities = mz[keep], intensities[keep]
    if (mz[1:] <= mz[:-1]).any():
        order = np.lexsort((intensities, mz))
        mz, intensities = mz[order], intensities[order]
    return mz, intensities


def measurable_peaks(
    mz: npt.ArrayLike, intensities: npt.ArrayLike
) -> tuple[npt.ArrayLike, npt.ArrayLike, int]:
    """Drop the peaks that no instrument can have measured, and count them.

    They have an m/z or an intensity that is not finite, negative or beyond all bounds: what
    `clean_peaks` refuses. Arrays of different shapes, or without any other peak, stay as they are.

    Examples
    --------
    >>> mz, intensities, skipped = measurable_peaks([50.0, 60.0, -1.0], [1.0, np.nan, 2.0])
    >>> mz.tolist(), intensities.tolist(), skipped
    ([50.0], [1.0], 2)
    """
    if np.shape(mz) != np.shape(intensities):
        return mz, intensities, 0
    x, y = np.asarray(mz, np.float64), np.asarray(intensities, np.float64)
    # Comparisons that a NaN fails.
    sound = (x > 0) & (x <= MAX_MZ) & (y >= 0) & (y <= MAX_INTENSITY)
    if sound.all() or not sound.any():
        return mz, intensities, 0
    return x[sound], y[sound], int(sound.size - sound.sum())


def merge_duplicates(mz: FloatArray, intensities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Merge peaks of the same m/z into one, with the largest of their intensities.

    The maximum, not the sum: a line that a program has written twice must not raise its peak, and
    a spectrum with repeated lines is then exactly the one without them. Where two ions were rounded
    to one m/z, the weaker one is lost.

    Parameters
    ----------
    mz, intensities : float64 arrays, shape (peaks,)
        As `clean_peaks` returns them.

    Returns
    -------
    mz, intensities : float64 arrays
        The same objects where no m/z is repeated.

    Examples
    --------
    >>> merge_duplicates(np.array([50.0, 50.0, 80.0]), np.array([1.0, 3.0, 2.0]))
    (array([50., 80.]), array([3., 2.]))
    """
    begins = np.ones(len(mz), bool)
    begins[1:] = np.diff(mz) > SAME_MZ * mz[1:]
    if begins.all():
        return mz, intensities
    # The most intense of each group; of equal ones that of the lowest m/z.
    order = np.lexsort((mz, -intensities, np.cumsum(begins)))
    largest = order[np.flatnonzero(begins)]
    return mz[largest], intensities[largest]


def looks_like_profile(mz: FloatArray, intensities: FloatArray) -> bool:
    """Return whether peaks are points of a profile, by their spacing and their few maxima.

    Examples
    --------
    >>> mz = np.arange(100.0, 102.0, 0.01)
    >>> looks_like_profile(mz, 1 + np.cos(20 * mz))
    True
    >>> looks_like_profile(50 * mz, 1 + np.cos(20 * mz))
    False
    """
    if len(mz) < _PROFILE_POINTS or (np.diff(mz) < _PROFILE_GAP).mean() < _PROFILE_NEAR:
        return False
    middle = intensities[1:-1]
    maxima = (middle > intensities[:-2]) & (middle >= intensities[2:])
    return bool(maxima.mean() < _PROFILE_MAXIMA)


def _refuse(bad: npt.NDArray[np.bool_], mz: FloatArray, intensities: FloatArray, why: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise SpectrumError(
            f"peak {first + 1} (m/z {mz[first]:g}, {intensities[first]:g}) {why}", "bad-peak"
        )
