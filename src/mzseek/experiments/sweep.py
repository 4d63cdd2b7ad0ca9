"""Trials of an experiment: list, run and choose them."""

import hashlib
import itertools
import json
import re
import shutil
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import ExperimentError, MzseekError
from mzseek.core.registry import check_name
from mzseek.database import Database, build_database, file_sources
from mzseek.datasets.extra_lists import add_negatives, negatives_name
from mzseek.datasets.files import DatasetFiles, dataset_of, find_dataset, read_candidates
from mzseek.datasets.prepare import PrepareOptions, prepare
from mzseek.datasets.prepared import Prepared
from mzseek.experiments.devices import take_device, visible_devices
from mzseek.experiments.experiment import VARIANTS, Column, Experiment, Row, Scale
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


NEEDS_DATABASE = "needs a database (--database DB)"
_MARK = "MADE-BY-MZSEEK-EXPERIMENTS.txt"


@dataclass
class Workspace:
    """A folder of experiments on a data set.

    Negatives are mined from ``database``, or from one that is built of the file ``molecules``.
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
    ) -> "Workspace":
        """Open a folder for a data set: its folder, its table, or None for bundled spectra."""
        out = Path(out)
        store = None if database is None else Path(database)
        if data is not None:
            table = Path(data)
            files = find_dataset(table) if table.is_dir() else dataset_of(table)
            return cls(out, files, store, progress=progress)
        bundled = out / "data"
        if not bundled.is_dir():
            from mzseek.bundle import Bundle
            from mzseek.bundle.subset import write_subset

            with atomic_directory(bundled) as folder:
                lists = write_subset(Bundle.open(), folder, with_formula=True).candidates
                entries = itertools.chain(
                    *(read_candidates(path, lambda *_: None) for path in lists.values())
                )
                smiles = dict.fromkeys(itertools.chain(*(candidates for _, candidates in entries)))
                (folder / "molecules.smi").write_text("\n".join(smiles), encoding="utf-8")
        return cls(out, find_dataset(bundled), store, bundled / "molecules.smi", progress)

    def prepared(self, fingerprint: str) -> Prepared:
        """Return the data set with that fingerprint; prepared once."""
        if fingerprint not in self._opened:
            folder = self.out / "prepared" / fingerprint
            self._opened[fingerprint], _ = prepare(
                self.files.spectra, self.files.candidates, folder,
                PrepareOptions(fingerprint=fingerprint), progress=self.progress,
            )  # fmt: skip
        return self._opened[fingerprint]

    def lists(self, fingerprint: str, hard: tuple[str, int] | None) -> Prepared:
        """Return the data set, with negatives mined (by, how many) if asked for."""
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

    @property
    def can_mine(self) -> bool:
        """Whether there are molecules to mine hard negatives from."""
        return self.database is not None or self.molecules is not None

    def runs(self, fingerprint: str) -> Path:
        """Return the folder of the runs on that fingerprint."""
        return self.out / "runs" / fingerprint

    def metadata(self) -> Mapping[str, Any]:
        """Return which data these are."""
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


def mark_folder(out: StrPath) -> None:
    """Mark a folder as one of experiments; refuse a file or a folder of something else."""
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ExperimentError(f"{out}: is a file, expected a folder to make")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
        raise ExperimentError(f"{out}: exists and holds no experiments; name another --out")
    with atomic_file(out / _MARK) as partial:
        partial.write_text("Runs and results of `mzseek reproduce` or `mzseek tune`.\n")


SETTINGS = (
    "loss", "model", "candidates", "fingerprint", "similarity", "lr", "hard_by", "hard_keep",
    "judged_by",
)  # fmt: skip
JUDGED_BY = SETTINGS[-1]  # says how a model is judged, and changes nothing in its training
USUAL_LISTS = "mass"


@dataclass(frozen=True)
class TrialSetup:
    """What a cell's runs have in common: all but the learning rate, what is tuned, and the seed.

    Models are trained on the lists ``candidates``; ``hard`` negatives (by mass or formula, how many
    a list) are mined first; ``parts`` are options of components, such as ("loss.gamma", 2.0).
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
    """One run: its setup, with the values that are tuned filled in, learning rate and seed."""

    config: TrialSetup
    lr: float
    seed: int

    @property
    def name(self) -> str:
        """Name of its folder: what a reader looks for, and a digest of all that makes it.

        An option that has its default is left out, so that tables share a run.
        """
        defaults = _defaults(self.config.loss, self.config.model)
        changed = tuple((name, v) for name, v in self.config.parts if defaults.get(name) != v)
        config = replace(self.config, parts=changed)
        words = [config.loss, "" if config.model == "mlp" else config.model, config.candidates]
        words += [
            f"{name.partition('.')[2]}{f'{v:.4g}' if isinstance(v, float) else v}"
            for name, v in config.parts
        ]
        words += [f"lr{self.lr:g}", f"seed{self.seed}"]
        content = json.dumps([vars(config), self.lr, self.seed], sort_keys=True, default=str)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        return re.sub(r"[^A-Za-z0-9.+-]+", "-", "-".join(filter(None, words))) + f"-{digest}"

    def options(self) -> "Options":
        """Return the options of `mzseek.training.train.train`."""
        from mzseek.training.options import Options, with_protocol

        config = self.config
        parts: dict[str, dict[str, Any]] = {}
        for name, value in config.parts:
            part, _, option = name.partition(".")
            parts.setdefault(part, {})[option] = value
        options = Options.of(
            config.loss, config.model, parts, candidates=config.candidates, epochs=config.epochs,
            lr=self.lr, seed=self.seed,
        )  # fmt: skip
        return with_protocol(options, config.protocol)


# A measurement of a trial that has ended: metric, lists, fold, similarity.
Measure = tuple[str, str, str, str | None]


@dataclass(frozen=True)
class CellPlan:
    """The trials behind a cell, and what is measured of them.

    ``grid`` has one inner tuple for each point that is chosen among, with a trial for each seed;
    ``candidates`` are the lists it is measured on, and ``keeps_models`` says whether the models
    themselves are needed once their numbers are measured. With ``first_lr``, options are chosen at
    that learning rate, and then the learning rate with these options.
    """

    grid: tuple[tuple[Trial, ...], ...]
    metric: str
    candidates: str
    fold: str
    similarity: str | None = None
    keeps_models: bool = False
    first_lr: float | None = None

    def with_options(self, config: TrialSetup) -> "CellPlan":
        """Return the second stage: every learning rate with the options that were chosen."""
        return replace(
            self, grid=tuple(p for p in self.grid if p[0].config == config), first_lr=None
        )

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All of its trials."""
        return tuple(itertools.chain.from_iterable(self.grid))

    @property
    def measure(self) -> Measure:
        """Metric, lists, fold and similarity."""
        return self.metric, self.candidates, self.fold, self.similarity


def plan_cell(
    experiment: Experiment,
    row: Row,
    column: Column,
    scale: Scale,
    metric: str,
    keeps_models: bool = False,
) -> CellPlan | None:
    """Plan the trials of a cell at a scale of `Experiment.at`; ``metric`` is measured of them.

    Returns None where the table has no number, or it is carried as published. An unknown setting is
    an `ExperimentError`.
    """
    if row.literature or not experiment.has_cell(row, column):
        return None
    where = f"{experiment.name}: {row.key}: {column.key}"
    settings = {**column.settings, **row.settings, **row.in_columns.get(column.key, {})}
    scale = replace(scale, **row.scales.get(scale.name, {}))
    lists = column.candidates or USUAL_LISTS
    config = _trial_config(settings, lists, experiment, scale, where)
    rates = settings.get("lr", scale.lr or experiment.lr)
    rates = rates if isinstance(rates, tuple) else (rates,)
    if not rates:
        raise ExperimentError(f"{where}: no learning rate; give one in protocol: lr")
    seeds = range(scale.seeds or experiment.seeds)
    grid = tuple(
        tuple(Trial(point, float(rate), seed) for seed in seeds)
        for point in _points(config)
        for rate in (rates if config.model != "random" else rates[:1])
    )
    several = len({p[0].lr for p in grid}) > 1 and len({p[0].config for p in grid}) > 1
    first_lr = experiment.first_lr if several and experiment.first_lr in rates else None
    similarity = settings.get("similarity")
    return CellPlan(grid, metric, lists, experiment.fold, similarity, keeps_models, first_lr)


def _trial_config(
    settings: Mapping[str, Any], lists: str, experiment: Experiment, scale: Scale, where: str
) -> TrialSetup:
    for name in settings:
        if "." not in name:
            check_name(SETTINGS, name, f"{where}: setting", ExperimentError)
    if "loss" not in settings:
        raise ExperimentError(f"{where}: loss is missing")
    loss, model = loss_named(settings["loss"]), settings.get("model", "mlp")
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
    # A scale's options are for all components: each run gets those that its components have.
    defaults = _defaults(loss.name, model)
    of_scale = {**VARIANTS[scale.variant][0], **scale.settings}
    options = {name: value for name, value in of_scale.items() if name in defaults}
    parts = sorted((n, v) for n, v in {**options, **settings}.items() if "." in n)
    return TrialSetup(
        loss.name, model, settings.get("fingerprint", "morgan2"), trained_on, hard, tuple(parts),
        epochs, scale.protocol,
    )  # fmt: skip


def _defaults(loss: str, model: str) -> dict[str, Any]:
    """Return every option of a run's components, by its whole name, with its default."""
    components: dict[str, Any] = {"loss": loss_named(loss)}
    components["scorer"] = SCORERS[loss_named(loss).scorer]
    if model in ENCODERS:
        components["encoder"] = ENCODERS[model]
    return {
        f"{part}.{name}": value
        for part, component in components.items()
        for name, value in vars(component.options()).items()
    }


def _points(config: TrialSetup) -> list[TrialSetup]:
    """Return one setup for each combination of the values that are tuned."""
    names = [name for name, _ in config.parts]
    values = [value if isinstance(value, tuple) else (value,) for _, value in config.parts]
    return [
        replace(config, parts=tuple(zip(names, chosen, strict=True)))
        for chosen in itertools.product(*values)
    ]


@dataclass(frozen=True)
class TrialJob:
    """A trial with all that a worker needs to know.

    ``data`` is the prepared folder, ``out`` the run's, ``measured`` the file of its numbers. With
    ``drops_model``, weights and predictions are removed as soon as they are measured.
    """

    data: Path
    out: Path
    measured: Path
    trial: Trial
    measures: tuple[Measure, ...]
    drops_model: bool = False


@dataclass(frozen=True)
class TrialOutcome:
    """How a trial has ended: ``failed`` is the reason if it did; on which GPUs it was run."""

    name: str
    failed: str = ""
    device: str = ""


def plan_jobs(
    cells: Iterable[CellPlan], site: Workspace, *, drop_models: bool = False
) -> list[TrialJob]:
    """Return every trial of these cells once; data are prepared and negatives mined on the way.

    With ``drop_models``, weights and predictions are removed once they are measured, unless a cell
    needs them later. Of cells that are tuned in two stages, these are the trials of the first.
    """
    keeps: set[tuple[str, str]] = set()
    trials: dict[tuple[str, str], Trial] = {}
    measures: dict[tuple[str, str], dict[Measure, None]] = {}
    for cell in cells:
        for trial in cell.trials:
            name = (trial.config.fingerprint, trial.name)
            keeps |= {name} if cell.keeps_models else set()
            measures.setdefault(name, {})[cell.measure] = None
            if cell.first_lr in (None, trial.lr):
                trials.setdefault(name, trial)
    return [
        TrialJob(
            site.lists(trial.config.fingerprint, trial.config.hard).folder.resolve(),
            run_folder(site, trial).resolve(), measured_file(site, trial).resolve(), trial,
            tuple(measures[name]), drop_models and name not in keeps,
        )
        for name, trial in trials.items()
    ]  # fmt: skip


def run_folder(site: Workspace, trial: Trial) -> Path:
    """Return the folder of a trial's run."""
    return site.runs(trial.config.fingerprint) / trial.name


def measured_file(site: Workspace, trial: Trial) -> Path:
    """Return the file of a trial's numbers."""
    return site.out / "measured" / trial.config.fingerprint / f"{trial.name}.json"


def run_jobs(
    jobs: Sequence[TrialJob],
    *,
    engine: Engine | None = None,
    devices: Sequence[str] | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> list[TrialOutcome]:
    """Run trials in parallel; one that fails does not stop the others.

    Trials that have ended are left as they are; one that was cut off goes on from its last
    validation. Each worker takes one of ``devices`` for itself, or the GPU that its engine gives it
    where they are None. ``progress`` gets a trial with its number, its step and steps.
    """
    work = partial(run_job, devices=None if devices is None else tuple(devices))
    numbers: dict[str, int] = {}

    def report(stage: str, done: int, total: int | None = None) -> None:
        number = numbers.setdefault(stage, len(numbers) + 1)
        progress(f"trial {number:,} of {len(jobs):,}: {stage}", done, total)

    outcomes = []
    for outcome in (engine or LocalEngine()).long_results(work, jobs, progress=report, say=say):
        outcomes.append(outcome)
        if outcome.failed:
            say(f"{outcome.name} has failed: {outcome.failed}")
    return outcomes


def run_job(job: TrialJob, channel: Channel, devices: Sequence[str] | None = None) -> TrialOutcome:
    """Train a trial, or resume it, and measure it; any exception is the reason of its failure."""
    from mzseek.training.train import train_one

    name = job.trial.name
    try:
        take_device(devices)
        train_one((job.data, replace(job.trial.options(), threads=1), job.out, name), channel)
        run = Run.open(job.out)
        numbers = Measured(run, job.measured)
        for measure in job.measures:
            numbers.value(*measure)
        if job.drops_model:  # all but what made it, its history and, elsewhere, its numbers
            for folder in (CHECKPOINTS, PREDICTIONS):
                shutil.rmtree(run.folder / folder, ignore_errors=True)
    except Exception as error:  # memory that ran out, a fault: the other trials go on
        return TrialOutcome(name, reason_of(error), visible_devices())
    return TrialOutcome(name, "", visible_devices())


def reason_of(error: Exception) -> str:
    """Return an error in one line, with its type unless it is one of mzseek's."""
    kind = "" if isinstance(error, MzseekError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())


def opened(site: Workspace, trial: Trial) -> tuple[Run, Measured] | None:
    """Open a trial's run and its numbers; None if it has not ended."""
    folder = run_folder(site, trial)
    if not (folder / RUN).exists():
        return None
    run = Run.open(folder)
    return (run, Measured(run, measured_file(site, trial))) if run.finished else None


@dataclass(frozen=True)
class FinishedTrial:
    """A trial that has ended, of the point that was chosen."""

    trial: Trial
    run: Run
    numbers: Measured


def best_trials(plan: CellPlan, select: str, site: Workspace) -> tuple[FinishedTrial, ...]:
    """Return the trials, one a seed, of the point with the best mean of a validation metric.

    Each seed counts with the best that it reached. Empty if no point has all of its runs.
    """
    plan = settled(plan, select, site)
    points = []
    for trials in plan.grid:
        runs = [(trial, opened(site, trial)) for trial in trials]
        ended = tuple(FinishedTrial(trial, *run) for trial, run in runs if run is not None)
        if len(ended) == len(trials):
            points.append(ended)
    name = f"{select}/{plan.candidates}"

    def mean_over_seeds(ended: tuple[FinishedTrial, ...]) -> float:
        if any(name not in trial.run.best for trial in ended):
            raise ExperimentError(f"{ended[0].run.folder}: {name} was not validated")
        return statistics.fmean(float(trial.run.best[name]["value"]) for trial in ended)

    return max(points, key=mean_over_seeds, default=())


def settled(plan: CellPlan, select: str, site: Workspace) -> CellPlan:
    """Return the second stage of a cell that is tuned in two; any other as it is.

    Options are those of the best mean over seeds at ``first_lr``, on the usual lists whatever the
    cell is measured on, so that all cells of a row share their runs.
    """
    if plan.first_lr is None:
        return plan
    points = tuple(point for point in plan.grid if point[0].lr == plan.first_lr)
    first = replace(plan, grid=points, first_lr=None, candidates=USUAL_LISTS)
    best = best_trials(first, select, site)
    return plan.with_options(best[0].trial.config) if best else replace(first, grid=())
