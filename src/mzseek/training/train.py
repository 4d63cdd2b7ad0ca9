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
from mzseek.runs.checkpoints import best_model
from mzseek.runs.predictions import label_of, predict_fold, random_fold
from mzseek.runs.run import Run
from mzseek.training.checks import check_run
from mzseek.training.loop import fit
from mzseek.training.options import Options, for_resume, for_steps, protocol_lines

PREDICTED_FOLDS = ("val", "test")


def train(
    prepared: Prepared,
    options: Options,
    out: StrPath,
    *,
    resume: bool = False,
    progress: Progress = silent,
    say: Log = no_log,
) -> Run:
    """Train a model, validate it, and save its best weights by each metric with their predictions.

    Parameters
    ----------
    prepared : Prepared
    options : Options
    out : Path
        Run folder to make, or to resume.
    resume : bool
        Resume an interrupted run: the result is what it would have been without interruption.
    progress : callable of (stage, done, total)
    say : callable of str
        Gets a line a validation, and warnings.

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
    with threads_set(options.threads):
        run = _reopen(out, options, prepared) if resume else None
        if run is not None and run.finished:
            say(f"{out} has ended already.")
            return run
        with sole_writer(out / RUN, "training a model"):
            prepared.verify()
            run = _reopen(out, options, prepared) if resume else None
            if run is None:
                steps = check_run(prepared, options)
                options = for_steps(options, steps)
                run = Run.create(out, options.described(prepared), prepared, machine())
                for line in protocol_lines(options, steps) if options.baseline is None else ():
                    say(line)
            if run.baseline is not None:
                _score_at_random(run, prepared)
            else:
                fit(run, prepared, progress=progress, say=say)
                _predict(run, prepared, progress)
            run.metadata["status"] = "finished"
            run.save()
            shutil.rmtree(run.state, ignore_errors=True)
            return run


def _reopen(out: Path, options: Options, prepared: Prepared) -> Run | None:
    """Open the run that was begun there with these options and data; None if there is none."""
    if not (out / RUN).exists():
        return None
    run = Run.open(out)
    begun = Options.of_run(run)
    options = for_resume(options, begun)
    if begun != options:
        then, now = begun.flat(), options.flat()
        name = next(name for name in now if then.get(name) != now[name])
        raise RunError(
            f"{out}: was begun with {name} {then.get(name)}, not {now[name]}; resume it with the "
            "same options, or name another --out"
        )
    if run.metadata["data"]["key"] != prepared.manifest["key"]:
        raise RunError(f"{out}: was begun on other data than {prepared.folder} holds now")
    if run.metadata["data"]["negatives"] != prepared.drawn_by(options.candidates):
        raise RunError(
            f"{out}: was begun with other {options.candidates} lists than {prepared.folder} holds "
            "now: they were drawn anew; name another --out"
        )
    return run


def _predict(run: Run, prepared: Prepared, progress: Progress) -> None:
    """Save the predictions of every checkpoint that is best by a metric of the model's own score.

    Those of other rankings are made when `evaluate` first asks for them, which is seldom.
    """
    best = {metric: value for metric, value in run.best.items() if ranks_by(metric) is None}
    for step, metric in {value["step"]: metric for metric, value in best.items()}.items():
        model = best_model(run, metric, prepared)
        for fold in PREDICTED_FOLDS:
            folder = run.predictions(step, fold)
            if folder.exists() or not len(prepared.in_fold(fold)):
                continue
            stage = f"predicting {fold}, step {step:,}"
            predict_fold(
                model,
                prepared,
                fold,
                progress=lambda done, total, s=stage: progress(s, done, total),
            ).save(folder, label_of(run, step, fold))


def _score_at_random(run: Run, prepared: Prepared) -> None:
    """Save the random baseline: a run like others, with scores drawn at random."""
    best: dict[str, dict[str, Any]] = {}
    for fold in PREDICTED_FOLDS:
        if not len(prepared.in_fold(fold)):
            continue
        predictions = random_fold(prepared, fold, run.seed)
        predictions.save(run.predictions(0, fold), label_of(run, 0, fold))
        if fold == "val":
            means = validation_means(predictions, prepared)
            best = {name: {"step": 0, "value": value} for name, value in means.items()}
            run.write_history([{"step": 0, "epoch": 0.0, **means}])
    run.metadata |= {"best": best, "steps": 0, "seconds": 0.0}


Job = tuple[Path, Options, Path, str]  # prepared folder, options, run folder, name


def train_several(
    data: StrPath,
    runs: dict[str, Options],
    out: StrPath,
    *,
    processes: int | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> dict[str, Run]:
    """Train runs in parallel, one thread each.

    On a few cores that takes less time than one run after the other with all of them, since no
    thread waits for another.

    Parameters
    ----------
    data : Path
        Prepared folder.
    runs : dict of str to Options
        By name; each run goes into a folder of its name, and no two into one.
    out : Path
        Folder of the runs. Finished runs with the same options are left as they are.
    processes : int, optional
        Runs at a time, on this machine; by default as many as there are cores.
    engine : Engine, optional
        Train elsewhere, such as on a Ray cluster whose machines see both folders. A run whose
        worker dies resumes from its last validation on another.
    progress : callable of (run's name, step, steps)
    say : callable of str
        Gets the warnings of each run.

    Raises
    ------
    RunError
        Two names are one folder.
    MzseekError
        A run has failed, or its process was killed. The others are ended; each resumes from its
        last validation when it is asked for again.
    """
    data, out = Path(data), Path(out)
    names: dict[Path, str] = {}
    for name in runs:
        first = names.setdefault((out / name).resolve(), name)
        if first != name:
            raise RunError(f"{out / name}: is the folder of two runs, {first!r} and {name!r}")
    data, out = data.resolve(), out.resolve()
    jobs = [(data, replace(options, threads=1), out / name, name) for name, options in runs.items()]
    engine = engine or LocalEngine(processes)
    for _ in engine.long_results(train_one, jobs, progress=progress, say=say):
        pass
    return {name: Run.open(out / name) for name in runs}


def train_one(job: Job, channel: Channel) -> None:
    """Train or resume a run, and report its steps and warnings under its name."""
    if channel.is_elsewhere:
        keep_freed_memory()
    data, options, out, name = job

    def report(stage: str, done: int, total: int | None = None) -> None:
        if stage == "training":
            channel.progress(name, done, total)

    def say(line: str) -> None:
        if line.startswith("warning"):
            channel.say(f"{name}: {line}")

    train(Prepared.open(data), options, out, resume=True, progress=report, say=say)
