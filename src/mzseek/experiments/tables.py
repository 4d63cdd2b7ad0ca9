"""An experiment's table for people and for programs: Markdown, LaTeX, CSV."""

import csv
import io
from typing import Any

from mzseek.experiments.claims import Verdict
from mzseek.experiments.experiment import Column, Row
from mzseek.experiments.results import Results, in_units
from mzseek.names import visible

_TEX = str.maketrans({
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "τ": r"$\tau$", "γ": r"$\gamma$", "λ": r"$\lambda$", "σ": r"$\sigma$", "±": r"$\pm$",
    "–": "--", "−": "$-$", "√": r"$\surd$", "ε": r"$\varepsilon$", "…": r"\ldots{}",
})  # fmt: skip


def markdown(results: Results, verdicts: list[Verdict]) -> str:
    """The table with published numbers in brackets, footnotes, and what became of the claims."""
    experiment = results.experiment
    lines = [f"# {visible(experiment.title)}", "", *_about(results), ""]
    heads = [_head(column) for column in experiment.columns]
    lines += [_line(["", *heads]), _line(["---", *("---:" for _ in heads)])]
    for row in experiment.rows:
        cells = [_both(results, row, column) for column in experiment.columns]
        lines.append(_line([_name(row), *cells]))
    lines += ["", *(f"{note}  " for note in experiment.footnotes)]
    if verdicts:
        lines += ["", "| the paper says | here | because |", "|---|---|---|"]
        lines += [_line([v.claim.says, v.state, v.because]) for v in verdicts]
    if results.failed:
        lines += ["", f"{len(results.failed)} trials failed:", ""]
        lines += [f"- {visible(name)}: {visible(why)}" for name, why in results.failed.items()]
    return "\n".join(lines).rstrip() + "\n"


def latex(results: Results) -> str:
    """The measured table in booktabs' form, the published numbers in brackets."""
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
    """One line for each cell, in the units of the paper."""
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
            said = experiment.texts.get(row.key, {}).get(column.key)
            if cell is None and number is None and said is None:
                continue
            mean = None if cell is None else cell.text or in_units(cell.mean, column)
            sd = None if cell is None else in_units(cell.sd, column)
            chosen = "" if cell is None else " ".join(f"{k}={v:g}" for k, v in cell.chosen.items())
            writer.writerow(
                [experiment.name, results.scale, row.key, column.key, column.metric,
                 column.candidates or "", experiment.fold, column.unit, _plain(mean), _plain(sd),
                 0 if cell is None else len(cell.values), chosen, *(number or (said, None))]
            )  # fmt: skip
    return text.getvalue()


def as_rows(results: Results) -> dict[str, Any]:
    """The table as texts, for a page."""
    experiment = results.experiment
    rows = []
    for row in experiment.rows:
        cells = []
        for column in experiment.columns:
            cell = results.cell(row.key, column.key)
            here = "" if cell is None else cell.shown(column)
            cells.append({"here": here, "published": results.printed(row.key, column.key)})
        rows.append({"name": row.label, "control": row.is_control, "cells": cells})
    return {"heads": [_head(column) for column in experiment.columns], "rows": rows}


def tex(text: str) -> str:
    r"""A text as LaTeX shows it.

    Examples
    --------
    >>> print(tex("50 % ± 1_2"))
    50 \% $\pm$ 1\_2
    """
    return text.translate(_TEX)


def _about(results: Results) -> list[str]:
    experiment, facts = results.experiment, results.facts
    said = [visible(experiment.about)] if experiment.about else []
    where = "simulated data" if facts.get("simulated") else facts.get("spectra", "no data")
    said.append(
        f"The paper's {experiment.paper}. Measured on {visible(str(where))}, {experiment.fold} "
        f"fold, scale {results.scale}; in brackets the paper's numbers on MassSpecGym."
        if facts.get("spectra")
        else f"The paper's {experiment.paper}; in brackets as published."
    )
    if results.reduced:
        said.append(f"Reduced: {'; '.join(results.reduced)}.")
    return [line for paragraph in said for line in (paragraph, "")][:-1]


def _head(column: Column) -> str:
    unit = ", %" if column.unit == "%" else ""
    return f"{column.group + ' ' if column.group else ''}{column.label}{unit}"


def _name(row: Row) -> str:
    return f"control: {row.label}" if row.is_control else row.label


def _both(results: Results, row: Row, column: Column) -> str:
    """The measured number, and the published one in brackets."""
    cell, printed = results.cell(row.key, column.key), results.printed(row.key, column.key)
    here = cell.shown(column) if cell is not None else ""
    there = f"({printed})" if printed else ""
    return " ".join(filter(None, (here, there))) or "–"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |"


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
