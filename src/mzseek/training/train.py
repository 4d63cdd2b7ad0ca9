"""Training a run from a prepared folder."""

import logging
import os
import shutil
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mzseek.errors import RunError
from mzseek.evaluation.validation import validation_means
from mzseek.files import sole_writer
from mzseek.files.owned import RUN
from mzseek.models import Retriever, build
from mzseek.prepared.batch import BatchMaker
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import Slices
from mzseek.runs.checkpoint import start_from
from mzseek.runs.device import device
from mzseek.runs.kept import kept_model, spec_for
from mzseek.runs.options import BASELINES, Options
from mzseek.runs.predictions import label_of, predict_fold, random_fold
from mzseek.runs.run import Run
from mzseek.training.limits import check_size, check_threads
from mzseek.training.memory import keep_freed_memory
from mzseek.training.order import Batches, TrainingOrder, steps_an_epoch
from mzseek.training.protocol import as_begun, for_steps, told
from mzseek.training.state import load_state
from mzseek.work.progress import Progress, Say, silent, unheard

PREDICTED = ("val", "test")


def train(
    prepared: Prepared,
    options: Options,
    out: Path,
    *,
    resume: bool = False,
    tensorboard: bool = False,
    progress: Progress = silent,
    say: Say = unheard,
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
    options = options.resolved()
    check_threads(options)
    if options.threads:
        torch.set_num_threads(options.threads)
    if resume and (out / RUN).exists():
        run = _reopened(out, options, prepared)
        if run.finished:
            say(f"{out} has ended already.")
            return run
    with sole_writer(out / RUN, "training a model"):
        prepared.verify()
        if resume and (out / RUN).exists():
            run = _reopened(out, options, prepared)
            options = run.options
        else:
            steps = _check(prepared, options, tensorboard)
            options = for_steps(options, steps)
            run = Run.create(out, options, prepared)
            if options.model not in BASELINES:
                for line in told(options, steps):
                    say(line)
        keep_freed_memory()
        if options.model in BASELINES:
            _guess(run, prepared, options)
        else:
            _fit(run, prepared, options, tensorboard, progress, say)
            _predict(run, prepared, progress)
        run.facts["status"] = "finished"
        run.save()
        shutil.rmtree(run.state, ignore_errors=True)
        return run


def _fit(
    run: Run, prepared: Prepared, options: Options, tensorboard: bool, progress: Progress, say: Say
) -> None:
    with _quiet_lightning():
        import lightning

        from mzseek.training.keeper import Keeper
        from mzseek.training.learner import Learner

        spec = spec_for(prepared, options)
        model = build(spec, seed=options.seed)
        torch.manual_seed(options.seed)
        settings = (options.candidates,) if options.facts.reads_candidates else ()
        maker, order = _training_set(prepared, options, model, settings, say)
        watched = prepared.in_fold("val")
        validator = BatchMaker(
            prepared,
            model.encoder.reads,
            tuple(prepared.measured_settings),
            watched,
            backward=False,
        )
        keeper = Keeper(run, spec, order, validator, watched, progress, say)
        learner = Learner(model, options)
        if run.state.exists():
            facts = load_state(run.state, model, learner.optimizer, run.identity)
            keeper.restore(facts)
            learner.first_step = int(facts["step"])
            say(f"going on at step {learner.first_step:,}")
        else:
            _start(model, prepared, options, say)
        if learner.first_step >= order.steps or keeper.stopped:
            return
        trainer = lightning.Trainer(
            max_epochs=1,  # ours are counted by the order of batches, which knows where to go on
            accelerator=device(),
            devices=1,
            logger=_loggers(run, tensorboard),
            callbacks=[keeper],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            limit_val_batches=0,
        )
        with _interruptible():
            trainer.fit(learner, Batches(order, maker, settings, learner.first_step))


def _training_set(
    prepared: Prepared, options: Options, model: Retriever, settings: tuple[str, ...], say: Say
) -> tuple[BatchMaker, TrainingOrder]:
    """What batches are made of, and in which order."""
    queries = prepared.in_fold("train")
    maker = BatchMaker(
        prepared,
        model.encoder.reads,
        settings,
        queries,
        backward_lists=model.scorer.maps_candidates,
    )
    usable = queries
    for setting in settings:
        usable = maker.with_lists(usable, setting, "fingerprint")
    if len(usable) < len(queries):
        say(
            f"{len(queries) - len(usable):,} of {len(queries):,} training spectra have no "
            f"{options.candidates} list with their molecule in it: left out"
        )
    return maker, TrainingOrder(usable, options.batch_size, options.epochs, options.seed)


def _start(model: Retriever, prepared: Prepared, options: Options, say: Say) -> None:
    """Where training begins: another run's weights, each bit's base rate, or neither."""
    if options.start_from:
        weights = _first_stage(options, prepared)
        taken = start_from(model, weights)
        left = sorted(set(model.state_dict()) - set(taken))
        say(f"{len(taken)} weights taken from {weights}")
        if left:
            say(f"{len(left)} weights begin anew: {', '.join(left)}")
    if options.bias == "log-odds" and model.head is not None:
        frequency, count = bit_frequency(prepared)
        model.head.start_at(torch.from_numpy(frequency), count)


def bit_frequency(prepared: Prepared) -> tuple[npt.NDArray[np.float64], int]:
    """Share of training spectra whose molecule has each bit, and how many spectra there are."""
    molecules, counts = np.unique(prepared.molecule[prepared.in_fold("train")], return_counts=True)
    rows = prepared.fingerprint_rows(molecules)
    total = int(counts.sum())
    return np.asarray(rows.T @ counts, np.float64) / total, total


def _first_stage(options: Options, prepared: Prepared) -> Path:
    """The checkpoint of a first stage that a second one starts from.

    Raises
    ------
    RunError
        There is none, its encoder is another, or it was trained on other data: their training
        fold may hold our test molecules, and their bits may mean something else.
    """
    source = Run.open(options.start_from or "")
    for name in ("model", "width", "blocks"):
        theirs, ours = getattr(source.options, name), getattr(options, name)
        if theirs != ours:
            raise RunError(f"{source.folder}: has {name} {theirs}, expected {ours} as asked for")
    if not source.best:
        raise RunError(f"{source.folder}: has no checkpoint to start from")
    if source.facts["data"]["key"] != prepared.manifest["key"]:
        raise RunError(f"{source.folder}: was trained on other data than {prepared.folder} holds")
    metric = "tanimoto" if "tanimoto" in source.best else next(iter(source.best))
    kept_model(source, metric, prepared)  # refuses what is not the run's own
    return source.checkpoint(metric)


def _predict(run: Run, prepared: Prepared, progress: Progress) -> None:
    """Predictions of every checkpoint that is the best of some metric."""
    steps = {facts["step"]: metric for metric, facts in run.best.items()}
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


def _guess(run: Run, prepared: Prepared, options: Options) -> None:
    """The random baseline: a run like others, with scores drawn at random."""
    best: dict[str, dict[str, Any]] = {}
    for fold in PREDICTED:
        queries = prepared.in_fold(fold)
        if not len(queries):
            continue
        predictions = random_fold(prepared, fold, options.seed)
        predictions.save(run.predictions(0, fold), label_of(run, 0, fold))
        if fold == "val":
            means = validation_means(predictions, prepared)
            best = {name: {"step": 0, "value": value} for name, value in means.items()}
            run.write_history([{"step": 0, "epoch": 0.0, **means}])
    run.facts |= {"best": best, "steps": 0, "seconds": 0.0}


def _check(prepared: Prepared, options: Options, tensorboard: bool) -> int:
    """Steps of the run; refuses what could not be trained, before a folder is made for it."""
    usable = len(prepared.in_fold("train"))
    if options.model not in BASELINES:
        check_size(spec_for(prepared, options), options, usable)
    for fold in ("train", "val"):
        if not len(prepared.in_fold(fold)):
            raise RunError(f"{prepared.folder}: has no {fold} spectra, expected some of each fold")
    if prepared.settings or options.facts.reads_candidates:
        prepared.candidates(options.candidates)  # says which there are, if not this
    measured_on = prepared.measured_on(options.candidates)
    if measured_on != options.candidates:
        prepared.candidates(measured_on)
    needed = ["train"] if options.facts.reads_candidates else []
    if not options.facts.predicts_fingerprint:
        needed.append("val")  # its only metrics are hit rates
    for fold in needed:
        queries = prepared.in_fold(fold)
        setting = options.candidates if fold == "train" else measured_on
        prepared.candidates(setting)
        slices = Slices(prepared, (setting,), queries)
        found = len(slices.with_lists(queries, setting, "fingerprint"))
        if not found:
            raise RunError(
                f"{prepared.folder}: no {fold} spectrum has a {setting} list with its "
                "molecule in it"
            )
        usable = found if fold == "train" else usable
    if options.start_from:
        _first_stage(options, prepared)
    if tensorboard and not (find_spec("tensorboard") or find_spec("tensorboardX")):
        raise RunError("--tensorboard needs it: pip install 'mzseek[tensorboard]'")
    return steps_an_epoch(usable, options.batch_size) * options.epochs


def _reopened(out: Path, options: Options, prepared: Prepared) -> Run:
    run = Run.open(out)
    options = as_begun(options, run.options)
    if run.options != options:
        then, now = run.options.to_dict(), options.to_dict()
        name = next(name for name in now if then[name] != now[name])
        raise RunError(
            f"{out}: was begun with {name} {then[name]}, not {now[name]}; resume it with the same "
            "options, or name another --out"
        )
    if run.facts["data"]["key"] != prepared.manifest["key"]:
        raise RunError(f"{out}: was begun on other data than {prepared.folder} holds now")
    return run


def _loggers(run: Run, tensorboard: bool) -> Any:
    if not tensorboard:
        return False
    from lightning.pytorch.loggers import TensorBoardLogger

    return TensorBoardLogger(os.fspath(run.folder), name="tensorboard", version="")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C as Python has it: Lightning would exit without a word, deaf to a second one."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as error:
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from error


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Lightning without its remarks on hardware, workers and itself."""
    for name in (
        "lightning",
        "lightning.pytorch",
        "lightning.fabric",
        "lightning.pytorch.utilities",
    ):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"lightning\..*")
        warnings.filterwarnings("ignore", message=".*beta state.*")
        yield
