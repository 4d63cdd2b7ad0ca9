"""A folder about runs of one data set: pages, pictures and the numbers behind them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mzseek.errors import DatasetError, RunError
from mzseek.evaluation.beliefs import beliefs_of
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.files import StrPath, atomic_directory, sole_writer
from mzseek.files.manifest import Manifest
from mzseek.files.owned import ensure_replaceable
from mzseek.report.dataset_page import write_dataset_page
from mzseek.report.runs_page import write_runs_page
from mzseek.report.shown import Shown, labelled
from mzseek.report.tradeoff import LABELS, tradeoff_rows
from mzseek.runs.run import Run
from mzseek.tables import Table, Tabular
from mzseek.version import __version__
from mzseek.work.progress import Progress, silent

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
            beliefs_of(run, how, data=data, progress=progress) if decode else None,
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
        if run.facts["data"]["key"] != first.facts["data"]["key"]:
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
        "data": shown[0].run.facts["data"]["key"],
    }
    MANIFEST.write(folder, facts)
