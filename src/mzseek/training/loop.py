"""The training loop: objective, step, validation, checkpoints, early stopping."""

import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mzseek.core.errors import LossError, RunError
from mzseek.datasets.batch import Batch, BatchMaker
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import other_rankings, validation_means
from mzseek.io import atomic_file
from mzseek.io.manifest import check_fields
from mzseek.losses import Loss
from mzseek.metrics import metric
from mzseek.models import ModelSpec, Output, Retriever, build
from mzseek.models.layers import device
from mzseek.models.model import TorchNetwork, arrays_of
from mzseek.parallel.engine import Log, Progress
from mzseek.runs.checkpoints import model_for, save_weights
from mzseek.runs.predictions import predict
from mzseek.runs.run import BEST, Run
from mzseek.similarity.soft import Target
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.options import Options
from mzseek.training.prior_offset import prior_offsets
from mzseek.training.state import TrainingOrder, initialise, load_state, save_state


@dataclass(frozen=True)
class Objective:
    """A loss with its options, a dataclass of the kind that the loss has."""

    loss: Loss
    options: Any

    def __call__(
        self, output: Output, target: Target, counts: Tensor | None, labels: Tensor | None
    ) -> Tensor:
        """Compute the loss of a batch, a scalar."""
        loss = self.loss
        arguments: list[Any] = []
        if loss.reads_target:
            if output.logits is None:
                raise LossError(f"{loss.name} needs a model that predicts a fingerprint")
            arguments += [output.logits, target]
        if loss.reads_candidates:
            if output.scores is None or counts is None or labels is None:
                raise LossError(f"{loss.name} needs candidates")
            arguments += [output.scores, counts, labels]
        result: Tensor = loss.function(*arguments, **vars(self.options))
        return result


OffsetOf = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]]


class Learner:
    """A model with its objective and its optimiser.

    The optimiser clips gradients, and the learning rate is a function of the step, so that there is
    no state beside weights, moments and the random generator.

    Parameters
    ----------
    model : Retriever
        On the device where it is to be trained: batches follow it there.
    options : Options
        Complete.
    offset : callable of (spectra), optional
        A fixed log-odds term for each candidate of a batch that the loss reads beside the scores.

    Attributes
    ----------
    step : int
        Steps done, those before a resumption included.
    """

    def __init__(self, model: Retriever, options: Options, offset: OffsetOf | None = None) -> None:
        self.model = model
        self.offset = offset
        self.options = options
        self.step = 0
        self.objective = Objective(options.loss_kind, options.loss.options)
        self.optimizer = ClippedAdam(model.parameters(), lr=options.lr, clip=options.clip)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    @property
    def setting(self) -> str | None:
        """The candidate lists that a step reads."""
        return self.options.candidates if self.options.loss_kind.reads_candidates else None

    def learn(self, batch: Batch) -> float:
        """Do one step and return the loss before it; RunError if that is no number."""
        loss = self.loss(batch if self.device.type == "cpu" else batch.to(self.device))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise RunError(f"the loss is {value} at step {self.step + 1}; try a smaller --lr")
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        warmup = self.options.warmup
        rate = self.options.lr * (min(1.0, (self.step + 1) / warmup) if warmup else 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.step += 1
        return value

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss of a batch, a scalar with gradients."""
        precision = getattr(torch, self.options.precision)
        if self.setting is None:
            output = self.model(batch.spectra, precision=precision)
            return self.objective(output, batch.target, None, None)
        lists = batch.lists[self.setting]
        output = self.model(batch.spectra, lists.rows, lists.counts, precision)
        if self.offset is not None:
            # A loss divides by τ, and so reads ``score / τ + offset``.
            temperature = float(self.options.loss.options.temperature)
            fixed = torch.from_numpy(self.offset(batch.queries)).to(output.scores)
            output = replace(output, scores=output.scores + temperature * fixed)
        return self.objective(output, batch.target, lists.counts, lists.labels)


# A constant prediction has a spread of 0; trained models of every loss here have more than 0.3.
COLLAPSED_BELOW = 0.05
# On MassBank, and on 1,160 spectra of it, a model that starts at zero first learns how frequent
# each bit is, the same for every spectrum, and distinguishes spectra once the learning rates so far
# sum to 0.05 at the latest; a model that does not by then (iou) never does.
LEARNING_ABOVE = 0.06


def prediction_spread(predictions: npt.NDArray[np.floating], max_rows: int = 2000) -> float:
    """Standard deviation of predictions, shape (spectra, bits), over the length of their mean.

    Of many, ``max_rows`` evenly spaced ones are read.

    Examples
    --------
    >>> same, other = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> prediction_spread(same), prediction_spread(other)
    (0.0, 1.0)
    """
    if not len(predictions):
        return 0.0
    rows = np.asarray(predictions[:: -(-len(predictions) // max_rows)], np.float32)
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length == 0:
        return 0.0
    deviation = np.sqrt(np.square(rows - mean).sum(axis=1).mean())
    return float(deviation) / length


def summed_rates(options: Options, step: int) -> float:
    """Sum the learning rates of all steps so far.

    Adam moves a weight by about the learning rate a step, so that this is how far weights can have
    moved: 0.1 after 1,000 steps at 1e-4.

    Examples
    --------
    >>> round(summed_rates(Options.of(lr=1e-4, warmup=0), 1000), 3)
    0.1
    >>> round(summed_rates(Options.of(lr=1e-4, warmup=500), 190), 4)
    0.0036
    """
    warmup = options.warmup or 0
    warming = min(step, warmup)
    risen = warming * (warming + 1) / (2 * warmup) if warmup else 0.0
    return options.lr * (risen + step - warming)


def collapse_warning(
    predictions: npt.NDArray[np.floating] | None, options: Options, step: int
) -> str | None:
    """Return a warning for predictions, shape (spectra, bits), that hardly differ."""
    if predictions is None or len(predictions) < 2:
        return None
    deviation = prediction_spread(predictions)
    if deviation >= COLLAPSED_BELOW:
        return None
    is_short = summed_rates(options, step) < LEARNING_ABOVE
    remedies = ["--bias log-odds"] if options.starts_bias and options.bias == "zero" else []
    remedies += ["more --epochs"] if is_short else []
    text = (
        f"the model says nearly the same about every spectrum (spread {deviation:.3f}, expected at "
        f"least {COLLAPSED_BELOW:g}): "
    )
    if is_short:
        text += f"after {step:,} steps, {options.loss.name} has hardly begun to learn. "
    else:
        text += (
            f"{options.loss.name} has collapsed. Its Tanimoto similarity can look fine; its hit "
            "rates cannot. "
        )
    return f"{text}Start again with {' and '.join(remedies) or 'a smaller --lr'}"


def checkpoint_warning(best: dict[str, dict[str, Any]]) -> str | None:
    """Return a warning for checkpoints that are best by a metric and had collapsed."""
    # Hit rates at 5 and 20 can be full from the first step on short lists.
    collapsed = [
        name
        for name, checkpoint in best.items()
        if name.startswith(("tanimoto", "hit_rate@1/")) and checkpoint["spread"] < COLLAPSED_BELOW
    ]
    if not collapsed:
        return None
    return (
        f"the checkpoint that is best by {', '.join(collapsed)} is from before the model told "
        "spectra apart: it says nearly the same about each"
    )


# Epochs, and warm-ups, before which a model may well say nearly the same about every spectrum: bce
# on MassBank, with 500 steps of warm-up, does so through its first epoch of 556 steps.
_SETTLED_EPOCHS, _SETTLED_WARMUPS = 2, 3
_STATE = {"history": [{...: float}], "best": BEST, "waited": int, "stopped": bool}


class Callbacks:
    """Validation every so many steps, the best checkpoint by each metric, early stopping.

    Parameters
    ----------
    run : Run
    spec : ModelSpec
    order : TrainingOrder
    maker : BatchMaker
        Of the validation spectra, ``queries``.
    queries : int64 array
    progress : callable of (stage, done, total)
    say : callable of str
        Gets a line a validation, and warnings.

    Attributes
    ----------
    stopped : bool
        Whether patience has run out.
    """

    def __init__(
        self,
        run: Run,
        spec: ModelSpec,
        order: TrainingOrder,
        maker: BatchMaker,
        queries: npt.NDArray[np.int64],
        progress: Progress,
        say: Log,
    ) -> None:
        self.run, self.spec, self.order = run, spec, order
        self.maker, self.queries = maker, queries
        self.measured_on = maker.prepared.measured_on(run.candidates)
        self.progress, self.say = progress, say
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, dict[str, Any]] = {}
        self.waited = 0
        self.stopped = False
        self._losses: list[float] = []
        # Seconds count from the begin of the run, less the time between its resumptions.
        self._began = time.perf_counter() - float(run.metadata.get("seconds", 0.0))

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from the metadata of a saved state; RunError if a field is missing or wrong."""
        check_fields(state, _STATE, self.run.state / "state.json", RunError)
        self.history, self.best = list(state["history"]), dict(state["best"])
        self.waited, self.stopped = int(state["waited"]), bool(state["stopped"])

    def after_step(self, learner: Learner, loss: float) -> None:
        """Record the loss; validate when it is time."""
        self._losses.append(loss)
        self.progress("training", learner.step, self.order.steps)
        every = learner.options.validate_every or self.order.steps
        if learner.step % every == 0 or learner.step == self.order.steps:
            self.validate(learner)

    def validate(self, learner: Learner) -> None:
        """Measure on the validation fold, save what is best, save the state."""
        step, options = learner.step, learner.options
        predictions = predict(
            TorchNetwork(learner.model, learner.device), self.maker.slices, self.queries,
            similarities=other_rankings(self.run.description) if options.other_rankings else (),
        )  # fmt: skip
        means = validation_means(
            predictions, self.maker.prepared, fingerprint=self.run.description.reports_fingerprint
        )
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        self._losses = []
        epoch = step / self.order.steps_per_epoch
        outputs = predictions.embeddings
        if predictions.fingerprints is not None:
            outputs = predictions.fingerprints
        deviation = prediction_spread(outputs) if outputs is not None else 0.0
        self.history.append(
            {"step": step, "epoch": round(epoch, 3), "loss": loss, **means, "spread": deviation}
        )
        better = [name for name, value in means.items() if self._is_better(name, value)]
        for name in better:
            self.best[name] = {"step": step, "value": means[name], "spread": deviation}
        self._write_checkpoints(learner, better)
        if options.patience is not None:
            watched = watched_metric(options, self.measured_on)
            self.waited = 0 if watched in better else self.waited + 1
            self.stopped = self.waited >= options.patience
        seconds = round(time.perf_counter() - self._began, 1)
        self.run.metadata |= {"best": self.best, "steps": step, "seconds": seconds}
        self.run.write_history(self.history)
        self.run.save()
        numbers = ", ".join(
            f"{name.partition('/')[0].replace('hit_rate', 'HR')} {100 * value:.1f}"
            for name, value in means.items()
            if name.partition("/")[2] in ("", self.measured_on)
        )
        self.say(
            f"step {step:,} of {self.order.steps:,}, epoch {epoch:.1f}: loss {loss:.4g}, {numbers}"
        )
        self._warn_of_collapse(learner, outputs)
        state = {name: getattr(self, name) for name in _STATE}
        save_state(
            self.run.state, learner.model, learner.optimizer,
            {"run": self.run.identity, "step": step, **state},
        )  # fmt: skip

    def _is_better(self, name: str, value: float) -> bool:
        return name not in self.best or metric(name.partition("/")[0]).improves(
            value, self.best[name]["value"]
        )

    def _write_checkpoints(self, learner: Learner, better: list[str]) -> None:
        written, weights = None, ""
        for name in better:
            path = self.run.checkpoint(name)
            if written is None:
                weights = save_weights(
                    arrays_of(learner.model), self.spec, path, {"step": learner.step}
                )
                written = path
                continue
            with atomic_file(path) as partial:  # the same weights under another name
                try:
                    os.link(written, partial)
                except OSError:
                    shutil.copyfile(written, partial)
        self.run.metadata.setdefault("checkpoints", {}).update(dict.fromkeys(better, weights))

    def _warn_of_collapse(self, learner: Learner, outputs: npt.NDArray[np.float16] | None) -> None:
        """Warn when it is met, unless it is so early that a good model may look the same."""
        if not learner.model.encoder.kind.sees_spectrum:
            return  # a control says the same about every spectrum by design
        step, options = learner.step, learner.options
        is_last = self.stopped or step == self.order.steps
        is_early = (
            summed_rates(options, step) < LEARNING_ABOVE
            or step < _SETTLED_WARMUPS * (options.warmup or 0)
            or self.order.epoch(step) < _SETTLED_EPOCHS
        )
        if is_early and not is_last:
            return
        warning = collapse_warning(outputs, options, step)
        if warning is None and is_last:
            warning = checkpoint_warning(self.best)
        is_warned = bool(self.run.metadata["warnings"])
        self.run.metadata["warnings"] = [warning] if warning else []
        self.run.save()
        if warning and (is_last or not is_warned):
            self.say(f"warning: {warning}")


def watched_metric(options: Options, measured_on: str) -> str:
    """Return the validation metric for early stopping: HR@1 of ranking losses, else Tanimoto.

    Bit accuracy and cosine, which some losses stand for, are not measured on validation.
    """
    stands_for = options.loss_kind.stands_for
    return f"{stands_for}/{measured_on}" if stands_for.startswith("hit_rate") else "tanimoto"


def fit(run: Run, prepared: Prepared, *, progress: Progress, say: Log) -> None:
    """Train a run's model to its end, from the beginning or from its last validation.

    The run gets checkpoints, history and state. The caller's random state is left as it was.

    Raises
    ------
    RunError, ModelError
        The loss is no number, or the state to resume from is damaged.
    """
    options, spec = Options.of_run(run), model_for(run, prepared)
    gpus = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=gpus):
        model = build(spec, seed=options.seed).to(device())
        torch.manual_seed(options.seed)
        learner = Learner(model, options, _offset(run, prepared, options, progress))
        maker, order = _training_set(prepared, learner, say)
        val = prepared.in_fold("val")
        settings = tuple(prepared.measured_settings)
        validator = BatchMaker(prepared, model.encoder.kind.reads, settings, val, backward=False)
        callbacks = Callbacks(run, spec, order, validator, val, progress, say)
        if run.state.exists():
            state = load_state(run.state, model, learner.optimizer, run.identity)
            callbacks.restore(state)
            learner.step = int(state["step"])
            say(f"going on at step {learner.step:,}")
        else:
            initialise(model, prepared, options, say)
        model.train()
        for queries in order.from_step(learner.step):
            if callbacks.stopped:
                break
            loss = learner.learn(maker.make(queries))
            callbacks.after_step(learner, loss)


def _offset(run: Run, prepared: Prepared, options: Options, progress: Progress) -> OffsetOf | None:
    """Return the fixed term in the softmax, where one is asked for; the run records it.

    It is a function of the data alone: a resumed run has the same.
    """
    if options.offset is None:
        return None
    offsets = prior_offsets(prepared, options.candidates, progress)
    run.metadata["offset"] = offsets.metadata
    run.save()
    return lambda queries: offsets.of(prepared.molecule[queries])


def _training_set(
    prepared: Prepared, learner: Learner, say: Log
) -> tuple[BatchMaker, TrainingOrder]:
    """Return the maker of batches, and their order."""
    options, model = learner.options, learner.model
    settings = () if learner.setting is None else (learner.setting,)
    queries = prepared.in_fold("train")
    maker = BatchMaker(
        prepared,
        model.encoder.kind.reads,
        settings,
        queries,
        backward_lists=model.scorer.kind.maps_candidates,
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
