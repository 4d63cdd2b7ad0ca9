"""Cells of mzTab-M: never empty, numbers as decimals, parameters in brackets, lists behind bars."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from mzseek.annotation.writing.tables.cells import decimal
from mzseek.files.streams.cells import free_cell

NULL = "null"
BAR = "|"
_OTHER_BAR = "¦"  # in a text, where a bar would end an element of a list
# The specification's pattern.
_ADDUCT = re.compile(r"\[\d*M([+-][\w\d]+)*\]\d*[+-]", re.ASCII)
_ONE_CHARGE = re.compile(r"\]([+-])$")


def text(value: str) -> str:
    """A cell of text; null for none.

    Examples
    --------
    >>> text("a|b"), text(" "), text("=1")
    ('a¦b', 'null', "'=1")
    """
    cell = free_cell(value).replace(BAR, _OTHER_BAR)
    return f"'{cell}" if cell.startswith('"') else cell or NULL


def number(value: float | None, digits: int = 6) -> str:
    """A decimal; null for none, or none that is finite. The format knows no powers of ten."""
    return decimal(value, digits) or NULL


def several(cells: Iterable[str]) -> str:
    """Elements of a list, of equal length in all columns; null where all of them are."""
    elements = list(cells)
    return BAR.join(elements) if any(each != NULL for each in elements) else NULL


def param(label: str, accession: str, name: str, value: str = "") -> str:
    """A parameter: of a vocabulary, or of one's own where label and accession are empty.

    Examples
    --------
    >>> param("MS", "MS:1000511", "ms level", "2"), param("", "", "a, b")
    ('[MS, MS:1000511, ms level, 2]', '[, , "a, b", ]')
    """
    parts = (label, accession, _part(name), _part(value))
    return f"[{', '.join(parts)}]"


def _part(value: str) -> str:
    plain = free_cell(value).replace('"', "'").replace(BAR, _OTHER_BAR)
    return f'"{plain}"' if set(plain) & set(",[]") else plain


def adduct(name: str) -> str:
    """An ion as the format writes it, with a charge of 1 told; null for one that it cannot write.

    Examples
    --------
    >>> adduct("[M+H]+"), adduct("[M-2H]2-"), adduct("[M]+•")
    ('[M+H]1+', '[M-2H]2-', 'null')
    """
    told = _ONE_CHARGE.sub(r"]1\1", name)
    return told if _ADDUCT.fullmatch(told) else NULL


def location(where: str) -> str:
    """A file as an URI; null where it is not known."""
    if not where.strip():
        return NULL
    if "://" in where:
        return quote(where, safe=":/?#[]@!$&'()*+,;=%-._~")
    return Path(where).absolute().as_uri()


def line(cells: Sequence[str]) -> str:
    """A line; an empty cell would break the format."""
    return "\t".join(cell or NULL for cell in cells) + "\n"
