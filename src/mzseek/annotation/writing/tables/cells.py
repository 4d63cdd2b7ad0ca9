r"""Cells of the tables that annotation writes: numbers with as many digits as mean something.

Text goes through `mzseek.files.streams.cells`: nothing in it acts. A number that is not finite is
an empty cell. A text that begins with a quotation mark is quoted, since programs that read tables
would take all up to the next one for a single cell.
"""

import math
import re
from collections.abc import Iterable, Sequence

from mzseek.files.streams.cells import free_cell, list_cell

# Plain characters with single blanks between, and first none that a spreadsheet or a reader of
# tables minds.
_HARMLESS = re.compile(r"[A-Za-z0-9(\[/][!-~]*+(?: [!-~]++)*+")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_LONGEST = 32_000  # characters of a cell that spreadsheets read


def decimal(value: float | None, digits: int) -> str:
    """A number with so many digits behind the point; empty for none.

    Examples
    --------
    >>> decimal(195.08771, 4), decimal(float("nan"), 2), decimal(None, 2), decimal(-0.00001, 2)
    ('195.0877', '', '', '0.00')
    """
    if value is None or not math.isfinite(value):
        return ""
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def share(value: float | None) -> str:
    """A probability or a share: six digits that count, whatever its size.

    Examples
    --------
    >>> share(0.25), share(1.0), share(1.23456789e-09), share(None)
    ('0.25', '1', '1.23457e-09', '')
    """
    return "" if value is None or not math.isfinite(value) else f"{value:.6g}"


def words(text: str) -> str:
    """A cell of text that somebody else has written; plain numbers stay as they are.

    Examples
    --------
    >>> words("=1+1"), words("-5")
    ("'=1+1", '-5')
    """
    if _HARMLESS.fullmatch(text):  # as nearly all are
        return _short(text)
    plain = text.strip()
    return plain if _NUMBER.fullmatch(plain) else _short(free_cell(text))


def several(texts: Iterable[str]) -> str:
    """Several texts in one cell."""
    return _short(list_cell(texts))


def quoted(cell: str) -> str:
    """A cell that begins with a quotation mark, in quotation marks."""
    return '"' + cell.replace('"', '""') + '"' if cell.startswith('"') else cell


def unquoted(cell: str) -> str:
    """What `quoted` made a cell of.

    Examples
    --------
    >>> unquoted(quoted('"a" b')), unquoted("a")
    ('"a" b', 'a')
    """
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "\t".join(map(quoted, cells)) + "\n"


def _short(cell: str) -> str:
    return cell if len(cell) <= _LONGEST else cell[: _LONGEST - 1] + "…"
