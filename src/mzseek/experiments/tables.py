"""The table of an experiment as Markdown, LaTeX, CSV and rows of a page."""

import csv
import io
from collections import Counter
from typing import Any

from mzseek.core.text import visible
from mzseek.experiments.claims import Verdict
from mzseek.experiments.experiment import Column, Row
from mzseek.experiments.results import AS_PUBLISHED, Results, against_published, in_units

_TEX = str.maketrans({
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "τ": r"$\tau$", "γ": r"$\gamma$", "λ": r"$\lambda$", "σ": r"$\sigma$", "±": r"$\pm$",
    "–": "--", "−": "$-$", "√": r"$\surd$", "ε": r"$\varepsilon$", "…": r"\ldots{}",
})  # fmt: skip
_MIN_RANKED = 3  # rows of a column from which the best and the second are marked
SAYS, ADDED = "the paper says", "also measured, not in the paper"


def markdown(results: Results, verdicts: list[Verdict]) -> str:
    """Write the table with published numbers in brackets, footnotes and verdicts."""
    experiment = results.experiment
    lines = [f"# {visible(experiment.title)}", "", *_about(results), ""]
    heads = [head(column) for column in experiment.columns]
    lines += [_line(["", *heads]), _line(["---", *("---:" for _ in heads)])]
    marks = {1: ("**", "**"), 2: ("<u>", "</u>")}
    lines += [_line([_name(row), *cells]) for row, cells in _cells(results, marks)]
    notes = (*results.not_run_notes(), *experiment.footnotes, *comparison(results))
    lines += ["", *(f"{note}  " for note in notes)]
    for by_paper, title in ((True, SAYS), (False, ADDED)):
        judged = [v for v in verdicts if v.claim.by_paper == by_paper]
        if judged:
            lines += ["", f"| {title} | here | because |", "|---|---|---|"]
            lines += [_line([v.claim.says, v.state, v.because]) for v in judged]
    if results.failed:
        lines += ["", f"{len(results.failed)} trials failed:", ""]
        lines += [f"- {visible(name)}: {visible(why)}" for name, why in results.failed.items()]
    return "\n".join(lines).rstrip() + "\n"


def latex(results: Results) -> str:
    """Write the table for booktabs, the published numbers in brackets."""
    experiment = results.experiment
    heads = " & ".join(tex(head(column)) for column in experiment.columns)
    lines = [
        f"% {experiment.name}: {experiment.paper}; scale {results.scale}",
        rf"\begin{{tabular}}{{l{'c' * len(experiment.columns)}}}",
        r"\toprule", rf" & {heads} \\", r"\midrule",
    ]  # fmt: skip
    marks = {1: (r"\textbf{", "}"), 2: (r"\underline{", "}")}
    for row, cells in _cells(results, marks, tex):
        lines.append(" & ".join([tex(_name(row)), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def comma_separated(results: Results) -> str:
    """Write one line for each cell, in the units of the paper."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["experiment", "scale", "row", "column", "metric", "candidates", "fold", "unit", "mean",
         "sd", "seeds", "chosen", "published_mean", "published_sd", "against_published"]
    )  # fmt: skip
    experiment, compared = results.experiment, _compared(results)
    for row in experiment.rows:
        for column in experiment.columns:
            cell_key = row.key, column.key
            cell, number = results.cell(*cell_key), results.published(*cell_key)
            printed = results.printed(*cell_key)
            if cell is None and not printed:
                continue
            mean = None if cell is None else cell.text or in_units(cell.mean, column)
            sd = None if cell is None else in_units(cell.sd, column)
            chosen = "" if cell is None else " ".join(f"{k}={v:g}" for k, v in cell.chosen.items())
            writer.writerow(
                [experiment.name, results.scale, *cell_key, column.metric, column.candidates or "",
                 experiment.fold, column.unit, _plain(mean), _plain(sd),
                 0 if cell is None else len(cell.values), chosen, *(number or (printed, None)),
                 compared.get(cell_key, "")]
            )  # fmt: skip
    return text.getvalue()


def as_rows(results: Results) -> dict[str, Any]:
    """Return the table as texts, for a page."""
    experiment, ranks = results.experiment, _ranks(results)
    rows = [
        {
            "name": row.label,
            "control": row.control,
            "cells": [
                {
                    "here": _here(results, row, column),
                    "published": results.printed(row.key, column.key),
                    "rank": ranks.get((row.key, column.key)),
                }
                for column in experiment.columns
            ],
        }
        for row in experiment.rows
    ]
    return {"heads": [head(column) for column in experiment.columns], "rows": rows}


def comparison(results: Results) -> list[str]:
    """Count the cells that are as published, and name the others; at full scale only."""
    compared = _compared(results)
    if not compared:
        return []
    counts = Counter(compared.values())
    columns = {column.key: head(column) for column in results.experiment.columns}
    away = [
        f"{results.experiment.row(row).label}, {columns[column]}: {state}"
        for (row, column), state in compared.items()
        if state != AS_PUBLISHED
    ]
    summary = f"{counts[AS_PUBLISHED]} of {len(compared)} cells are as published (95 % intervals)"
    return [f"{summary}{'; ' if away else ''}{'; '.join(away)}."]


def _compared(results: Results) -> dict[tuple[str, str], str]:
    return against_published(results) if results.metadata.get("full_scale") else {}


def tex(text: str) -> str:
    r"""Escape a text for LaTeX.

    Examples
    --------
    >>> print(tex("50 % ± 1_2"))
    50 \% $\pm$ 1\_2
    """
    return text.translate(_TEX)


def head(column: Column) -> str:
    """Return the heading of a column."""
    unit = ", %" if column.unit == "%" else ""
    return f"{column.group + ' ' if column.group else ''}{column.label}{unit}"


def _about(results: Results) -> list[str]:
    experiment, metadata = results.experiment, results.metadata
    paragraphs = [visible(experiment.about)] if experiment.about else []
    paragraphs.append(
        f"The paper's {experiment.paper}. Measured on {visible(str(metadata['spectra']))}, "
        f"{experiment.fold} fold, scale {results.scale}; in brackets the paper's numbers on "
        "MassSpecGym."
        if metadata.get("spectra")
        else f"The paper's {experiment.paper}; in brackets as published."
    )
    if results.reduced:
        paragraphs.append(f"Reduced: {'; '.join(results.reduced)}.")
    return "\n\n".join(paragraphs).split("\n")


def _name(row: Row) -> str:
    return f"control: {row.label}" if row.control else row.label


def _ranks(results: Results) -> dict[tuple[str, str], int]:
    """Rank the best and the second of each column of trained models; controls do not compete."""
    ranks: dict[tuple[str, str], int] = {}
    if results.experiment.kind != "runs":
        return ranks
    rivals = [row.key for row in results.experiment.rows if not row.control and not row.literature]
    for column in results.experiment.columns:
        means = {
            key: cell.mean
            for key in rivals
            if column.unit == "%" and (cell := results.cell(key, column.key))
        }
        if len(means) >= _MIN_RANKED:
            for rank, value in enumerate(sorted(set(means.values()), reverse=True)[:2], 1):
                ranks |= {(key, column.key): rank for key in means if means[key] == value}
    return ranks


def _here(results: Results, row: Row, column: Column) -> str:
    """Return the measured number as text, or that the row was not run."""
    cell = results.cell(row.key, column.key)
    if cell is None:
        return "not run" if row.key in results.not_run else ""
    return cell.shown(column)


def _cells(results: Results, marks: dict[int, tuple[str, str]], escape: Any = str) -> Any:
    """Yield each row with its cells: the measured number, the published one in brackets."""
    ranks = _ranks(results)
    for row in results.experiment.rows:
        cells = []
        for column in results.experiment.columns:
            here, printed = _here(results, row, column), results.printed(row.key, column.key)
            before, after = marks.get(ranks.get((row.key, column.key), 0), ("", ""))
            there = f"({escape(printed)})" if printed else ""
            shown = f"{before}{escape(here)}{after}" if here else ""
            cells.append(" ".join(filter(None, (shown, there))) or escape("–"))
        yield row, cells


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |"


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
