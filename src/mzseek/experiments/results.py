"""Results of an experiment: numbers of runs, cells of the table, intervals of their contrasts."""

import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t

from mzseek.core.errors import ExperimentError
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.experiment import Column, Experiment, Number
from mzseek.io import atomic_file
from mzseek.io.manifest import read_object
from mzseek.runs.run import CHECKPOINTS, Run

DECODED = "decoded "  # before the name of a utility: the posterior decided for it, judged by it
RANDOM_PREFIX = "chance "  # before the name of a metric: what an order at random reaches
RESAMPLES = 200
LEVEL = 0.95


def resampled_means(
    values: npt.NDArray[np.floating], molecules: npt.NDArray[np.integer]
) -> list[float]:
    """Return means over molecules drawn with replacement, each with all its spectra.

    The draws depend on the number of molecules alone: two runs that were measured on the same ones
    have the same draws, so that differences of their means are paired.
    """
    _, group = np.unique(molecules, return_inverse=True)
    sizes = np.bincount(group)
    draws = np.random.default_rng(0).multinomial(
        len(sizes), np.full(len(sizes), 1 / len(sizes)), RESAMPLES
    )
    means = (draws @ np.bincount(group, values)) / (draws @ sizes)
    return [round(float(mean), 6) for mean in means]


def read_values_file(file: Path, run: Run) -> dict[str, Any] | None:
    """Read the numbers of a run; None if there are none, or the run was made anew meanwhile."""
    if not file.exists():
        return None
    content = read_object(file, ExperimentError, "delete it, and it is measured again")
    return dict(content) if content.get("run") == run.identity else None


def write_values_file(file: Path, run: Run, **numbers: Mapping[str, Any]) -> None:
    """Write the numbers of a run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        text = json.dumps({"run": run.identity, **numbers}, sort_keys=True)
        partial.write_text(text + "\n", "utf-8")


class Measured:
    """Numbers of one run, kept in a file: means over a fold, and means over resampled molecules."""

    def __init__(self, run: Run, file: Path) -> None:
        self._run, self._file = run, file
        content = read_values_file(file, run) or {}
        self._values: dict[str, float | None] = content.get("values", {})
        self._resampled: dict[str, list[float]] = content.get("resampled", {})

    def value(
        self, metric: str, candidates: str, fold: str, similarity: str | None = None
    ) -> float | None:
        """Return a metric's mean over a fold, from the checkpoint that was best on validation.

        None where the model has no such number.
        """
        key = "|".join((metric, candidates, fold, similarity or ""))
        if key not in self._values:
            self._measure(metric, candidates, fold, similarity)
            self._values.setdefault(key, None)  # also that there is no such number
            write_values_file(self._file, self._run, values=self._values, resampled=self._resampled)
        return self._values[key]

    def resampled(
        self, metric: str, candidates: str, fold: str, similarity: str | None = None
    ) -> list[float]:
        """Return the means of `value` over resampled molecules; empty where there are none."""
        return self._resampled.get("|".join((metric, candidates, fold, similarity or "")), [])

    def _measure(self, metric: str, candidates: str, fold: str, similarity: str | None) -> None:
        if self._run.baseline is None and not (self._run.folder / CHECKPOINTS).is_dir():
            raise ExperimentError(
                f"{self._run.folder}: {metric} was not measured before its weights were dropped; "
                "delete the folder, and it is trained again"
            )
        how = Scoring(fold, candidates, similarity)
        tail = "|".join((candidates, fold, similarity or ""))
        if metric.startswith(DECODED):
            decoded = posterior_report(self._run, how).decoded
            # One look at the posterior gives all utilities.
            utilities = dict.fromkeys((metric.removeprefix(DECODED), "tanimoto", "cosine"))
            of_spectra = {
                f"{DECODED}{name}": (decoded.values[name]["all"][name], decoded.molecule)
                for name in utilities
            }
            chances: Mapping[str, float] = {}
        else:
            scored = evaluate(self._run, how)
            of_spectra = {n: (values, scored.molecule[n]) for n, values in scored.values.items()}
            chances = scored.random_order
        for name, (values, molecules) in of_spectra.items():
            self._values[f"{name}|{tail}"] = float(values.mean())
            self._resampled[f"{name}|{tail}"] = resampled_means(values, molecules)
        for name, value in chances.items():
            self._values[f"{RANDOM_PREFIX}{name}|{tail}"] = value


@dataclass(frozen=True)
class Cell:
    """Measured values of a cell, one for each seed, as fractions where the column is in percent.

    ``chosen`` is what was tuned (learning rate, temperature); ``text`` stands instead of a number.
    ``resampled`` are means over seeds for resampled molecules. ``has_seeds`` unless nothing was
    trained, so that another seed would change nothing.
    """

    values: tuple[float, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    resampled: tuple[float, ...] = ()
    has_seeds: bool = True

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def sd(self) -> float | None:
        """Standard deviation over seeds (n - 1); None for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def shown(self, column: Column) -> str:
        """Return the number as text."""
        if self.text or not self.values:
            return self.text or "–"
        return shown_number(in_units(self.mean, column), in_units(self.sd, column), column)


@dataclass(frozen=True)
class Estimate:
    """A quantity and half the width of its interval; infinite where one seed tells no spread."""

    value: float
    half: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + self.half


def contrast(terms: Iterable[tuple[float, Cell]]) -> Estimate:
    """Estimate a sum of cells, each with a weight, with its 95 % interval.

    The interval is over seeds, by Welch's t with the deviation of each cell, and over molecules,
    resampled for all cells alike; the two parts are independent and add in squares.

    Examples
    --------
    >>> first, second = Cell((0.30, 0.32, 0.31)), Cell((0.20, 0.22, 0.21))
    >>> difference = contrast([(1, first), (-1, second)])
    >>> round(difference.value, 3), round(difference.half, 3)
    (0.1, 0.023)
    """
    terms = list(terms)
    value = sum(weight * cell.mean for weight, cell in terms)
    trained = [(weight, cell) for weight, cell in terms if cell.has_seeds and weight]
    if any(cell.sd is None for _, cell in trained):
        return Estimate(value, math.inf)
    sizes = np.array([len(cell.values) for _, cell in trained])
    variances = np.array([(w * (c.sd or 0.0)) ** 2 for w, c in trained]) / sizes
    over_seeds = 0.0
    if variances.any():
        freedom = variances.sum() ** 2 / (variances**2 / (sizes - 1)).sum()
        over_seeds = t.ppf((1 + LEVEL) / 2, freedom) * math.sqrt(variances.sum())
    over_molecules = 0.0
    if all(cell.resampled for _, cell in terms):
        means = np.sum([weight * np.array(cell.resampled) for weight, cell in terms], axis=0)
        over_molecules = norm.ppf((1 + LEVEL) / 2) * float(np.std(means, ddof=1))
    return Estimate(value, math.hypot(over_seeds, over_molecules))


@dataclass(frozen=True)
class Results:
    """A table that was measured.

    ``experiment`` is as the scale has it, ``cells`` are by row and column, ``reduced`` says what
    the scale leaves out, ``failed`` what has failed and why, ``not_run`` which rows could not be
    run and what they need, ``metadata`` has data, versions and time, and ``series`` is what is
    drawn beside the table: curves, distributions.
    """

    experiment: Experiment
    scale: str
    cells: Mapping[str, Mapping[str, Cell]]
    reduced: list[str] = field(default_factory=list)
    failed: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Any] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)

    def cell(self, row: str, column: str) -> Cell | None:
        """Return what was measured there, if anything."""
        cell = self.cells.get(row, {}).get(column)
        return cell if cell is not None and (cell.values or cell.text) else None

    def published(self, row: str, column: str) -> Number | None:
        """Return the number that the paper prints there, if any."""
        printed = self.experiment.published.get(row, {}).get(column)
        return None if isinstance(printed, str) else printed

    def printed(self, row: str, column: str) -> str:
        """Return what the paper prints there as text; empty if there is nothing."""
        printed = self.experiment.published.get(row, {}).get(column)
        if printed is None or isinstance(printed, str):
            return printed or ""
        mean, sd = printed
        return shown_number(mean, sd, self.experiment.column(column))

    def not_run_notes(self) -> list[str]:
        """List the rows that were not run, and what they need."""
        labels: dict[str, list[str]] = {}
        for row in self.experiment.rows:
            if row.key in self.not_run:
                labels.setdefault(self.not_run[row.key], []).append(row.label)
        return [f"not run: {needs}: {', '.join(rows)}" for needs, rows in labels.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
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
            "not_run": dict(self.not_run),
            "series": dict(self.series),
            **self.metadata,
        }


def in_units(value: float | None, column: Column) -> float | None:
    """Convert a value to the unit of its column."""
    return value if value is None or column.unit != "%" else 100 * value


def shown_number(mean: float | None, sd: float | None, column: Column) -> str:
    """Format a mean with its standard deviation."""
    if mean is None or math.isnan(mean):
        return "–"
    digits = 2 if column.unit == "%" else 1 if abs(mean) >= 10 else 3
    deviation = "" if sd is None else f" ± {sd:.{digits}f}"
    return f"{mean:.{digits}f}{deviation}"


AS_PUBLISHED, HIGHER, LOWER = "as published", "higher", "lower"


def against_published(results: Results) -> dict[tuple[str, str], str]:
    """Compare each cell with the published mean ± sd, by row and column.

    A cell is as published where the difference is within the 95 % interval of Welch's t over seeds;
    a single seed is taken to vary as the published ones do. A number that is printed without a
    deviation is met if it is the same in the printed digits, or within the interval over seeds.
    """
    experiment = results.experiment
    compared = {}
    for row in experiment.rows:
        for column in experiment.columns:
            cell_key = row.key, column.key
            number, cell = results.published(*cell_key), results.cell(*cell_key)
            if number is None or cell is None or not cell.values:
                continue
            mean, sd = number
            here = in_units(cell.mean, column) or 0.0
            deviation, count = in_units(cell.sd, column), len(cell.values)
            parts = [
                (
                    (sd if deviation is None else deviation) or 0.0,
                    count if deviation is not None else 1,
                )
            ]
            parts += [(sd, experiment.seeds)] if sd is not None else []
            variances = [part**2 / n for part, n in parts]
            freedoms = [max(n - 1, 0) or experiment.seeds - 1 for _, n in parts]
            half = 0.5 * 10.0 ** -len(str(mean).partition(".")[2])
            if any(variances):
                pairs = zip(variances, freedoms, strict=True)
                freedom = sum(variances) ** 2 / sum(v**2 / max(f, 1) for v, f in pairs)
                half += t.ppf((1 + LEVEL) / 2, freedom) * math.sqrt(sum(variances))
            away = here - mean
            compared[cell_key] = (
                AS_PUBLISHED if abs(away) <= half + 1e-12 else HIGHER if away > 0 else LOWER
            )
    return compared
