"""Numbers as people write them in spectrum files: parse what is meant, refuse what is not."""

import math
import re

from mzseek.errors import SpectrumError

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
            raise SpectrumError(f"{what} {text!r} could be {thousands:g} or a decimal comma")
    if _NUMBER.fullmatch(text):
        return float(text.replace(",", "."))
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    raise SpectrumError(f"{what} {shorten(text)!r} is not a number")


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
        raise SpectrumError(f"charge {shorten(text)!r} is not one charge such as 1+, -2 or 1")
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
