"""A page about runs: what each loss is good at, beside what needs no spectrum at all."""

from pathlib import Path

from markupsafe import Markup

from mzseek.decision import reliability
from mzseek.report.figures import curves_svg
from mzseek.report.page import write_page
from mzseek.report.reliability import reliability_svg
from mzseek.report.tradeoff import DECODED, LABELS, Row, tradeoff_rows, tradeoff_svg
from mzseek.training.beliefs import Beliefs
from mzseek.training.evaluate import Evaluation
from mzseek.training.run import Run


def write_runs_page(
    runs: dict[str, Run],
    found: dict[str, Evaluation],
    path: Path,
    *,
    controls: tuple[str, ...] = (),
    simulated: bool = False,
    data_page: str | None = None,
    beliefs: dict[str, Beliefs] | None = None,
) -> Path:
    """Write one self-contained HTML file.

    Parameters
    ----------
    runs, found : dict
        Runs and their evaluations, by the name to show.
    path : Path
        Where the page goes.
    controls : tuple of str
        Names of the runs that never see the spectrum.
    simulated : bool
        Whether the page must say that the data are simulated.
    data_page : str, optional
        Link to a page about the data.
    beliefs : dict, optional
        What the runs' posteriors are worth, by the same names: decoded points, calibration and
        prediction sets are then shown.
    """
    rows = tradeoff_rows(found, controls, beliefs)
    first = next(iter(found.values()))
    setting = first.how.candidates
    curves = {
        name: {
            metric: _curve(run, metric)
            for metric in (f"hit_rate@1/{setting}", "tanimoto")
            if _curve(run, metric)[0]
        }
        for name, run in runs.items()
    }
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
            "beliefs": [_belief(name, each) for name, each in (beliefs or {}).items()],
            "reliability": _reliability(beliefs or {}, controls),
            "rows": [_cells(row) for row in rows],
            "picture": Markup(tradeoff_svg(rows)),
            "curves": [
                Markup(curves_svg(_of(curves, metric), "epoch", f"{label} on val, %"))
                for metric, label in ((f"hit_rate@1/{setting}", "HR@1"), ("tanimoto", "Tanimoto"))
                if _of(curves, metric)
            ],
            "warnings": [
                f"{name}: {w}" for name, run in runs.items() for w in run.facts["warnings"]
            ],
            "made": [
                {
                    "name": name,
                    "loss": run.options.loss,
                    "model": run.options.model,
                    "steps": run.facts["steps"],
                    "seconds": run.facts["seconds"],
                    "lr": run.options.lr,
                    "seed": run.options.seed,
                }
                for name, run in runs.items()
            ],
            "key": next(iter(runs.values())).facts["data"]["key"][:12],
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


def _belief(name: str, found: Beliefs) -> dict[str, object]:
    """How far a run's probabilities can be trusted, as cells of a table."""
    return {
        "name": name,
        "errors": [f"{100 * found.errors[when]:.1f}" for when in ("before", "after")],
        "sets": [
            {
                "stated": f"{100 * each.stated:.0f}",
                "covered": f"{100 * each.covered.mean:.0f}",
                "size": f"{each.median_size:.0f}",
                "list": f"{each.mean_list:.0f}",
            }
            for each in found.sets
        ],
    }


def _reliability(beliefs: dict[str, Beliefs], controls: tuple[str, ...]) -> Markup | None:
    shown = {
        name: reliability(*found.calibrated.test.answers(), bins=10)
        for name, found in beliefs.items()
        if name not in controls
    }
    return Markup(reliability_svg(shown)) if shown else None


def _curve(run: Run, metric: str) -> tuple[list[float], list[float]]:
    rows = [row for row in run.history() if metric in row]
    return [row["epoch"] for row in rows], [100 * row[metric] for row in rows]


def _of(
    curves: dict[str, dict[str, tuple[list[float], list[float]]]], metric: str
) -> dict[str, tuple[list[float], list[float]]]:
    return {name: found[metric] for name, found in curves.items() if metric in found}
