r"""Text of others in tables that other programs open: nothing in it acts.

A control character could move a terminal's cursor or break a row, and a spreadsheet takes a cell
that begins with ``=``, ``+``, ``-`` or ``@`` for a formula and runs it.
"""

import re
from collections.abc import Iterable

# All of Unicode's controls, its line and paragraph ends, the marks that turn the direction of text
# around, and halves of characters, which no file can hold.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Behind apostrophes, too, so that taking one away gives what was there.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_BETWEEN = "; "
_PARTS = re.compile(r"((?:\\.|(?!; )[^\\])*)(?:; |\Z)", re.DOTALL)


def visible(text: str) -> str:
    r"""Text with each control character as a mark.

    Examples
    --------
    >>> visible("a\x1b[2Jb")
    'a�[2Jb'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def free_cell(text: str) -> str:
    r"""A cell of free text: on one line, without control characters, and no formula.

    Examples
    --------
    >>> free_cell("=cmd|' /C calc'!A0"), free_cell("two\nlines"), free_cell("2-propanol")
    ("'=cmd|' /C calc'!A0", 'two lines', '2-propanol')
    """
    shown = visible(" ".join(text.split()))
    return f"'{shown}" if _FORMULA.match(shown) else shown


def free_text(cell: str) -> str:
    """What `free_cell` made a cell of.

    Examples
    --------
    >>> free_text("'-carotene"), free_text("'t Hooft")
    ('-carotene', "'t Hooft")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def list_cell(values: Iterable[str]) -> str:
    r"""Several texts in one cell, with ``; `` between them.

    Examples
    --------
    >>> list_cell(["caffeine", "Coffein"]), list_cell(["a; b", "c"])
    ('caffeine; Coffein', 'a\\; b; c')
    """
    parts = (value.replace("\\", "\\\\").replace(_BETWEEN, "\\; ") for value in values)
    return free_cell(_BETWEEN.join(parts))


def list_texts(cell: str) -> list[str]:
    r"""What `list_cell` made a cell of.

    Examples
    --------
    >>> list_texts("caffeine; Coffein"), list_texts("a\\; b; c"), list_texts("")
    (['caffeine', 'Coffein'], ['a; b', 'c'], [])
    """
    texts = [match[1] for match in _PARTS.finditer(free_text(cell))]
    return [re.sub(r"\\(.)", r"\1", part) for part in texts if part]
