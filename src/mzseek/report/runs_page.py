"""A page about runs: what each loss is good at, beside what needs no spectrum at all."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from mzseek.decision import reliability
from mzseek.evaluation.beliefs import Beliefs
from mzseek.files import StrPath
from mzseek.registry import option_texts
from mzseek.report.figures import curves_svg
from mzseek.report.page import write_page
from mzseek.report.reliability import reliability_svg
from mzseek.report.shown import Shown, labelled, missing_fingerprints
from mzseek.report.tradeoff import DECODED, LABELS, Row, tradeoff_rows, tradeoff_svg
from mzseek.runs.run import Run


def write_runs_page(
    shown: Sequence[Shown],
    path: StrPath,
    *,
    simulated: bool = False,
    data_page: str | None = None,
) -> Path:
    """Write one self-contained HTML file.

    Parameters
    ----------
    shown : sequence of Shown
        Runs with their evaluations, at least one. Where one has beliefs, decoded points,
        calibration and prediction sets are shown as well.
    path : Path
        Where the page goes.
    simulated : bool
        Whether the page must say that the data are simulated.
    data_page : str, optional
        Link to a page about the data.
    """
    path = Path(path)
    runs = labelled(shown)
    rows = tradeoff_rows(shown)
    first = shown[0].evaluation
    beliefs = {label: each.beliefs for label, each in runs.items() if each.beliefs is not None}
    return write_page(
        "runs.html",
        path,
        {
            "simulated": simulated,
            "data_page": data_page,
            "how": first.how,
            "spectra": len(first.values["hit_rate@1"]),
            "molecules": first.intervals()["hit_rate@1"].groups,
            "metrics": [LABELS[metric] for metric in rows[0].values],
            "decoded": DECODED in rows[0].values,
            "beliefs": [_belief(label, each) for label, each in beliefs.items()],
            "reliability": _reliability(runs),
            "rows": [_cells(row) for row in rows],
            "missing": missing_fingerprints(shown),
            "picture": Markup(tradeoff_svg(rows)),
            "curves": _curves(runs, first.how.candidates),
            "warnings": [
                f"{label}: {warning}"
                for label, each in runs.items()
                for warning in each.run.facts["warnings"]
            ],
            "made": [_made(label, each.run) for label, each in runs.items()],
            "key": shown[0].run.facts["data"]["key"][:12],
        },
    )


def _cells(row: Row) -> dict[str, object]:
    cells = []
    for metric in row.values:
        value = row.values[metric]
        low, high = row.intervals.get(metric, (None, None))
        cells.append(
            {
                "value": "–" if value is None else f"{100 * value:.1f}",
                "interval": "" if low is None else f"{100 * low:.1f} to {100 * (high or 0.0):.1f}",
            }
        )
    return {"name": row.name, "cells": cells, "control": row.control}


def _belief(label: str, beliefs: Beliefs) -> dict[str, object]:
    """How far a run's probabilities can be trusted, as cells of a table."""
    return {
        "name": label,
        "errors": [f"{100 * beliefs.errors[when]:.1f}" for when in ("before", "after")],
        "fitted_on": beliefs.sets[0].fitted_on if beliefs.sets else 0,
        "sets": [
            {
                "stated": f"{100 * each.stated:.0f}",
                "covered": f"{100 * each.covered.mean:.0f}",
                "interval": f"{100 * each.covered.low:.0f} to {100 * each.covered.high:.0f}",
                "short": each.falls_short,
                "everything": each.everything,
                "size": f"{each.median_size:.0f}",
                "list": f"{each.mean_list:.0f}",
            }
            for each in beliefs.sets
        ],
    }


def _made(label: str, run: Run) -> dict[str, object]:
    return {
        "name": label,
        "loss": run.made.name,
        "options": _options(run),
        "model": run.made.model_name,
        "steps": run.facts["steps"],
        "seconds": run.facts["seconds"],
        "lr": run.made.options.get("lr"),
        "seed": run.seed,
    }


def _options(run: Run) -> str:
    """Options of the loss, or how many features of channels have weights."""
    if (fitted := run.made.fitted) is not None:
        return f"{len(fitted.channels)} channels, fitted"
    return ", ".join(f"{name} {text}" for name, text in option_texts(run.loss.options))


def _reliability(runs: dict[str, Shown]) -> Markup | None:
    drawn = {
        label: reliability(*each.beliefs.calibrated.asked.answers())
        for label, each in runs.items()
        if each.beliefs is not None and not each.control
    }
    return Markup(reliability_svg(drawn)) if drawn else None


def _curves(runs: dict[str, Shown], setting: str) -> list[Markup]:
    """How validation went, a picture for each metric that any run has."""
    pictures = []
    for metric, name in ((f"hit_rate@1/{setting}", "HR@1"), ("tanimoto", "Tanimoto")):
        curves = {label: _curve(each.run, metric) for label, each in runs.items()}
        curves = {label: curve for label, curve in curves.items() if curve[0]}
        if curves:
            pictures.append(Markup(curves_svg(curves, "epoch", f"{name} on val, %")))
    return pictures


def _curve(run: Run, metric: str) -> tuple[list[float], list[float]]:
    rows = [row for row in run.history() if metric in row]
    return [row["epoch"] for row in rows], [100 * row[metric] for row in rows]
