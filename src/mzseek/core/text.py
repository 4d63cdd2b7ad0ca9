"""Text for people: safe to print, short, with distinct labels; tables as text and HTML."""

import html
import itertools
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Control characters but the tab, line ends, marks of text direction, surrogates (bytes of a file's
# name that are no UTF-8), and noncharacters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufdd0-\ufdef\ufffe\uffff]"
)
# Letters and symbols without a glyph.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def visible(text: object) -> str:
    r"""Replace characters that would control a terminal or break a file by a mark.

    Examples
    --------
    >>> visible("run\x1b[2J")
    'run�[2J'
    """
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text))


def shorten(text: str, limit: int = 60) -> str:
    """Quote a text on one line, at most so long."""
    text = " ".join(text[: 10 * limit].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pluralize(number: int, singular: str, plural: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> pluralize(1, "peak was", "peaks were"), pluralize(1200, "peak was", "peaks were")
    ('1 peak was', '1,200 peaks were')
    """
    return f"{number:,} {singular if number == 1 else plural}"


def distinct_labels(folders: Sequence[Path], taken: Collection[str] = ()) -> list[str]:
    """Label each folder by its name, or by as much of its path as tells it from the others.

    Labels are safe to print, and different, also to the eye, for folders that resolve to different
    paths; those in ``taken`` are not used.

    Examples
    --------
    >>> distinct_labels([Path("/a/run"), Path("/b/run"), Path("/b/other")])
    ['a/run', 'b/run', 'other']
    """
    resolved = [Path(folder).resolve() for folder in folders]
    depth = dict.fromkeys(resolved, 1)
    reserved = {_look(label) for label in taken}
    while True:
        labels = {folder: _ending(folder, parts) for folder, parts in depth.items()}
        seen = Counter(_look(label) for label in labels.values())
        ambiguous = [
            folder
            for folder, label in labels.items()
            if seen[_look(label)] > 1 or _look(label) in reserved
        ]
        deeper = [folder for folder in ambiguous if depth[folder] < len(folder.parts)]
        if not deeper:
            break
        for folder in deeper:
            depth[folder] += 1
    used = reserved | {_look(label) for label in labels.values()}
    for folder in ambiguous:  # whole paths that differ in invisible characters only
        numbered = (f"{labels[folder]} ({number})" for number in itertools.count(1))
        labels[folder] = next(label for label in numbered if _look(label) not in used)
        used.add(_look(labels[folder]))
    return [labels[folder] for folder in resolved]


def _ending(folder: Path, parts: int) -> str:
    """Return the last parts of a path; in quotes where nothing of it is visible."""
    if parts >= len(folder.parts):
        text = visible(folder.as_posix())
    else:
        text = visible("/".join(folder.parts[-parts:]))
    return text if _look(text) else f'"{text}"'


def _look(text: str) -> str:
    """Return what a reader sees of a text: no zero-width characters, single spaces."""
    seen = (c for c in text if c not in _BLANK and unicodedata.category(c) != "Cf")
    return " ".join("".join(seen).split())


_MAX_SHOWN = 60  # rows of a page or a terminal; a data frame has all


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with a title above.

    Values are as measured; ``percent`` names the columns of fractions that people read in percent.

    Examples
    --------
    >>> print(Table({"metric": ["HR@1"], "value": [0.25]}, percent=frozenset({"value"})))
    metric  value, %
    HR@1        25.0
    """

    columns: Mapping[str, Sequence[Any]]
    title: str = ""
    percent: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over rows, each as a dict."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_frame(self) -> Any:
        """Return a pandas data frame of the values as they are."""
        import pandas  # takes long to load

        return pandas.DataFrame(dict(self.columns))

    def __str__(self) -> str:
        cells = [self._heads(), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numbers = [_are_numbers(values) for values in self.columns.values()]
        lines = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, numbers, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*([self.title] if self.title else []), *lines, *self._rest()])

    def _repr_html_(self) -> str:
        numbers = [_are_numbers(values) for values in self.columns.values()]
        styles = ["text-align:right" if number else "text-align:left" for number in numbers]
        head = _row("th", self._heads(), styles)
        body = "".join(_row("td", row, styles) for row in self._cells())
        title = f"<caption>{html.escape(visible(self.title))}</caption>" if self.title else ""
        rest = "".join(f"<p>{html.escape(line)}</p>" for line in self._rest())
        return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>{rest}"

    def _heads(self) -> list[str]:
        return [f"{name}, %" if name in self.percent else name for name in self.columns]

    def _cells(self) -> list[list[str]]:
        shown = [
            [_text(value, name in self.percent) for value in values[:_MAX_SHOWN]]
            for name, values in self.columns.items()
        ]
        return [list(row) for row in zip(*shown, strict=True)]

    def _rest(self) -> list[str]:
        more = len(self) - _MAX_SHOWN
        return [f"{more:,} more rows: to_frame() has them all"] if more > 0 else []


class Tabular(ABC):
    """Base of results that are shown as a table."""

    @abstractmethod
    def to_table(self) -> Table:
        """Return the result as a table."""

    def to_frame(self) -> Any:
        """Return the result as a pandas data frame."""
        return self.to_table().to_frame()

    def _repr_html_(self) -> str:
        return self.to_table()._repr_html_()


def _are_numbers(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and not any(isinstance(v, bool | str) for v in present)


def _text(value: Any, percent: bool) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if percent:
        return f"{100 * value:.1f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) >= 1e-3 else f"{value:.3g}"
    return visible(str(value))


def _row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    inside = "".join(
        f'<{tag} style="{style}">{html.escape(cell)}</{tag}>'
        for cell, style in zip(cells, styles, strict=True)
    )
    return f"<tr>{inside}</tr>"
