"""What an experiment has given: a number, or several of as many seeds, for each cell."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mzseek.experiments.experiment import Column, Experiment, Number


@dataclass(frozen=True)
class Cell:
    """Measured values of a cell, one for each seed, as fractions where the column is in percent.

    Attributes
    ----------
    values : tuple of float
    chosen : mapping
        What was tuned, and chosen: learning rate, temperature.
    text : str
        Instead of a number, such as bits.
    """

    values: tuple[float, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def mean(self) -> float:
        """Over seeds."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def sd(self) -> float | None:
        """Standard deviation over seeds (n - 1); None for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def shown(self, column: Column) -> str:
        """As people read it."""
        if self.text or not self.values:
            return self.text or "–"
        return shown_number(in_units(self.mean, column), in_units(self.sd, column), column)


@dataclass(frozen=True)
class Results:
    """A table that was measured.

    Attributes
    ----------
    experiment : Experiment
        As the scale has it.
    scale : str
    cells : mapping of row to mapping of column to Cell
    reduced : list of str
        What the scale leaves out.
    failed : mapping of str to str
        Trials that have failed, and why.
    facts : mapping
        Data, versions, time.
    series : mapping
        What is drawn beside the table: curves, distributions.
    """

    experiment: Experiment
    scale: str
    cells: Mapping[str, Mapping[str, Cell]]
    reduced: list[str] = field(default_factory=list)
    failed: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, row: str, column: str) -> Cell | None:
        """What was measured there, if anything."""
        found = self.cells.get(row, {}).get(column)
        return found if found is not None and (found.values or found.text) else None

    def published(self, row: str, column: str) -> Number | None:
        """What the paper prints there, if anything."""
        return self.experiment.published.get(row, {}).get(column)

    def printed(self, row: str, column: str) -> str:
        """The same as people read it: a number, or a text such as bits; empty if there is none."""
        text, number = self.experiment.texts.get(row, {}).get(column), self.published(row, column)
        if text is not None or number is None:
            return text or ""
        return shown_number(*number, self.experiment.column(column))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "reduced": self.reduced,
            "fold": self.experiment.fold,
            "cells": {
                row: {
                    column: {"values": list(cell.values), "chosen": dict(cell.chosen)}
                    | ({"text": cell.text} if cell.text else {})
                    for column, cell in cells.items()
                }
                for row, cells in self.cells.items()
            },
            "failed": dict(self.failed),
            "series": dict(self.series),
            **self.facts,
        }


def as_published(experiment: Experiment) -> Results:
    """The table as the paper prints it, in the same form."""
    cells: dict[str, dict[str, Cell]] = {}
    for row, values in experiment.published.items():
        cells[row] = {}
        for key, (mean, _) in values.items():
            percent = experiment.column(key).unit == "%"
            cells[row][key] = Cell((mean / 100 if percent else mean,))
    for row, said in experiment.texts.items():
        cells.setdefault(row, {}).update({key: Cell(text=text) for key, text in said.items()})
    return Results(experiment, "published", cells)


def in_units(value: float | None, column: Column) -> float | None:
    """A value as its column is read."""
    return value if value is None or column.unit != "%" else 100 * value


def shown_number(mean: float | None, sd: float | None, column: Column) -> str:
    """A mean with its standard deviation, as printed."""
    if mean is None or math.isnan(mean):
        return "–"
    digits = 2 if column.unit == "%" else 1 if abs(mean) >= 10 else 3
    spread = "" if sd is None else f" ± {sd:.{digits}f}"
    return f"{mean:.{digits}f}{spread}"
