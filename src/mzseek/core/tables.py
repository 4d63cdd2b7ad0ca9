"""Result tables: as text, as HTML in a notebook, as a data frame.

Values are fractions; people see percent where a column says so.
"""

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mzseek.core.text import visible

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
