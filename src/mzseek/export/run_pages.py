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
from mzseek.core.tables import Table, Tabular
from mzseek.core.text import distinct_labels
from mzseek.datasets.prepared import Prepared
from mzseek.decision import reliability
from mzseek.evaluation.evaluate import Evaluation, evaluate
from mzseek.evaluation.posterior_report import PosteriorReport, posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.export.figures import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    STYLE,
    blank,
    curves_svg,
    drawn_labels,
    histogram_svg,
    molecule_svg,
    reliability_svg,
    spectrum_svg,
    to_svg,
)
from mzseek.export.page import write_page
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.io.manifest import Manifest, ensure_replaceable
from mzseek.metrics import METRICS as FACTS
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.run import Run
from mzseek.spectra import read_spectra
from mzseek.version import __version__

# What an order by chance is called beside the runs.
CHANCE = "random"


@dataclass(frozen=True)
class Shown:
    """A run and what was found of it.

    Attributes
    ----------
    run : Run
    evaluation : Evaluation
    beliefs : PosteriorReport or None
        What its posterior is worth, where that was asked for.

    Raises
    ------
    RunError
        The numbers are those of another run.
    """

    run: Run
    evaluation: Evaluation
    beliefs: PosteriorReport | None = None

    @property
    def control(self) -> bool:
        """It never sees the spectrum."""
        return not self.run.description.sees_spectrum

    def __post_init__(self) -> None:
        folder = self.run.folder.resolve()
        for numbers in (self.evaluation, self.beliefs):
            if numbers is not None and numbers.folder != folder:
                raise RunError(f"{folder}: would be shown with the numbers of {numbers.folder}")


def labelled(shown: Sequence[Shown]) -> dict[str, Shown]:
    """The same runs by label; equal names are told apart by their paths.

    Raises
    ------
    RunError
        One run is there twice.
    """
    labels = distinct_labels([each.run.folder for each in shown], taken=(CHANCE,))
    by_label = dict(zip(labels, shown, strict=True))
    if len(by_label) < len(shown):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise RunError(f"{by_label[twice].run.folder}: is there twice, expected each run once")
    return by_label


def missing_fingerprints(shown: Sequence[Shown]) -> list[str]:
    """Why runs that see the spectrum have no Tanimoto of a fingerprint, each reason once."""
    reasons = (each.evaluation.no_fingerprint for each in shown if not each.control)
    return list(dict.fromkeys(reason for reason in reasons if reason))


METRICS = ("hit_rate@1", "hit_rate@5", "hit_rate@20", "tanimoto")
DECODED = "tanimoto, decoded"
LABELS = {**{name: FACTS[name].label for name in METRICS}, DECODED: "Tanimoto, decoded"}


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
        It never sees the spectrum.
    """

    name: str
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    control: bool = False


def tradeoff_rows(shown: Sequence[Shown]) -> list[Row]:
    """One row for each model, the controls last, and below them what chance would reach."""
    beliefs = [each.beliefs for each in shown if each.beliefs is not None]
    metrics = (*METRICS, DECODED) if beliefs else METRICS
    rows = []
    for label, each in sorted(labelled(shown).items(), key=lambda item: item[1].control):
        intervals = each.evaluation.intervals()
        if each.beliefs is not None:
            intervals[DECODED] = each.beliefs.decoded.interval("tanimoto", "tanimoto")
        rows.append(
            Row(
                label,
                {m: intervals[m].mean if m in intervals else None for m in metrics},
                {m: (i.low, i.high) for m, i in intervals.items()},
                each.control,
            )
        )
    if shown:
        values: dict[str, float | None] = {m: shown[0].evaluation.chance.get(m) for m in metrics}
        if beliefs:
            values[DECODED] = beliefs[0].uniform.interval("tanimoto", "tanimoto").mean
        rows.append(Row(CHANCE, values, {}, True))
    return rows


def tradeoff_svg(rows: list[Row], x: str = "hit_rate@1") -> str:
    """Retrieval against fingerprint similarity, one point for each model, the controls as lines.

    Where posteriors were decoded, each model has a second point: the same ranking, and the
    fingerprint that its posterior decides for.
    """
    names = drawn_labels([row.name for row in rows])
    rows = [replace(row, name=name) for row, name in zip(rows, names, strict=True)]
    with rc_context(STYLE):
        figure = blank((6.4, 4.3))
        axes = figure.subplots()
        drawn = [row for row in rows if row.values[x] is not None]
        points = [row for row in drawn if _is_point(row)]
        decoded = [row for row in drawn if row.values.get(DECODED) is not None]
        values = [100 * (row.values["tanimoto"] or 0.0) for row in points]
        values += [100 * (row.values[DECODED] or 0.0) for row in decoded]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        margin = max(1.0, 0.2 * (high - low))
        axes.set_ylim(low - 2 * margin, high + margin)
        places = [100 * (row.values[x] or 0.0) for row in drawn] or [0.0]
        places += [100 * bound for row in drawn for bound in row.intervals.get(x, ())]
        room = max(1.0, 0.08 * (max(places) - min(places)))
        axes.set_xlim(max(0.0, min(places) - room), max(places) + 1.6 * room)
        for row in drawn:
            if row not in decoded and not _is_point(row):
                _line(axes, row, x)
        labels = _Labels()
        for row in points:
            _point(axes, row, x, "tanimoto", BLUE, "o", None if row in decoded else labels)
        for row in decoded:
            if _is_point(row):
                _arrow(axes, row, x)
            colour = MUTED if row.control else ORANGE
            _point(axes, row, x, DECODED, colour, "D", labels)
        axes.set_xlabel(f"{x.replace('hit_rate', 'hit rate ')}, %")
        axes.set_ylabel("Tanimoto of the fingerprint decided for, %")
        if decoded and points:
            _legend(axes)
        return to_svg(figure)


def _is_point(row: Row) -> bool:
    """Controls have a place on one axis only, also where they predict a fingerprint."""
    return row.values["tanimoto"] is not None and not row.control


def _point(
    axes: Any, row: Row, x: str, y: str, colour: str, marker: str, named: "_Labels | None"
) -> None:
    at = np.array([100 * (row.values[x] or 0.0), 100 * (row.values[y] or 0.0)])
    whiskers = {}
    if x in row.intervals and y in row.intervals:
        errors = np.abs(100 * np.array([row.intervals[x], row.intervals[y]]) - at[:, None])
        whiskers = {"xerr": errors[:1].T, "yerr": errors[1:].T}
    axes.errorbar(
        *at, **whiskers, fmt=marker, color=colour, ecolor="#c5ccd3", elinewidth=0.8, markersize=6,
    )  # fmt: skip
    if named is not None:
        named.put(axes, row.name, at, muted=row.control)


class _Labels:
    """Names beside points, each where it hides none of those before it."""

    _PLACES = ((8, 5), (-8, 5), (8, -13), (-8, -13), (8, 18), (-8, 18), (8, -26), (-8, -26))

    def __init__(self) -> None:
        self._taken: list[tuple[float, float, float, float]] = []

    def put(self, axes: Any, text: str, at: Any, *, muted: bool) -> None:
        size = 8.5 if muted else 10.0
        x, y = axes.transData.transform(at) * 72 / axes.figure.dpi
        width, height = 0.62 * size * len(text), 1.1 * size
        for dx, dy in self._PLACES:
            left = x + dx if dx > 0 else x + dx - width
            box = (left, y + dy, left + width, y + dy + height)
            if not any(_overlap(box, other) for other in self._taken):
                break
        self._taken += [box, (x - 4, y - 4, x + 4, y + 4)]
        axes.annotate(
            text, at, textcoords="offset points", xytext=(dx, dy), ha="left" if dx > 0 else "right",
            color=MUTED if muted else INK, fontsize=size, weight="normal" if muted else "bold",
        )  # fmt: skip


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _arrow(axes: Any, row: Row, x: str) -> None:
    """From the thresholded fingerprint to the one decoded."""
    place = 100 * (row.values[x] or 0.0)
    start, end = (100 * (row.values[y] or 0.0) for y in ("tanimoto", DECODED))
    axes.annotate(
        "", (place, end), (place, start),
        arrowprops={"arrowstyle": "->", "color": MUTED, "shrinkA": 6, "shrinkB": 6},
    )  # fmt: skip


def _legend(axes: Any) -> None:
    for marker, colour, label in (
        ("o", BLUE, "predicted fingerprint, thresholded"),
        ("D", ORANGE, "posterior decoded for Tanimoto"),
        ("D", MUTED, "the same without the spectrum"),
    ):
        axes.plot([], [], marker, color=colour, label=label)
    axes.legend(frameon=False, fontsize=8, loc="lower right")


def _line(axes: Any, row: Row, x: str) -> None:
    """A model without a fingerprint has a place on one axis only."""
    place = 100 * (row.values[x] or 0.0)
    color = MUTED if row.control else ORANGE
    axes.axvline(place, color=color, linewidth=1.2, linestyle=":" if row.control else "--")
    label = row.name if row.control else f"{row.name} (no fingerprint)"
    axes.annotate(
        label, (place, 0.03), xycoords=("data", "axes fraction"), textcoords="offset points",
        xytext=(-4, 0), rotation=90, va="bottom", ha="right", color=color, fontsize=8.5,
    )  # fmt: skip


_SHOWN = 4
_CANDIDATES_SHOWN = 6


def write_dataset_page(
    prepared: Prepared, path: StrPath, *, queries: StrPath | None = None, simulated: bool = False
) -> Path:
    """Write one self-contained HTML file.

    Parameters
    ----------
    prepared : Prepared
    path : Path
        Where the page goes.
    queries : Path, optional
        Real spectra to show beside those of the set.
    simulated : bool
        Whether the page must say that the set is simulated.
    """
    path = Path(path)
    counts = prepared.manifest["counts"]
    return write_page(
        "dataset.html",
        path,
        {
            "simulated": simulated,
            "counts": counts,
            "fingerprint": prepared.manifest["options"]["fingerprint"],
            "bits_per_molecule": counts["fingerprint_bits_set"] / max(1, counts["molecules"]),
            "bins_per_spectrum": counts["bins_filled"] / max(1, counts["spectra"]),
            "examples": [_example(prepared, i) for i in _examples(prepared)],
            "settings": prepared.manifest["candidates"],
            "histogram": Markup(_candidate_histogram(prepared)),
            "queries": _queries(queries) if queries else [],
            "key": prepared.manifest["key"][:12],
        },
    )


def _examples(prepared: Prepared) -> list[int]:
    """Spectra of a few molecules from all over the set: of each, the one richest in peaks."""
    measured = np.unique(prepared.molecule)
    places = np.linspace(0, len(measured), _SHOWN + 2)[1:-1].astype(int)
    chosen = []
    for molecule in np.unique(measured[places]):
        spectra = np.flatnonzero(prepared.molecule == molecule)
        chosen.append(max(spectra.tolist(), key=lambda i: len(prepared.peaks(i)[0])))
    return chosen


def _example(prepared: Prepared, spectrum: int) -> dict[str, Any]:
    molecule = int(prepared.molecule[spectrum])
    mz, intensities = prepared.peaks(spectrum)
    setting = "formula" if "formula" in prepared.settings else next(iter(prepared.settings), None)
    candidates = prepared.candidates(setting).of_molecule(molecule).tolist() if setting else []
    rivals = [candidate for candidate in candidates if candidate != molecule]
    shown = rivals[:_CANDIDATES_SHOWN]
    energy = float(prepared.collision_energy[spectrum])
    return {
        "identifier": prepared.identifiers[spectrum],
        "adduct": prepared.adduct(spectrum),
        "precursor_mz": float(prepared.precursor_mz[spectrum]),
        "energy": None if np.isnan(energy) else energy,
        "peaks": len(mz),
        "formula": prepared.formulas[molecule],
        "smiles": prepared.smiles[molecule],
        "spectrum": Markup(spectrum_svg(mz, intensities, float(prepared.precursor_mz[spectrum]))),
        "molecule": Markup(molecule_svg(prepared.smiles[molecule])),
        "setting": setting,
        "others": len(rivals),
        "candidates": [Markup(molecule_svg(prepared.smiles[c], 130, 100)) for c in shown],
    }


def _candidate_histogram(prepared: Prepared) -> str:
    sizes = {f"equal {name}": prepared.candidates(name).sizes for name in prepared.settings}
    return histogram_svg(sizes, "candidates in a list", "molecules") if sizes else ""


def _queries(path: StrPath) -> list[dict[str, Any]]:
    rejects: list[tuple[str, str]] = []
    return [
        {
            "name": spectrum.identifier,
            "formula": spectrum.metadata.get("formula", ""),
            "precursor_mz": spectrum.precursor_mz,
            "spectrum": Markup(
                spectrum_svg(spectrum.mz, spectrum.intensities, spectrum.precursor_mz)
            ),
            "molecule": Markup(molecule_svg(spectrum.metadata["smiles"])),
        }
        for spectrum in read_spectra(path, rejects)
    ][:3]


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
                for warning in each.run.metadata["warnings"]
            ],
            "made": [_made(label, each.run) for label, each in runs.items()],
            "key": shown[0].run.metadata["data"]["key"][:12],
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


def _belief(label: str, beliefs: PosteriorReport) -> dict[str, object]:
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
        "loss": run.description.name,
        "options": _options(run),
        "model": run.description.model_name,
        "steps": run.metadata["steps"],
        "seconds": run.metadata["seconds"],
        "lr": run.description.options.get("lr"),
        "seed": run.seed,
    }


def _options(run: Run) -> str:
    """Options of the loss, or how many features of channels have weights."""
    if (fitted := run.description.fitted) is not None:
        return f"{len(fitted.channels)} channels, fitted"
    return ", ".join(f"{name} {text}" for name, text in format_options(run.loss.options))


def _reliability(runs: dict[str, Shown]) -> Markup | None:
    drawn = {
        label: reliability(*each.beliefs.calibrated.evaluated.merged())
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


KIND = "report"
INDEX = "index.html"
MANIFEST = Manifest(KIND, DatasetError, versions=(1,))


def look_at_runs(
    runs: Sequence[Run],
    how: Scoring,
    *,
    decode: bool = True,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> list[Shown]:
    """Score runs of one data set in one way.

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

    Returns
    -------
    list of Shown

    Raises
    ------
    RunError
        There is none, one is there twice, is not finished, or was trained on other data.
    """
    check_runs(runs)
    prepared = runs[0].open_data(data)
    decode = decode and len(prepared.in_fold("val")) > 0
    return [
        Shown(
            run,
            evaluate(run, how, data=data, progress=progress),
            posterior_report(run, how, data=data, progress=progress) if decode else None,
        )
        for run in runs
    ]


@dataclass(frozen=True)
class Report(Tabular):
    """A report that was written.

    Attributes
    ----------
    page : Path
        To be looked at first.
    shown : list of Shown
        The runs with their numbers.
    """

    page: Path
    shown: list[Shown]

    def to_table(self) -> Table:
        """The trade-off: one row for each run, the controls last, and chance."""
        rows = tradeoff_rows(self.shown)
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

    Parameters
    ----------
    runs, how, decode, data, progress
        As in `look_at_runs`.
    out : Path
        Folder to make. An older report is replaced, anything else is not.

    Returns
    -------
    Report

    Raises
    ------
    RunError
        As in `look_at_runs`.
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
        shown = look_at_runs(runs, how, decode=decode, data=data, progress=progress)
        with atomic_directory(out) as partial:
            write_dataset_page(prepared, partial / "data.html")
            write_runs_page(shown, partial / INDEX, data_page="data.html")
            numbers = {label: _numbers(each) for label, each in labelled(shown).items()}
            (partial / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
            _sign(partial, shown)
    return Report(out / INDEX, shown)


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


def _numbers(shown: Shown) -> dict[str, Any]:
    facts = shown.evaluation.to_dict() | {"is_control": shown.control}
    return facts | (shown.beliefs.to_dict() if shown.beliefs is not None else {})


def _sign(folder: Path, shown: Sequence[Shown]) -> None:
    """What made it, and the files that are its own."""
    facts = {
        "version": __version__,
        "runs": {str(each.run.folder.resolve()): each.run.identity for each in shown},
        "data": shown[0].run.metadata["data"]["key"],
    }
    MANIFEST.write(folder, facts)
