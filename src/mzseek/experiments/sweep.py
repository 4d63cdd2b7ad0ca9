"""Trials that are missing, run wherever there is room for them, and the best of them chosen."""

import shutil
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mzseek.errors import ExperimentError, MzseekError
from mzseek.experiments.measured import Measured
from mzseek.experiments.site import Site
from mzseek.experiments.trials import Asked, Trial
from mzseek.files.manifest import RUN
from mzseek.runs.run import CHECKPOINTS, PREDICTIONS, Run
from mzseek.work import Channel, Engine, LocalEngine, Progress, Say, silent, unheard

# What is measured of a trial as soon as it has ended: metric, lists, fold, similarity.
Wanted = tuple[str, str, str, str | None]


@dataclass(frozen=True)
class Job:
    """A trial with all that a worker needs to know.

    Attributes
    ----------
    data, out, measured : Path
        The prepared folder, the run's folder, the file of its numbers.
    trial : Trial
    wanted : tuple of Wanted
    drops_model : bool
        Whether weights and predictions go as soon as they are measured.
    """

    data: Path
    out: Path
    measured: Path
    trial: Trial
    wanted: tuple[Wanted, ...]
    drops_model: bool = False


@dataclass(frozen=True)
class Ended:
    """How a trial has ended: with nothing to say, or with the reason why it failed."""

    name: str
    failed: str = ""


def jobs_of(cells: Iterable[Asked], site: Site, *, drop_models: bool = False) -> list[Job]:
    """Every trial behind these cells, once; data are prepared and negatives mined on the way.

    With ``drop_models``, weights and predictions go once they are measured, unless a cell needs
    them later.
    """
    kept: set[str] = set()
    trials: dict[str, Trial] = {}
    wanted: dict[str, dict[Wanted, None]] = {}
    for cell in cells:
        for trial in cell.trials:
            asked: Wanted = (cell.metric, cell.candidates, cell.fold, cell.similarity)
            name = f"{trial.setup.fingerprint}/{trial.name}"
            trials.setdefault(name, trial)
            kept |= {name} if cell.keeps_models else set()
            wanted.setdefault(name, {})[asked] = None
    jobs = []
    for name, measures in wanted.items():
        trial = trials[name]
        setup = trial.setup
        prepared = site.lists(setup.fingerprint, setup.hard)
        jobs.append(
            Job(
                prepared.folder.resolve(), run_folder(site, trial).resolve(),
                measured_file(site, trial).resolve(), trial, tuple(measures),
                drop_models and name not in kept,
            )
        )  # fmt: skip
    return jobs


def run_folder(site: Site, trial: Trial) -> Path:
    """Where a trial's run is."""
    return site.runs(trial.setup.fingerprint) / trial.name


def measured_file(site: Site, trial: Trial) -> Path:
    """Where a trial's numbers are kept."""
    return site.out / "measured" / trial.setup.fingerprint / f"{trial.name}.json"


def run_jobs(
    jobs: Sequence[Job],
    *,
    engine: Engine | None = None,
    progress: Progress = silent,
    say: Say = unheard,
    ended: Callable[["Ended"], None] = lambda _: None,
) -> dict[str, str]:
    """Run what has not been run, side by side; a trial that fails does not stop the others.

    Parameters
    ----------
    jobs : sequence of Job
        Trials that have ended are left as they are; one that was cut off goes on from its last
        validation.
    engine : Engine, optional
        Processes of this machine by default.
    progress : callable of (trial's name, step, steps)
    say : callable of str
    ended : callable of Ended
        Hears of each trial that has ended.

    Returns
    -------
    dict of str to str
        Trials that have failed, and why.
    """
    engine = engine or LocalEngine()
    failed = {}
    for one in engine.long_results(run_job, jobs, progress=progress, say=say):
        ended(one)
        if one.failed:
            failed[one.name] = one.failed
    return failed


def run_job(job: Job, channel: Channel) -> Ended:
    """Train a trial, or go on with it, and measure it."""
    from mzseek.training.several import train_one

    name = job.trial.name
    try:
        train_one((job.data, replace(job.trial.options(), threads=1), job.out, name), channel)
        run = Run.open(job.out)
        numbers = Measured(run, job.measured)
        for wanted in job.wanted:
            numbers.value(*wanted)
        if job.drops_model:
            _drop_model(run)
    except MzseekError as error:
        return Ended(name, " ".join(str(error).split()))
    return Ended(name)


def _drop_model(run: Run) -> None:
    """Remove all of a run but what made it, its history and, elsewhere, its numbers."""
    for name in (CHECKPOINTS, PREDICTIONS):
        shutil.rmtree(run.folder / name, ignore_errors=True)


def opened(site: Site, trial: Trial) -> tuple[Run, Measured] | None:
    """A trial's run with its numbers; None if it has not ended."""
    folder = run_folder(site, trial)
    if not (folder / RUN).exists():
        return None
    run = Run.open(folder)
    return (run, Measured(run, measured_file(site, trial))) if run.finished else None


@dataclass(frozen=True)
class Chosen:
    """A trial that has ended, of the point that was chosen.

    Attributes
    ----------
    trial : Trial
    run : Run
    numbers : Measured
    """

    trial: Trial
    run: Run
    numbers: Measured


def chosen_runs(asked: Asked, select: str, site: Site) -> tuple[Chosen, ...]:
    """The runs of the grid point with the best mean over seeds of a validation metric.

    Parameters
    ----------
    asked : Asked
    select : str
        The metric; each seed counts with the best that it reached.
    site : Site

    Returns
    -------
    tuple of Chosen
        One for each seed; empty if no point has all of its runs.
    """
    points = []
    for trials in asked.grid:
        found = [(trial, opened(site, trial)) for trial in trials]
        ended = tuple(Chosen(trial, *both) for trial, both in found if both is not None)
        if len(ended) == len(trials):
            points.append(ended)
    name = f"{select}/{asked.candidates}"
    return max(points, key=lambda ended: _reached(ended, name), default=())


def _reached(ended: tuple[Chosen, ...], name: str) -> float:
    if any(name not in one.run.best for one in ended):
        raise ExperimentError(f"{ended[0].run.folder}: {name} was not validated")
    return statistics.fmean(float(one.run.best[name]["value"]) for one in ended)
