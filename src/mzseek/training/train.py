"""Train one or several runs from a prepared folder."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from mzseek.core.errors import RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import ranks_by, validation_means
from mzseek.io import StrPath, sole_writer
from mzseek.io.manifest import RUN
from mzseek.models.layers import machine, threads_set
from mzseek.parallel import Channel, Engine, LocalEngine
from mzseek.parallel.engine import Log, Progress, keep_freed_memory, no_log, silent
from mzseek.runs.checkpoints import kept_model
from mzseek.runs.predictions import label_of, predict_fold, random_fold
from mzseek.runs.run import Run
from mzseek.training.loop import check_tensorboard, fit
from mzseek.training.options import Options, as_begun, check_threads, for_steps, told
from mzseek.training.state import check_run

PREDICTED = ("val", "test")


def train(
    prepared: Prepared,
    options: Options,
    out: StrPath,
    *,
    resume: bool = False,
    tensorboard: bool = False,
    progress: Progress = silent,
    say: Log = no_log,
) -> Run:
    """Train a model, validate it, keep its best weights by each metric, and its predictions.

    Parameters
    ----------
    prepared : Prepared
    options : Options
    out : Path
        Run folder to make, or to go on with.
    resume : bool
        Go on with a run that was interrupted: the result is what it would have been without.
    tensorboard : bool
        Write TensorBoard's event files too.
    progress : callable of (stage, done, total)
    say : callable of str
        Gets a line a validation, and warnings.

    Returns
    -------
    Run

    Raises
    ------
    RunError
        Options that don't fit, an empty fold, a folder that is in use.
    CacheError
        A file of the prepared folder has changed since it was written.
    BusyError, WriteError
        Another process is training this run, or the folder cannot be written.
    """
    out = Path(out)
    options.check()
    check_threads(options)
    if tensorboard:
        check_tensorboard()
    with threads_set(options.threads):
        run = _reopened(out, options, prepared) if resume else None
        if run is not None and run.finished:
            say(f"{out} has ended already.")
            return run
        with sole_writer(out / RUN, "training a model"):
            prepared.verify()
            run = _reopened(out, options, prepared) if resume else None
            run = run or _begun(out, options, prepared, say)
            if run.baseline is not None:
                _guess(run, prepared)
            else:
                fit(run, prepared, tensorboard=tensorboard, progress=progress, say=say)
                _predict(run, prepared, progress)
            _finish(run)
            return run


def _begun(out: Path, options: Options, prepared: Prepared, say: Log) -> Run:
    """A new run, whose options are complete."""
    steps = check_run(prepared, options)
    options = for_steps(options, steps)
    run = Run.create(out, options.described(prepared), prepared, machine())
    if options.baseline is None:
        for line in told(options, steps):
            say(line)
    return run


def _reopened(out: Path, options: Options, prepared: Prepared) -> Run | None:
    """The run that was begun there, if any; it must be this one."""
    if not (out / RUN).exists():
        return None
    run = Run.open(out)
    begun = Options.of_run(run)
    options = as_begun(options, begun)
    if begun != options:
        then, now = begun.flat(), options.flat()
        name = next(name for name in now if then.get(name) != now[name])
        raise RunError(
            f"{out}: was begun with {name} {then.get(name)}, not {now[name]}; resume it with the "
            "same options, or name another --out"
        )
    if run.facts["data"]["key"] != prepared.manifest["key"]:
        raise RunError(f"{out}: was begun on other data than {prepared.folder} holds now")
    if run.facts["data"]["negatives"] != prepared.drawn_by(options.candidates):
        raise RunError(
            f"{out}: was begun with other {options.candidates} lists than {prepared.folder} holds "
            "now: they were drawn anew; name another --out"
        )
    return run


def _finish(run: Run) -> None:
    """Note that it has ended; what it would have needed to go on goes."""
    run.facts["status"] = "finished"
    run.save()
    shutil.rmtree(run.state, ignore_errors=True)


def _predict(run: Run, prepared: Prepared, progress: Progress) -> None:
    """Predictions of every checkpoint that is the best of some metric of the model's own.

    Those of other rankings are made when they are asked for, which is seldom.
    """
    own = {metric: facts for metric, facts in run.best.items() if ranks_by(metric) is None}
    steps = {facts["step"]: metric for metric, facts in own.items()}
    for step, metric in steps.items():
        model = kept_model(run, metric, prepared)
        for fold in PREDICTED:
            folder = run.predictions(step, fold)
            queries = prepared.in_fold(fold)
            if folder.exists() or not len(queries):
                continue
            stage = f"predicting {fold}, step {step:,}"
            predict_fold(
                model,
                prepared,
                fold,
                progress=lambda done, total, s=stage: progress(s, done, total),
            ).save(folder, label_of(run, step, fold))


def _guess(run: Run, prepared: Prepared) -> None:
    """The random baseline: a run like others, with scores drawn at random."""
    best: dict[str, dict[str, Any]] = {}
    for fold in PREDICTED:
        queries = prepared.in_fold(fold)
        if not len(queries):
            continue
        predictions = random_fold(prepared, fold, run.seed)
        predictions.save(run.predictions(0, fold), label_of(run, 0, fold))
        if fold == "val":
            means = validation_means(predictions, prepared)
            best = {name: {"step": 0, "value": value} for name, value in means.items()}
            run.write_history([{"step": 0, "epoch": 0.0, **means}])
    run.facts |= {"best": best, "steps": 0, "seconds": 0.0}


Job = tuple[Path, Options, Path, str]  # prepared folder, options, run folder, name


def train_several(
    data: StrPath,
    wanted: dict[str, Options],
    out: StrPath,
    *,
    processes: int | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> dict[str, Run]:
    """Train runs side by side, one thread each.

    On a few cores that takes less time than one run after the other with all of them, since no
    thread waits for another.

    Parameters
    ----------
    data : Path
        Prepared folder.
    wanted : dict of str to Options
        By name; each run goes into a folder of its name, and no two into one.
    out : Path
        Folder of the runs. Runs that have ended with the same options are left as they are.
    processes : int, optional
        Runs at a time, on this machine; by default as many as there are cores.
    engine : Engine, optional
        Train elsewhere, such as on a Ray cluster whose machines see both folders. A run whose
        worker dies goes on from its last validation on another.
    progress : callable of (run's name, step, steps)
    say : callable of str
        Gets the warnings of each run.

    Returns
    -------
    dict of str to Run

    Raises
    ------
    RunError
        Two names are one folder.
    MzseekError
        A run has failed, or its process was killed. Runs at work are ended; each goes on from its
        last validation when it is asked for again.
    """
    data = Path(data)
    out = Path(out)
    _check_folders(wanted, out)
    data, out = data.resolve(), out.resolve()
    jobs = [
        (data, replace(options, threads=1), out / name, name) for name, options in wanted.items()
    ]
    engine = engine or LocalEngine(processes)
    for _ in engine.long_results(train_one, jobs, progress=progress, say=say):
        pass
    return {name: Run.open(out / name) for name in wanted}


def train_one(job: Job, channel: Channel) -> None:
    """Train a run, or go on with it, and tell of its steps and warnings by its name."""
    from mzseek.datasets.prepared import Prepared

    if channel.is_elsewhere:
        keep_freed_memory()
    data, options, out, name = job

    def note(stage: str, done: int, total: int | None = None) -> None:
        if stage == "training":
            channel.progress(name, done, total)

    def say(line: str) -> None:
        if line.startswith("warning"):
            channel.say(f"{name}: {line}")

    train(Prepared.open(data), options, out, resume=True, progress=note, say=say)


def _check_folders(wanted: dict[str, Options], out: Path) -> None:
    """Refuse names that are one folder: one run would be trained over the other."""
    owners: dict[Path, str] = {}
    for name in wanted:
        owner = owners.setdefault((out / name).resolve(), name)
        if owner != name:
            raise RunError(f"{out / name}: is the folder of two runs, {owner!r} and {name!r}")
