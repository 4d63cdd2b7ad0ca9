"""Metrics of runs side by side, in percent with their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mzseek.cli.output import new_table, plain, show


@dataclass(frozen=True)
class Column:
    """A run, or the gain of one over another.

    Attributes
    ----------
    head : str
    intervals : mapping of str to Interval
        By metric; a dash stands where one has none.
    signed : bool
        Whether values have their sign, as differences do.
    """

    head: str
    intervals: Mapping[str, Any]
    signed: bool = False


CHANCE = "random"


def show_scores(
    metrics: Sequence[str], columns: Sequence[Column], chance: Mapping[str, float]
) -> None:
    """A row for each metric: the columns, and what an order at random reaches."""
    from mzseek.metrics import METRICS

    table = new_table()
    table.add_column("%", no_wrap=True)
    for column in columns:
        table.add_column(plain(column.head), justify="right", overflow="fold")
    table.add_column(CHANCE, justify="right")
    for metric in metrics:
        cells = [_cell(column.intervals.get(metric), column.signed) for column in columns]
        table.add_row(METRICS[metric].label, *cells, _percent(chance.get(metric)))
    show(table)


def _cell(interval: Any, signed: bool) -> str:
    if interval is None:
        return "–"
    sign = "+" if signed else ""
    return (
        f"{100 * interval.mean:{sign}.1f} "
        f"[dim]({100 * interval.low:{sign}.1f}…{100 * interval.high:{sign}.1f})[/dim]"
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
