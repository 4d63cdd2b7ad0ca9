"""Trials of an experiment: list, run and choose them."""

import hashlib
import itertools
import json
import re
import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import ExperimentError, MzseekError
from mzseek.core.registry import check_name
from mzseek.database import Database, build_database, file_sources
from mzseek.datasets.extra_lists import add_negatives, negatives_name
from mzseek.datasets.files import DatasetFiles, dataset_of, find_dataset, read_candidates
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.experiments.experiment import Column, Experiment, Row, Scale
from mzseek.experiments.results import Measured
from mzseek.io import StrPath, atomic_directory, atomic_file
from mzseek.io.manifest import RUN
from mzseek.losses import loss_named
from mzseek.models import ENCODERS, SCORERS
from mzseek.parallel import Channel, Engine, LocalEngine, Log, no_log
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.run import CHECKPOINTS, PREDICTIONS, Run

if TYPE_CHECKING:
    from mzseek.training.options import Options


_MARK = "MADE-BY-MZSEEK-EXPERIMENTS.txt"


@dataclass
class Site:
    """A folder of experiments.

    Attributes
    ----------
    out : Path
    files : DatasetFiles
        The data set.
    database : Path or None
        Molecules to mine negatives from.
    molecules : Path or None
        A file to build one from, where none is given.
    """

    out: Path
    files: DatasetFiles
    database: Path | None = None
    molecules: Path | None = None
    progress: Progress = silent
    _opened: dict[str, Prepared] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        out: StrPath,
        data: StrPath | None = None,
        database: StrPath | None = None,
        progress: Progress = silent,
    ) -> "Site":
        """Experiments on a data set: its folder, its table, or None for bundled spectra."""
        out = Path(out)
        chosen = None if database is None else Path(database)
        if data is not None:
            table = Path(data)
            files = find_dataset(table) if table.is_dir() else dataset_of(table)
            return cls(out, files, chosen, progress=progress)
        made = out / "data"
        if not made.is_dir():
            from mzseek.bundle import Bundle
            from mzseek.bundle.subset import write_subset

            with atomic_directory(made) as folder:
                lists = write_subset(Bundle.open(), folder, with_formula=True).candidates
                entries = itertools.chain(
                    *(read_candidates(path, _skip) for path in lists.values())
                )
                smiles = dict.fromkeys(itertools.chain(*(candidates for _, candidates in entries)))
                (folder / "molecules.smi").write_text("\n".join(smiles), encoding="utf-8")
        return cls(out, find_dataset(made), chosen, made / "molecules.smi", progress)

    def prepared(self, fingerprint: str) -> Prepared:
        """The data set with that fingerprint; prepared once."""
        if fingerprint not in self._opened:
            folder = self.out / "prepared" / fingerprint
            self._opened[fingerprint], _ = prepare(
                self.files.spectra, self.files.candidates, folder,
                PrepareOptions(fingerprint=fingerprint), progress=self.progress,
            )  # fmt: skip
        return self._opened[fingerprint]

    def lists(self, fingerprint: str, hard: tuple[str, int] | None) -> Prepared:
        """The data set, with negatives mined if they are asked for."""
        prepared = self.prepared(fingerprint)
        if hard is None:
            return prepared
        by, keep = hard
        if negatives_name("hardest", by, keep) not in prepared.settings:
            prepared, _ = add_negatives(
                prepared, self._molecules(fingerprint), by=by, keep=keep, progress=self.progress
            )
            self._opened[fingerprint] = prepared
        return prepared

    def runs(self, fingerprint: str) -> Path:
        """Folder of the runs on that fingerprint."""
        return self.out / "runs" / fingerprint

    def facts(self) -> Mapping[str, Any]:
        """Which data these are."""
        return {"spectra": self.files.spectra.name if self.molecules is None else "bundled spectra"}

    def _molecules(self, fingerprint: str) -> Database:
        if self.database is not None:
            return Database.open(self.database)
        if self.molecules is None:
            raise ExperimentError("hard negatives need molecules: give --database")
        folder = self.out / "databases" / fingerprint
        if not folder.exists():
            build_database(file_sources([self.molecules]), folder, fingerprint=fingerprint)
        return Database.open(folder)


def _skip(where: str, reason: str) -> None:
    """Ignore a skipped record."""


def claim(out: StrPath) -> None:
    """Mark a folder as one of experiments, unless it holds something else.

    Raises
    ------
    ExperimentError
        It is a file, or a folder of something else.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ExperimentError(f"{out}: is a file, expected a folder to make")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
        raise ExperimentError(f"{out}: exists and holds no experiments; name another --out")
    with atomic_file(out / _MARK) as partial:
        partial.write_text("Runs and results of `mzseek reproduce` or `mzseek tune`.\n")


SETTINGS = (
    "loss",
    "model",
    "candidates",
    "fingerprint",
    "similarity",
    "lr",
    "hard_by",
    "hard_keep",
)
USUAL_LISTS = "mass"


@dataclass(frozen=True)
class Setup:
    """What a cell's runs have in common: all but the learning rate, what is tuned, and the seed.

    Attributes
    ----------
    loss, model, fingerprint : str
    candidates : str
        Lists that are trained on.
    hard : (str, int) or None
        Negatives to be mined first: by mass or formula, and how many a list.
    parts : tuple of (str, value)
        Options of parts, such as ("loss.gamma", 2.0).
    epochs : int
    protocol : str
    """

    loss: str
    model: str
    fingerprint: str
    candidates: str
    hard: tuple[str, int] | None
    parts: tuple[tuple[str, Any], ...]
    epochs: int
    protocol: str


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes
    ----------
    setup : Setup
        With the values that are tuned filled in.
    lr : float
    seed : int
    """

    setup: Setup
    lr: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder: what a reader looks for, and a digest of all that makes it.

        An option that has its default is left out: the tables share a run, however they ask for it.
        """
        usual = _defaults(self.setup.loss, self.setup.model)
        own = tuple((name, v) for name, v in self.setup.parts if usual.get(name) != v)
        setup = replace(self.setup, parts=own)
        words = [setup.loss, "" if setup.model == "mlp" else setup.model, setup.candidates]
        words += [f"{name.partition('.')[2]}{_short(value)}" for name, value in setup.parts]
        words += [f"lr{self.lr:g}", f"seed{self.seed}"]
        made = json.dumps([vars(setup), self.lr, self.seed], sort_keys=True, default=str)
        digest = hashlib.sha256(made.encode()).hexdigest()[:8]
        return re.sub(r"[^A-Za-z0-9.+-]+", "-", "-".join(filter(None, words))) + f"-{digest}"

    def options(self) -> "Options":
        """What `mzseek.training.train.train` is asked for."""
        from mzseek.training.options import Options, with_protocol

        setup = self.setup
        parts: dict[str, dict[str, Any]] = {}
        for name, value in setup.parts:
            part, _, option = name.partition(".")
            parts.setdefault(part, {})[option] = value
        options = Options.of(
            setup.loss, setup.model, parts, candidates=setup.candidates, epochs=setup.epochs,
            lr=self.lr, seed=self.seed,
        )  # fmt: skip
        return with_protocol(options, setup.protocol)


@dataclass(frozen=True)
class Asked:
    """A cell of a table of runs.

    Attributes
    ----------
    grid : tuple of tuples of Trial
        One inner tuple for each point that is chosen among, with a trial for each seed.
    metric : str
    candidates : str
        Lists it is measured on.
    fold : str
    similarity : str or None
    keeps_models : bool
        Whether the models themselves are needed once their numbers are measured.
    """

    grid: tuple[tuple[Trial, ...], ...]
    metric: str
    candidates: str
    fold: str
    similarity: str | None = None
    keeps_models: bool = False

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All of its runs."""
        return tuple(itertools.chain.from_iterable(self.grid))


def asked_of(experiment: Experiment, row: Row, column: Column, scale: Scale) -> Asked | None:
    """The runs behind a cell; None where the table has none, or it is carried as published.

    Parameters
    ----------
    experiment : Experiment
    row, column
        Of it.
    scale : Scale
        As `Experiment.at` gives it.

    Raises
    ------
    ExperimentError
        A setting is unknown.
    """
    if row.is_literature or not experiment.has_cell(row, column):
        return None
    where = f"{experiment.name}: {row.key}: {column.key}"
    settings = {**column.settings, **row.settings, **row.in_columns.get(column.key, {})}
    scale = replace(scale, **row.scales.get(scale.name, {}))
    lists = column.candidates or USUAL_LISTS
    setup = _setup(settings, lists, experiment, scale, where)
    rates = settings.get("lr", scale.lr or experiment.lr)
    rates = rates if isinstance(rates, tuple) else (rates,)
    if not rates:
        raise ExperimentError(f"{where}: no learning rate; give one in protocol: lr")
    seeds = range(scale.seeds or experiment.seeds)
    grid = tuple(
        tuple(Trial(point, float(rate), seed) for seed in seeds)
        for point in _points(setup)
        for rate in (rates if setup.model != "random" else rates[:1])
    )
    similarity = settings.get("similarity")
    return Asked(grid, column.metric, lists, experiment.fold, similarity)


def _setup(
    settings: Mapping[str, Any], lists: str, experiment: Experiment, scale: Scale, where: str
) -> Setup:
    for name in settings:
        if "." not in name:
            check_name(SETTINGS, name, f"{where}: setting", ExperimentError)
    if "loss" not in settings:
        raise ExperimentError(f"{where}: loss is missing")
    loss = loss_named(settings["loss"])
    hard = None
    if "hard_keep" in settings:
        hard = (str(settings["hard_by"]), int(settings["hard_keep"]))
    # A loss that reads no lists is the same run whatever it is measured on.
    trained_on = settings.get("candidates", lists if loss.reads_candidates else USUAL_LISTS)
    if hard is not None:
        trained_on = f"hard-{hard[0]}-{hard[1]}"
    epochs = scale.epochs or experiment.epochs
    if loss.reads_candidates and scale.listwise_epochs is not None:
        epochs = scale.listwise_epochs
    parts = {**_fitting(scale.settings, loss.name, settings.get("model", "mlp")), **settings}
    return Setup(
        loss.name, settings.get("model", "mlp"), settings.get("fingerprint", "morgan2"),
        trained_on, hard, tuple(sorted((n, v) for n, v in parts.items() if "." in n)), epochs,
        scale.protocol,
    )  # fmt: skip


def _fitting(settings: Mapping[str, Any], loss: str, model: str) -> dict[str, Any]:
    """Of a scale's options, which are for all parts, those that these parts have."""
    own = _defaults(loss, model)
    return {name: value for name, value in settings.items() if name in own}


def _defaults(loss: str, model: str) -> dict[str, Any]:
    """Every option of the parts of a run, by its whole name, with its default."""
    owners: dict[str, Any] = {"loss": loss_named(loss)}
    owners["scorer"] = SCORERS[loss_named(loss).scorer]
    if model in ENCODERS:
        owners["encoder"] = ENCODERS[model]
    return {
        f"{part}.{name}": value
        for part, owner in owners.items()
        for name, value in vars(owner.options()).items()
    }


def _points(setup: Setup) -> list[Setup]:
    """One setup for each combination of the values that are tuned."""
    names = [name for name, _ in setup.parts]
    values = [value if isinstance(value, tuple) else (value,) for _, value in setup.parts]
    return [
        replace(setup, parts=tuple(zip(names, chosen, strict=True)))
        for chosen in itertools.product(*values)
    ]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
    say: Log = no_log,
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
    from mzseek.training.train import train_one

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
