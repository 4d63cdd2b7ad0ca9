"""Results of an experiment, its claims, and its table as Markdown, LaTeX and CSV."""

import contextlib
import csv
import io
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from mzseek.core.errors import ExperimentError
from mzseek.core.registry import choose
from mzseek.core.text import visible
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.experiments.experiment import Claim, Column, Experiment, Number, Row
from mzseek.io import atomic_file
from mzseek.io.manifest import read_object
from mzseek.runs.run import CHECKPOINTS, Run

DECODED = "decoded "  # before the name of a utility: the posterior decided for it, judged by it
RANDOM_PREFIX = "chance "  # before the name of a metric: what an order at random reaches


def read_values_file(file: Path, run: Run) -> dict[str, Any] | None:
    """Read the values of a run; None if there are none, or the run was made anew meanwhile."""
    if not file.exists():
        return None
    content = read_object(file, ExperimentError, "delete it, and it is measured again")
    return dict(content["values"]) if content.get("run") == run.identity else None


def write_values_file(file: Path, run: Run, values: Mapping[str, Any]) -> None:
    """Write the values of a run."""
    content = {"run": run.identity, "values": values}
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf-8")


class Measured:
    """Numbers of one run, kept in a file."""

    def __init__(self, run: Run, file: Path) -> None:
        self._run, self._file = run, file
        self._values: dict[str, float | None] = read_values_file(file, run) or {}

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
            write_values_file(self._file, self._run, self._values)
        return self._values[key]

    def _measure(self, metric: str, candidates: str, fold: str, similarity: str | None) -> None:
        if self._run.baseline is None and not (self._run.folder / CHECKPOINTS).is_dir():
            raise ExperimentError(
                f"{self._run.folder}: {metric} was not measured before its weights were dropped; "
                "delete the folder, and it is trained again"
            )
        how = Scoring(fold, candidates, similarity)
        if metric.startswith(DECODED):
            utility = metric.removeprefix(DECODED)
            report = posterior_report(self._run, how)
            # One look at the posterior gives all utilities, and those of who has not seen it.
            values = {
                f"{DECODED}{name}": report.decoded.interval(name, name).mean
                for name in dict.fromkeys((utility, "tanimoto", "cosine"))
            }
        else:
            scored = evaluate(self._run, how)
            values = {name: float(of_query.mean()) for name, of_query in scored.values.items()}
            values |= {
                f"{RANDOM_PREFIX}{name}": value for name, value in scored.random_order.items()
            }
        tail = "|".join((candidates, fold, similarity or ""))
        self._values |= {f"{name}|{tail}": value for name, value in values.items()}


@dataclass(frozen=True)
class Cell:
    """Measured values of a cell, one for each seed, as fractions where the column is in percent.

    ``chosen`` is what was tuned (learning rate, temperature); ``text`` stands instead of a number.
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
        """Format it."""
        if self.text or not self.values:
            return self.text or "–"
        return shown_number(in_units(self.mean, column), in_units(self.sd, column), column)


@dataclass(frozen=True)
class Results:
    """A table that was measured.

    ``experiment`` is as the scale has it, ``cells`` are by row and column, ``reduced`` says what
    the scale leaves out, ``failed`` which trials have failed and why, ``not_run`` which rows could
    not be run and what they need, ``metadata`` has data, versions and time, and ``series`` is what
    is drawn beside the table: curves, distributions.
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
        return self.experiment.published.get(row, {}).get(column)

    def printed(self, row: str, column: str) -> str:
        """Return what the paper prints there as text; empty if there is nothing."""
        text, number = self.experiment.texts.get(row, {}).get(column), self.published(row, column)
        if text is not None or number is None:
            return text or ""
        return shown_number(*number, self.experiment.column(column))

    def not_run_notes(self) -> list[str]:
        """Say which rows were not run, and what they need."""
        labels: dict[str, list[str]] = {}
        for row in self.experiment.rows:
            if row.key in self.not_run:
                labels.setdefault(self.not_run[row.key], []).append(row.label)
        return [f"not run: {needs}: {', '.join(rows)}" for needs, rows in labels.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
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


HOLDS, FAILS, UNTESTED = "holds here", "does not hold here", "not tested"
Others = Mapping[str, Results]
Outcome = tuple[bool, str]  # whether a claim holds, and the numbers that decide it


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds (`HOLDS`, `FAILS` or `UNTESTED`), and because of which numbers."""

    claim: Claim
    state: str
    because: str


class Untested(Exception):
    """A number that a claim is about is not there."""


def verdicts(
    results: Results, others: Others | None = None, *, tested: bool = True
) -> list[Verdict]:
    """Judge an experiment's claims by its results.

    ``others`` are results of other experiments, which claims across tables need; unless ``tested``,
    the numbers mean nothing, and no claim is said to hold or not.
    """
    judged = []
    for claim in results.experiment.claims:
        where = f"{results.experiment.name}: claim"
        check = choose(CLAIM_CHECKS, claim.kind, where, ExperimentError)
        try:
            holds, because = check(results, others or {}, **claim.details)
        except Untested as missing:
            judged.append(Verdict(claim, UNTESTED, str(missing)))
        except TypeError as error:
            raise ExperimentError(f"{where} {claim.says!r}: {error}") from error
        else:
            state = (HOLDS if holds else FAILS) if tested else UNTESTED
            note = "" if tested else f"; at scale {results.scale} it says nothing"
            judged.append(Verdict(claim, state, because + note))
    return judged


def _best(
    results: Results, _: Others, *, column: str, row: Any, among: Sequence[Any] | None = None,
    lowest: bool = False,
) -> Outcome:  # fmt: skip
    """A row, or one of several, has the highest mean of a column, or the lowest."""
    winners = _keys(row)
    rows = among or [
        other.key
        for other in results.experiment.rows
        if not other.control and not other.literature and results.cell(other.key, column)
    ]
    means = {key: _mean(results, key, column) for key in (*map(str, rows), *winners)}
    if len(means) < 2:
        raise Untested("there is nothing to compare with")
    order = sorted(means, key=lambda key: means[key] if lowest else -means[key])
    if means[order[0]] == means[order[1]]:
        raise Untested(f"{order[0]} and {order[1]} are equal")
    shown = ", ".join(f"{key} {_text(results, column, means[key])}" for key in order[:3])
    return order[0] in winners, shown


def _above(results: Results, _: Others, *, column: str, row: Any, than: Any) -> Outcome:
    """One or several rows are above others in a column."""
    high = {key: _mean(results, key, column) for key in _keys(row)}
    low = {key: _mean(results, key, column) for key in _keys(than)}
    worst, best = min(high, key=lambda k: high[k]), max(low, key=lambda k: low[k])
    shown = f"{worst} {_text(results, column, high[worst])}"
    return high[worst] > low[best], f"{shown}, {best} {_text(results, column, low[best])}"


def _opposed(
    results: Results, _: Others, *, columns: Sequence[str], rows: Sequence[Any] | None = None
) -> Outcome:
    """Over rows, the one column falls as the other rises."""
    rows = rows or [row.key for row in results.experiment.rows if not row.control]
    pairs = _measured_rows(results, columns, rows).values()
    return _correlation([x for x, _ in pairs], [y for _, y in pairs], -1)


def _rising(results: Results, _: Others, *, column: str, rows: Sequence[Any]) -> Outcome:
    """A column rises along rows."""
    values = [value for (value,) in _measured_rows(results, [column], rows).values()]
    holds, shown = _correlation(list(range(len(values))), values, 1)
    return holds, f"{', '.join(_text(results, column, value) for value in values)}; {shown}"


def _related(
    results: Results, others: Others, *, x: Any, y: Any, sign: int, rows: Sequence[Any]
) -> Outcome:
    """Over rows, one quantity goes with another; either may be a difference or another table's."""
    pairs = []
    for row in rows:
        with contextlib.suppress(Untested):
            pairs.append((_quantity(results, others, x, row), _quantity(results, others, y, row)))
    return _correlation([a for a, _ in pairs], [b for _, b in pairs], sign)


def _equal(results: Results, _: Others, *, column: str) -> Outcome:
    """Every row has what the paper prints."""
    wrong = []
    experiment = results.experiment
    for row in (*experiment.texts, *experiment.published):
        text, number = experiment.texts.get(row, {}).get(column), results.published(row, column)
        if text is None and number is None:
            continue
        cell = results.cell(row, column)
        if cell is None:
            raise Untested(f"{row} was not measured")
        here = in_units(cell.mean, experiment.column(column)) or 0.0
        if text is not None and cell.text != text:
            wrong.append(f"{row}: {cell.text}, published {text}")
        if text is None and number is not None and abs(here - number[0]) > 1e-9:
            wrong.append(f"{row}: {here:g}, published {number[0]:g}")
    return not wrong, "; ".join(dict.fromkeys(wrong)) or "all are equal"


def _never_exceeds(results: Results, _: Others, *, column: str, bound: str) -> Outcome:
    """In every row, a column is at most another one."""
    pairs = _some_rows(results, [column, bound])
    tight = max(pairs, key=lambda key: pairs[key][0] - pairs[key][1])
    value, limit = pairs[tight]
    shown = f"{_text(results, column, value)}, bound {_text(results, bound, limit)}"
    return value <= limit + 1e-9, f"closest in {tight}: {shown}"


def _within(
    results: Results, _: Others, *, column: str, least: float | None = None,
    most: float | None = None, rows: Sequence[Any] | None = None,
) -> Outcome:  # fmt: skip
    """In every row, or in those named, a column is at least and at most so much."""
    means = {key: value for key, (value,) in _some_rows(results, [column], rows).items()}
    low, high = (pick(means, key=lambda key: means[key]) for pick in (min, max))
    shown = f"from {_text(results, column, means[low])} ({low})"
    shown += f" to {_text(results, column, means[high])} ({high})"
    holds = (least is None or means[low] >= least) and (most is None or means[high] <= most)
    return holds, shown


def _beside(
    results: Results, _: Others, *, rows: Mapping[Any, Any], by: float, at_least: bool = False
) -> Outcome:
    """In every column, rows have the values of others, or at least these."""
    worst, shown = -1.0, ""
    for row, other in rows.items():
        for column in results.experiment.columns:
            here = _mean(results, str(row), column.key)
            there = _mean(results, str(other), column.key)
            away = there - here if at_least else abs(there - here)
            if away > worst:
                worst = away
                shown = f"{row}, {column.label}: {here:.6g}, {other} {there:.6g}"
    return worst <= by, f"farthest in {shown}"


def _differ(results: Results, _: Others, *, columns: Sequence[str]) -> Outcome:
    """In some row, two columns are not the same."""
    x, y = columns
    pairs = _some_rows(results, columns)
    shown = ", ".join(
        f"{row}: {_text(results, x, a)} and {_text(results, y, b)}" for row, (a, b) in pairs.items()
    )
    return any(a != b for a, b in pairs.values()), shown


CLAIM_CHECKS: dict[str, Callable[..., Outcome]] = {
    "best": _best,
    "above": _above,
    "opposed": _opposed,
    "rising": _rising,
    "related": _related,
    "equal": _equal,
    "never_exceeds": _never_exceeds,
    "within": _within,
    "beside": _beside,
    "differ": _differ,
}


def _keys(rows: Any) -> list[str]:
    return [str(row) for row in (rows if isinstance(rows, list) else [rows])]


def _measured_rows(
    results: Results, columns: Sequence[str], rows: Sequence[Any] | None = None
) -> dict[str, tuple[float, ...]]:
    """Return the means of columns in the rows (all by default) that have them all."""
    keys = map(str, rows or [row.key for row in results.experiment.rows])
    return {
        key: tuple(_mean(results, key, column) for column in columns)
        for key in keys
        if all(results.cell(key, column) for column in columns)
    }


def _some_rows(
    results: Results, columns: Sequence[str], rows: Sequence[Any] | None = None
) -> dict[str, tuple[float, ...]]:
    means = _measured_rows(results, columns, rows)
    if not means:
        raise Untested(f"{' and '.join(columns)}: not measured")
    return means


def _quantity(results: Results, others: Others, what: Any, row: Any) -> float:
    if isinstance(what, str):
        return _mean(results, str(row), what)
    if "minus" in what:
        first, second = what["minus"]
        return _mean(results, str(row), first) - _mean(results, str(row), second)
    other = others.get(what["experiment"])
    if other is None:
        raise Untested(f"{what['experiment']} was not run")
    return _mean(other, str(row), what["column"])


def _correlation(x: Sequence[float], y: Sequence[float], sign: int) -> Outcome:
    if len(x) < 3:
        raise Untested(f"{len(x)} points, expected at least 3")
    if len(set(x)) < 2 or len(set(y)) < 2:
        raise Untested("all are equal")
    correlation = float(spearmanr(x, y).statistic)
    return sign * correlation > 0, f"rank correlation {correlation:+.2f} over {len(x)}"


def _mean(results: Results, row: str, column: str) -> float:
    cell = results.cell(row, column)
    if cell is None and row in results.not_run:
        raise Untested(f"{row} was not run: {results.not_run[row]}")
    if cell is None:
        raise Untested(f"{row} has no {column} here")
    return cell.mean


def _text(results: Results, column: str, value: float) -> str:
    shown = in_units(value, results.experiment.column(column)) or 0.0
    return f"{shown:.1f}" if results.experiment.column(column).unit == "%" else f"{shown:.3g}"


_TEX = str.maketrans({
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "τ": r"$\tau$", "γ": r"$\gamma$", "λ": r"$\lambda$", "σ": r"$\sigma$", "±": r"$\pm$",
    "–": "--", "−": "$-$", "√": r"$\surd$", "ε": r"$\varepsilon$", "…": r"\ldots{}",
})  # fmt: skip


def markdown(results: Results, verdicts: list[Verdict]) -> str:
    """Write the table with published numbers in brackets, footnotes and verdicts."""
    experiment = results.experiment
    lines = [f"# {visible(experiment.title)}", "", *_about(results), ""]
    heads = [_head(column) for column in experiment.columns]
    lines += [_line(["", *heads]), _line(["---", *("---:" for _ in heads)])]
    for row in experiment.rows:
        cells = [_both(results, row, column) for column in experiment.columns]
        lines.append(_line([_name(row), *cells]))
    lines += ["", *(f"{note}  " for note in (*results.not_run_notes(), *experiment.footnotes))]
    if verdicts:
        lines += ["", "| the paper says | here | because |", "|---|---|---|"]
        lines += [_line([v.claim.says, v.state, v.because]) for v in verdicts]
    if results.failed:
        lines += ["", f"{len(results.failed)} trials failed:", ""]
        lines += [f"- {visible(name)}: {visible(why)}" for name, why in results.failed.items()]
    return "\n".join(lines).rstrip() + "\n"


def latex(results: Results) -> str:
    """Write the table for booktabs, the published numbers in brackets."""
    experiment = results.experiment
    columns = experiment.columns
    heads = " & ".join(tex(_head(column)) for column in columns)
    lines = [
        f"% {experiment.name}: {experiment.paper}; scale {results.scale}",
        rf"\begin{{tabular}}{{l{'c' * len(columns)}}}", r"\toprule", rf" & {heads} \\", r"\midrule",
    ]  # fmt: skip
    for row in experiment.rows:
        cells = [tex(_both(results, row, column)) for column in columns]
        lines.append(" & ".join([tex(_name(row)), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def comma_separated(results: Results) -> str:
    """Write one line for each cell, in the units of the paper."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["experiment", "scale", "row", "column", "metric", "candidates", "fold", "unit", "mean",
         "sd", "seeds", "chosen", "published_mean", "published_sd"]
    )  # fmt: skip
    experiment = results.experiment
    for row in experiment.rows:
        for column in experiment.columns:
            cell, number = (
                results.cell(row.key, column.key),
                results.published(row.key, column.key),
            )
            published = experiment.texts.get(row.key, {}).get(column.key)
            if cell is None and number is None and published is None:
                continue
            mean = None if cell is None else cell.text or in_units(cell.mean, column)
            sd = None if cell is None else in_units(cell.sd, column)
            chosen = "" if cell is None else " ".join(f"{k}={v:g}" for k, v in cell.chosen.items())
            writer.writerow(
                [experiment.name, results.scale, row.key, column.key, column.metric,
                 column.candidates or "", experiment.fold, column.unit, _plain(mean), _plain(sd),
                 0 if cell is None else len(cell.values), chosen, *(number or (published, None))]
            )  # fmt: skip
    return text.getvalue()


def as_rows(results: Results) -> dict[str, Any]:
    """Return the table as texts, for a page."""
    experiment = results.experiment
    rows = []
    for row in experiment.rows:
        cells = []
        for column in experiment.columns:
            here = _here(results, row, column)
            cells.append({"here": here, "published": results.printed(row.key, column.key)})
        rows.append({"name": row.label, "control": row.control, "cells": cells})
    return {"heads": [_head(column) for column in experiment.columns], "rows": rows}


def tex(text: str) -> str:
    r"""Escape a text for LaTeX.

    Examples
    --------
    >>> print(tex("50 % ± 1_2"))
    50 \% $\pm$ 1\_2
    """
    return text.translate(_TEX)


def _about(results: Results) -> list[str]:
    experiment, metadata = results.experiment, results.metadata
    paragraphs = [visible(experiment.about)] if experiment.about else []
    where = metadata.get("spectra", "no data")
    paragraphs.append(
        f"The paper's {experiment.paper}. Measured on {visible(str(where))}, {experiment.fold} "
        f"fold, scale {results.scale}; in brackets the paper's numbers on MassSpecGym."
        if metadata.get("spectra")
        else f"The paper's {experiment.paper}; in brackets as published."
    )
    if results.reduced:
        paragraphs.append(f"Reduced: {'; '.join(results.reduced)}.")
    return [line for paragraph in paragraphs for line in (paragraph, "")][:-1]


def _head(column: Column) -> str:
    unit = ", %" if column.unit == "%" else ""
    return f"{column.group + ' ' if column.group else ''}{column.label}{unit}"


def _name(row: Row) -> str:
    return f"control: {row.label}" if row.control else row.label


def _here(results: Results, row: Row, column: Column) -> str:
    """The measured number, or that the row was not run."""
    cell = results.cell(row.key, column.key)
    if cell is None:
        return "not run" if row.key in results.not_run else ""
    return cell.shown(column)


def _both(results: Results, row: Row, column: Column) -> str:
    """The measured number, and the published one in brackets."""
    here, printed = _here(results, row, column), results.printed(row.key, column.key)
    there = f"({printed})" if printed else ""
    return " ".join(filter(None, (here, there))) or "–"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |"


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
