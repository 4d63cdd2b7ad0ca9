"""Pages about data sets and runs, with the trade-off figure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context

from mzseek.core.errors import DatasetError, RunError
from mzseek.core.registry import format_options
from mzseek.core.text import Table, Tabular, distinct_labels
from mzseek.datasets.prepared import Prepared
from mzseek.decision import reliability
from mzseek.evaluation.evaluate import Evaluation, evaluate
from mzseek.evaluation.posterior_report import PosteriorReport, posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.export import figures
from mzseek.export.figures import MUTED, ORANGE
from mzseek.export.report import write_page
from mzseek.export.spectrum_plot import peak_sticks, sticks_svg
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.manifest import Manifest, ensure_replaceable
from mzseek.metrics import METRICS as FACTS
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.run import Run
from mzseek.version import __version__

RANDOM = "random"  # what an order by chance is called beside the runs
HIT = "hit_rate@1"  # the x axis of the trade-off
METRICS = ("hit_rate@1", "hit_rate@5", "hit_rate@20", "tanimoto")
DECODED = "tanimoto, decoded"
LABELS = {**{name: FACTS[name].label for name in METRICS}, DECODED: "Tanimoto, decoded"}
KIND = "report"
INDEX = "index.html"
MANIFEST = Manifest(KIND, DatasetError, versions=(1,))
_EXAMPLES, _EXAMPLE_CANDIDATES = 4, 6


@dataclass(frozen=True)
class EvaluatedRun:
    """A run, its evaluation, and the report on its posterior where that was computed."""

    run: Run
    evaluation: Evaluation
    posterior: PosteriorReport | None = None

    @property
    def control(self) -> bool:
        """Whether it never sees the spectrum."""
        return not self.run.description.sees_spectrum


def labelled(runs: Sequence[EvaluatedRun]) -> dict[str, EvaluatedRun]:
    """Return different runs by label; those of equal names are distinguished by their paths."""
    labels = distinct_labels([item.run.folder for item in runs], taken=(RANDOM,))
    return dict(zip(labels, runs, strict=True))


def missing_fingerprints(runs: Sequence[EvaluatedRun]) -> list[str]:
    """Return why runs that see the spectrum have no Tanimoto of a fingerprint, each reason once."""
    reasons = (item.evaluation.no_fingerprint for item in runs if not item.control)
    return list(dict.fromkeys(reason for reason in reasons if reason))


@dataclass(frozen=True)
class Row:
    """A model's numbers as fractions; None where it has no such number.

    Attributes
    ----------
    name : str
    values : dict of str to float or None
        By metric; where the posterior was decoded, also ``DECODED``: the Tanimoto of the decision
        decoded for it.
    intervals : dict of str to (float, float)
    control : bool
        Whether it never sees the spectrum.
    """

    name: str
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    control: bool = False

    def percent(self, metric: str) -> float:
        """Return a value in percent; 0 where there is none."""
        return 100 * (self.values[metric] or 0.0)

    @property
    def is_point(self) -> bool:
        """Whether it has a place on both axes; controls never have."""
        return self.values["tanimoto"] is not None and not self.control


def tradeoff_rows(runs: Sequence[EvaluatedRun]) -> list[Row]:
    """Return one row for each model, the controls last, and below them what chance reaches."""
    posteriors = [item.posterior for item in runs if item.posterior is not None]
    metrics = (*METRICS, DECODED) if posteriors else METRICS
    rows = []
    for label, item in sorted(labelled(runs).items(), key=lambda pair: pair[1].control):
        intervals = item.evaluation.intervals()
        if item.posterior is not None:
            intervals[DECODED] = item.posterior.decoded.interval("tanimoto", "tanimoto")
        values = {m: intervals[m].mean if m in intervals else None for m in metrics}
        bounds = {m: (i.low, i.high) for m, i in intervals.items()}
        rows.append(Row(label, values, bounds, item.control))
    if runs:
        values = {m: runs[0].evaluation.random_order.get(m) for m in metrics}
        if posteriors:
            values[DECODED] = posteriors[0].uniform.interval("tanimoto", "tanimoto").mean
        rows.append(Row(RANDOM, values, {}, True))
    return rows


def tradeoff_svg(rows: list[Row]) -> str:
    """Draw retrieval against fingerprint similarity: a point for each model, a line for controls.

    Where posteriors were decoded, each model has a second point: the same ranking, and the
    fingerprint that its posterior decides for.
    """
    names = figures.drawn_labels([row.name for row in rows])
    rows = [replace(row, name=name) for row, name in zip(rows, names, strict=True)]
    with rc_context(figures.STYLE):
        figure = figures.blank((6.4, 4.3))
        axes = figure.subplots()
        drawn = [row for row in rows if row.values[HIT] is not None]
        points = [row for row in drawn if row.is_point]
        decoded = [row for row in drawn if row.values.get(DECODED) is not None]
        values = [row.percent("tanimoto") for row in points]
        values += [row.percent(DECODED) for row in decoded]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        margin = max(1.0, 0.2 * (high - low))
        axes.set_ylim(low - 2 * margin, high + margin)
        hits = [row.percent(HIT) for row in drawn] or [0.0]
        hits += [100 * bound for row in drawn for bound in row.intervals.get(HIT, ())]
        margin = max(1.0, 0.08 * (max(hits) - min(hits)))
        axes.set_xlim(max(0.0, min(hits) - margin), max(hits) + 1.6 * margin)
        for row in drawn:
            if row not in decoded and not row.is_point:
                _draw_line(axes, row)
        axes.set_xlabel("hit rate @1, %")
        axes.set_ylabel("Tanimoto of the fingerprint decided for, %")
        marks = [_mark(row, "tanimoto", "thresholded", named=row not in decoded) for row in points]
        for row in decoded:
            mark = _mark(row, DECODED, "control" if row.control else "decoded")
            start = (row.percent(HIT), row.percent("tanimoto")) if row.is_point else None
            marks.append(replace(mark, start=start))
        figures.draw_marks(axes, marks, "lower right")
        return figures.to_svg(figure)


def _mark(row: Row, y: str, kind: str, *, named: bool = True) -> figures.Mark:
    """Return a model's point, with its intervals where it has both."""
    at, errors = (row.percent(HIT), row.percent(y)), None
    if HIT in row.intervals and y in row.intervals:
        errors = np.abs(
            100 * np.array([row.intervals[HIT], row.intervals[y]]) - np.array(at)[:, None]
        )
    return figures.Mark(row.name if named else "", at, kind, errors)


def _draw_line(axes: Any, row: Row) -> None:
    """Draw a model without a fingerprint, which has a place on one axis only."""
    colour = MUTED if row.control else ORANGE
    style = ":" if row.control else "--"
    axes.axvline(row.percent(HIT), color=colour, linewidth=1.2, linestyle=style)
    axes.annotate(
        row.name if row.control else f"{row.name} (no fingerprint)", (row.percent(HIT), 0.03),
        xycoords=("data", "axes fraction"), textcoords="offset points", xytext=(-4, 0),
        rotation=90, va="bottom", ha="right", color=colour, fontsize=8.5,
    )  # fmt: skip


def write_dataset_page(prepared: Prepared, path: StrPath) -> Path:
    """Write one self-contained HTML file about a prepared data set; returns its path."""
    counts = prepared.manifest["counts"]
    sizes = {f"equal {name}": prepared.candidates(name).sizes for name in prepared.settings}
    histogram = figures.histogram_svg(sizes, "candidates in a list", "molecules") if sizes else ""
    # Of a few molecules from all over the set, the spectrum richest in peaks.
    measured = np.unique(prepared.molecule)
    indices = np.linspace(0, len(measured), _EXAMPLES + 2)[1:-1].astype(int)
    examples = [
        max(
            np.flatnonzero(prepared.molecule == molecule).tolist(),
            key=lambda spectrum: len(prepared.peaks(spectrum)[0]),
        )
        for molecule in np.unique(measured[indices])
    ]
    return write_page(
        "dataset.html",
        Path(path),
        {
            "counts": counts,
            "fingerprint": prepared.manifest["options"]["fingerprint"],
            "bits_per_molecule": counts["fingerprint_bits_set"] / max(1, counts["molecules"]),
            "bins_per_spectrum": counts["bins_filled"] / max(1, counts["spectra"]),
            "examples": [_example(prepared, spectrum) for spectrum in examples],
            "settings": prepared.manifest["candidates"],
            "histogram": Markup(histogram),
            "key": prepared.manifest["key"][:12],
        },
    )


def _example(prepared: Prepared, spectrum: int) -> dict[str, Any]:
    molecule = int(prepared.molecule[spectrum])
    mz, intensities = prepared.peaks(spectrum)
    precursor_mz = float(prepared.precursor_mz[spectrum])
    setting = "formula" if "formula" in prepared.settings else next(iter(prepared.settings), None)
    candidates = prepared.candidates(setting).of_molecule(molecule).tolist() if setting else []
    rivals = [candidate for candidate in candidates if candidate != molecule]
    energy = float(prepared.collision_energy[spectrum])
    return {
        "identifier": prepared.identifiers[spectrum],
        "adduct": prepared.adduct(spectrum),
        "precursor_mz": precursor_mz,
        "energy": None if np.isnan(energy) else energy,
        "peaks": len(mz),
        "formula": prepared.formulas[molecule],
        "smiles": prepared.smiles[molecule],
        "spectrum": Markup(sticks_svg(peak_sticks(mz, intensities, precursor_mz), precursor_mz)),
        "molecule": Markup(figures.molecule_svg(prepared.smiles[molecule])),
        "setting": setting,
        "others": len(rivals),
        "candidates": [
            Markup(figures.molecule_svg(prepared.smiles[rival], 130, 100))
            for rival in rivals[:_EXAMPLE_CANDIDATES]
        ],
    }


def write_runs_page(
    evaluated: Sequence[EvaluatedRun], path: StrPath, *, data_page: str | None = None
) -> Path:
    """Write one self-contained HTML file about at least one run; returns its path.

    Where a run has a posterior report, decoded points, calibration and prediction sets are shown as
    well. `data_page` is a link to a page about the data.
    """
    runs = labelled(evaluated)
    rows = tradeoff_rows(evaluated)
    first = evaluated[0].evaluation
    posteriors = {label: item.posterior for label, item in runs.items() if item.posterior}
    curves = {
        label: reliability(*report.calibrated.evaluated.merged())
        for label, report in posteriors.items()
        if not runs[label].control
    }
    return write_page(
        "runs.html",
        Path(path),
        {
            "data_page": data_page,
            "how": first.how,
            "spectra": len(first.values["hit_rate@1"]),
            "molecules": first.intervals()["hit_rate@1"].groups,
            "metrics": [LABELS[metric] for metric in rows[0].values],
            "decoded": DECODED in rows[0].values,
            "posteriors": [_posterior(label, report) for label, report in posteriors.items()],
            "reliability": Markup(figures.reliability_svg(curves)) if curves else None,
            "rows": [_cells(row) for row in rows],
            "missing": missing_fingerprints(evaluated),
            "picture": Markup(tradeoff_svg(rows)),
            "curves": _validation_curves(runs, first.how.candidates),
            "warnings": [
                f"{label}: {warning}"
                for label, item in runs.items()
                for warning in item.run.metadata["warnings"]
            ],
            "made": [_run_metadata(label, item.run) for label, item in runs.items()],
            "key": evaluated[0].run.metadata["data"]["key"][:12],
        },
    )


def _cells(row: Row) -> dict[str, object]:
    cells = []
    for metric, value in row.values.items():
        low, high = row.intervals.get(metric, (None, None))
        cells.append(
            {
                "rank": None,
                "value": "" if value is None else f"{100 * value:.1f}",
                "interval": "" if low is None else f"{100 * low:.1f} to {100 * (high or 0.0):.1f}",
            }
        )
    return {"name": row.name, "cells": cells, "control": row.control}


def _posterior(label: str, report: PosteriorReport) -> dict[str, object]:
    """Return how far a run's probabilities can be trusted, as cells of a table."""
    return {
        "name": label,
        "errors": [f"{100 * report.errors[when]:.1f}" for when in ("before", "after")],
        "fitted_on": report.sets[0].fitted_on if report.sets else 0,
        "sets": [
            {
                "stated": f"{100 * result.stated:.0f}",
                "covered": f"{100 * result.covered.mean:.0f}",
                "interval": f"{100 * result.covered.low:.0f} to {100 * result.covered.high:.0f}",
                "short": result.falls_short,
                "everything": result.everything,
                "size": f"{result.median_size:.0f}",
                "list": f"{result.mean_list:.0f}",
            }
            for result in report.sets
        ],
    }


def _run_metadata(label: str, run: Run) -> dict[str, object]:
    if (fitted := run.description.fitted) is not None:
        options = f"{len(fitted.channels)} channels, fitted"
    else:
        options = ", ".join(f"{name} {text}" for name, text in format_options(run.loss.options))
    return {
        "name": label,
        "loss": run.description.name,
        "options": options,
        "model": run.description.model_name,
        "steps": run.metadata["steps"],
        "seconds": run.metadata["seconds"],
        "lr": run.description.options.get("lr"),
        "seed": run.seed,
    }


def _validation_curves(runs: dict[str, EvaluatedRun], setting: str) -> list[Markup]:
    """Draw how validation went, a picture for each metric that any run has."""
    pictures = []
    for metric, name in ((f"hit_rate@1/{setting}", "HR@1"), ("tanimoto", "Tanimoto")):
        curves = {}
        for label, item in runs.items():
            history = [row for row in item.run.history() if metric in row]
            if history:
                epochs = [row["epoch"] for row in history]
                curves[label] = (epochs, [100 * row[metric] for row in history])
        if curves:
            pictures.append(Markup(figures.curves_svg(curves, "epoch", f"{name} on val, %")))
    return pictures


def evaluate_runs(
    runs: Sequence[Run],
    how: Scoring,
    *,
    decode: bool = True,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> list[EvaluatedRun]:
    """Evaluate finished runs of one data set in one way.

    Parameters
    ----------
    runs : sequence of Run
    how : Scoring
        Fold, candidate lists, ties and identity.
    decode : bool
        Also calibrate and decode their posteriors, which needs a validation fold.
    data : Path, optional
        The prepared folder, if it has been moved.
    progress : callable of (stage, done, total)

    Raises
    ------
    RunError
        There is none, one is there twice, is not finished, or was trained on other data.
    """
    check_runs(runs)
    decode = decode and len(runs[0].open_data(data).in_fold("val")) > 0
    return [
        EvaluatedRun(
            run,
            evaluate(run, how, data=data, progress=progress),
            posterior_report(run, how, data=data, progress=progress) if decode else None,
        )
        for run in runs
    ]


@dataclass(frozen=True)
class Report(Tabular):
    """A report that was written: the page to look at first, and the runs with their numbers."""

    page: Path
    runs: list[EvaluatedRun]

    def to_table(self) -> Table:
        """Return the trade-off: one row for each run, the controls last, and chance."""
        rows = tradeoff_rows(self.runs)
        metrics = list(rows[0].values)
        return Table(
            {
                "run": [row.name for row in rows],
                "control": [row.control for row in rows],
                **{LABELS[metric]: [row.values[metric] for row in rows] for metric in metrics},
            },
            f"{self.page}",
            frozenset(LABELS[metric] for metric in metrics),
        )


def report_runs(
    runs: Sequence[Run],
    out: StrPath,
    how: Scoring,
    *,
    decode: bool = True,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Report:
    """Write a folder with a page on the runs, one on their data, and all numbers as JSON.

    Parameters are those of `evaluate_runs`, and the folder to make. An older report is replaced,
    anything else is not.

    Raises
    ------
    RunError
        As in `evaluate_runs`.
    DatasetError
        The folder holds something else, or one of the runs.
    BusyError, WriteError
        Another process writes there, or it cannot be written.
    """
    out = Path(out)
    check_runs(runs)
    prepared = runs[0].open_data(data)
    sources = [prepared.folder, *(run.folder for run in runs)]
    ensure_replaceable(out, KIND, sources)
    with sole_writer(out, "writing a report"):
        ensure_replaceable(out, KIND, sources)
        evaluated = evaluate_runs(runs, how, decode=decode, data=data, progress=progress)
        with atomic_directory(out) as partial:
            write_dataset_page(prepared, partial / "data.html")
            write_runs_page(evaluated, partial / INDEX, data_page="data.html")
            numbers = {}
            for label, item in labelled(evaluated).items():
                numbers[label] = item.evaluation.to_dict() | {"is_control": item.control}
                if item.posterior is not None:
                    numbers[label] |= item.posterior.to_dict()
            (partial / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
            made_from = {
                "version": __version__,
                "runs": {str(run.folder.resolve()): run.identity for run in runs},
                "data": runs[0].metadata["data"]["key"],
            }
            MANIFEST.write(partial, made_from)
    return Report(out / INDEX, evaluated)


def check_runs(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot stand in one table."""
    if not runs:
        raise RunError("no run, expected at least one")
    first, met = runs[0], set()
    for run in runs:
        if run.folder.resolve() in met:
            raise RunError(f"{run.folder}: is there twice, expected each run once")
        met.add(run.folder.resolve())
        if not run.finished:
            raise RunError(f"{run.folder}: is not finished; `mzseek train --resume` ends it")
        if run.metadata["data"]["key"] != first.metadata["data"]["key"]:
            raise RunError(
                f"{run.folder}: was trained on other data than {first.folder}; report them apart"
            )
