"""Numbers as people write them in spectrum files: parse what is meant, refuse what is not."""

import re

from mzseek.errors import SpectrumError

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_CHARGE = re.compile(r"(?:([+-])(\d+)|(\d+)([+-]?)|(\++)|(-+))")
_POSITIVE_MODES = {"positive", "pos", "p", "+", "1+", "+1"}
_NEGATIVE_MODES = {"negative", "neg", "n", "-", "1-", "-1"}

# What files write where they know nothing.
_NOTHING = {"", "n/a", "na", "null", "none", "unknown", "nan", "-", "?"}


def is_nothing(text: str) -> bool:
    """Whether a field's value means "not known"."""
    return text.strip().lower() in _NOTHING


def parse_number(text: str, what: str) -> float:
    """Number with a decimal point or a decimal comma.

    A lone comma is a decimal comma (``445,12``). With more than one separator
    (``1,234.5``, ``1,234,567``) the meaning is open, and the record is refused.

    Examples
    --------
    >>> parse_number("445,12", "precursor m/z")
    445.12
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text.replace(",", "."))
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    raise SpectrumError(f"{what} {shorten(text)!r} is not a number")


def parse_charge(text: str) -> tuple[int, bool] | None:
    """Size and whether a sign was written, of ``1+``, ``+1``, ``1``, ``2-``, ``--``.

    Returns ``(signed charge, sign was written)``, or None where the charge is unknown (0).
    """
    text = text.strip().replace(" ", "")
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
    text = text.strip().lower()
    if text in _POSITIVE_MODES:
        return "positive"
    if text in _NEGATIVE_MODES:
        return "negative"
    return None


def shorten(text: str, limit: int = 60) -> str:
    """A quotation that keeps a message to one line."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
