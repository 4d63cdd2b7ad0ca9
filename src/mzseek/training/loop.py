"""The training loop: objective, step, validation, checkpoints, early stopping."""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
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
from mzseek.training.state import TrainingOrder, begin, load_state, save_state


@dataclass(frozen=True)
class Objective:
    """A loss with its options.

    Attributes
    ----------
    loss : Loss
    options : dataclass
        Of the kind that the loss has.
    """

    loss: Loss
    options: Any

    def __call__(
        self, output: Output, target: Target, counts: Tensor | None, labels: Tensor | None
    ) -> Tensor:
        """The loss of a batch, a scalar."""
        loss = self.loss
        read: list[Any] = []
        if loss.reads_target:
            if output.logits is None:
                raise LossError(f"{loss.name} needs a model that predicts a fingerprint")
            read += [output.logits, target]
        if loss.reads_candidates:
            if output.scores is None or counts is None or labels is None:
                raise LossError(f"{loss.name} needs candidates")
            read += [output.scores, counts, labels]
        result: Tensor = loss.function(*read, **vars(self.options))
        return result


OffsetOf = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]]


class Learner:
    """A model with the loss it is trained for.

    Clipping is the optimiser's, and the learning rate is a function of the step, so that there is
    no state beside weights, moments and the random generator.

    Parameters
    ----------
    model : Retriever
        Where it is to be trained: batches follow it there.
    options : Options
        Resolved.
    offset : callable of (spectra), optional
        A fixed term for each candidate of a batch, in nats, that the loss sees beside the scores.

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
        self.objective = Objective(options.facts, options.loss.options)
        self.optimizer = ClippedAdam(model.parameters(), lr=options.lr, clip=options.clip)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def setting(self) -> str | None:
        """The candidate lists that a step reads."""
        return self.options.candidates if self.options.facts.reads_candidates else None

    def learn(self, batch: Batch) -> float:
        """Do one step; returns the loss before it.

        Raises
        ------
        RunError
            The loss is no number.
        """
        loss = self.loss(batch if self.device.type == "cpu" else batch.to(self.device))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise RunError(f"the loss is {value} at step {self.step + 1}; try a smaller --lr")
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._set_rate()
        self.optimizer.step()
        self.step += 1
        return value

    def loss(self, batch: Batch) -> Tensor:
        """The loss of a batch, a scalar with gradients."""
        lists = batch.lists[self.setting] if self.setting else None
        output = self.model(
            batch.spectra,
            lists.rows if lists else None,
            lists.counts if lists else None,
        )
        if lists is not None and self.offset is not None:
            output = self._with_offset(output, self.offset(batch.queries))
        return self.objective(
            output, batch.target, lists.counts if lists else None, lists.labels if lists else None
        )

    def _with_offset(self, output: Output, offset: npt.NDArray[np.float32]) -> Output:
        """The output with scores that a loss, dividing by τ, reads as ``score / τ + offset``."""
        assert output.scores is not None  # there are lists
        temperature = float(self.options.loss.options.temperature)
        fixed = torch.from_numpy(offset).to(output.scores)
        return replace(output, scores=output.scores + temperature * fixed)

    def _set_rate(self) -> None:
        """Set the learning rate of the step that is about to be done."""
        warmup = self.options.warmup
        warm = min(1.0, (self.step + 1) / warmup) if warmup else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.lr * warm


# A constant prediction has a spread of 0; trained models of every loss here have more than 0.3.
COLLAPSED_BELOW = 0.05
# On MassBank, and on 1,160 spectra of it, a model that starts at zero first learns how frequent
# each bit is, the same for every spectrum, and tells spectra apart from 0.05 on at the latest; a
# model that does not by then (iou) never does.
BEGUN_ABOVE = 0.06


def spread(predictions: npt.NDArray[np.floating], most: int = 2000) -> float:
    """How much predictions differ: their standard deviation over the length of their mean.

    Parameters
    ----------
    predictions : array, shape (spectra, bits)
    most : int
        Look at no more than this many, evenly spaced.

    Examples
    --------
    >>> spread(np.array([[1.0, 0.0], [1.0, 0.0]])), spread(np.array([[1.0, 0.0], [0.0, 1.0]]))
    (0.0, 1.0)
    """
    if not len(predictions):
        return 0.0
    rows = np.asarray(predictions[:: -(-len(predictions) // most)], np.float32)
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length == 0:
        return 0.0
    deviation = np.sqrt(np.square(rows - mean).sum(axis=1).mean())
    return float(deviation) / length


def learned(options: Options, step: int) -> float:
    """How far training has come: the learning rates of all steps so far, summed.

    Adam moves a weight by about the learning rate a step, so that this is how far weights can have
    moved: 0.1 after 1,000 steps at 1e-4.

    Examples
    --------
    >>> round(learned(Options.of(lr=1e-4, warmup=0), 1000), 3)
    0.1
    >>> round(learned(Options.of(lr=1e-4, warmup=500), 190), 4)
    0.0036
    """
    warmup = options.warmup or 0
    warming = min(step, warmup)
    risen = warming * (warming + 1) / (2 * warmup) if warmup else 0.0
    return options.lr * (risen + step - warming)


def collapse_warning(
    predictions: npt.NDArray[np.floating] | None, options: Options, step: int
) -> str | None:
    """What to tell the user if the predictions are all alike, or None.

    Parameters
    ----------
    predictions : array, shape (spectra, bits), or None
    options : Options
        Of the run, resolved.
    step : int
        Steps that it has done.
    """
    if predictions is None or len(predictions) < 2:
        return None
    varied = spread(predictions)
    if varied >= COLLAPSED_BELOW:
        return None
    short = learned(options, step) < BEGUN_ABOVE
    from_zero = options.starts_bias and options.bias == "zero"
    remedies = ["--bias log-odds"] if from_zero else []
    remedies += ["more --epochs"] if short else []
    said = (
        f"the model says nearly the same about every spectrum (spread {varied:.3f}, expected at "
        f"least {COLLAPSED_BELOW:g}): "
    )
    if short:
        said += f"after {step:,} steps, {options.loss.name} has hardly begun to learn. "
    else:
        said += (
            f"{options.loss.name} has collapsed. Its Tanimoto similarity can look fine; its hit "
            "rates cannot. "
        )
    return f"{said}Start again with {' and '.join(remedies) or 'a smaller --lr'}"


def kept_warning(best: dict[str, dict[str, Any]]) -> str | None:
    """What to tell the user if a checkpoint that was kept had collapsed, or None."""
    # Hit rates at 5 and 20 can be full from the first step on short lists.
    telling = {name: f for name, f in best.items() if name.startswith(("tanimoto", "hit_rate@1/"))}
    kept = [name for name, facts in telling.items() if facts["spread"] < COLLAPSED_BELOW]
    if not kept:
        return None
    return (
        f"the checkpoint that is best by {', '.join(kept)} is from before the model told spectra "
        "apart: it says nearly the same about each"
    )


# Epochs, and warm-ups, before which a model may well say nearly the same about every spectrum: bce
# on MassBank, with 500 steps of warm-up, does so through its first epoch of 556 steps.
_SETTLED_EPOCHS, _SETTLED_WARMUPS = 2, 3
Chart = Callable[[dict[str, float], int], None]  # gets the numbers of a validation, and its step
_FACTS = {"history": [{...: float}], "best": BEST, "waited": int, "stopped": bool}


class Callbacks:
    """Validates every so many steps and keeps what is best by each metric.

    Parameters
    ----------
    run : Run
    spec : ModelSpec
    order : TrainingOrder
    maker : BatchMaker
        Of the validation spectra.
    queries : int64 array
        Validation spectra.
    progress : callable of (stage, done, total)
    say : callable of str
        Gets a line a validation, and warnings.
    chart : callable of (numbers by name, step)
        Gets the loss and the metrics of each validation.

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
        chart: Chart = lambda numbers, step: None,
    ) -> None:
        self.run, self.spec, self.order = run, spec, order
        self.maker, self.queries = maker, queries
        self.measured_on = maker.prepared.measured_on(run.candidates)
        self.progress, self.say, self.chart = progress, say, chart
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, dict[str, Any]] = {}
        self.waited = 0
        self.stopped = False
        self._losses: list[float] = []
        # As if the run had begun when it began, less the time in which it stood still.
        self._began = time.perf_counter() - float(run.facts.get("seconds", 0.0))

    def facts(self, step: int) -> dict[str, Any]:
        """What beside tensors is needed to go on."""
        return {
            "run": self.run.identity,
            "step": step,
            "history": self.history,
            "best": self.best,
            "waited": self.waited,
            "stopped": self.stopped,
        }

    def restore(self, facts: dict[str, Any]) -> None:
        """Take up where a saved state left off.

        Raises
        ------
        RunError
            It lacks what is needed, or holds something else.
        """
        check_fields(facts, _FACTS, self.run.state / "state.json", RunError)
        self.history, self.best = list(facts["history"]), dict(facts["best"])
        self.waited, self.stopped = int(facts["waited"]), bool(facts["stopped"])

    def after_step(self, learner: Learner, loss: float) -> None:
        """Note the loss; validate when it is time."""
        self._losses.append(loss)
        self.progress("training", learner.step, self.order.steps)
        every = learner.options.validate_every or self.order.steps
        if learner.step % every == 0 or learner.step == self.order.steps:
            self.validate(learner)

    def validate(self, learner: Learner) -> None:
        """Measure on the validation fold, keep what is best, save the state."""
        step = learner.step
        predictions = predict(
            TorchNetwork(learner.model, learner.device), self.maker.slices, self.queries,
            similarities=other_rankings(self.run.made) if learner.options.other_rankings else (),
        )  # fmt: skip
        means = validation_means(
            predictions, self.maker.prepared, fingerprint=self.run.made.reports_fingerprint
        )
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        self._losses = []
        epoch = step / self.order.steps_per_epoch
        said = predictions.embeddings
        if predictions.fingerprints is not None:
            said = predictions.fingerprints
        apart = spread(said) if said is not None else 0.0
        self.history.append(
            {"step": step, "epoch": round(epoch, 3), "loss": loss, **means, "spread": apart}
        )
        better = [name for name, value in means.items() if self._is_better(name, value)]
        for name in better:
            self.best[name] = {"step": step, "value": means[name], "spread": apart}
        self._write_checkpoints(learner, better)
        self._count_patience(learner, better)
        seconds = round(time.perf_counter() - self._began, 1)
        self.run.facts |= {"best": self.best, "steps": step, "seconds": seconds}
        self.run.write_history(self.history)
        self.run.save()
        self.chart({"loss": loss, **means}, step)
        self.say(_line(step, self.order.steps, epoch, loss, means, self.measured_on))
        self._warn_of_collapse(learner, said)
        save_state(self.run.state, learner.model, learner.optimizer, self.facts(step))

    def _is_better(self, name: str, value: float) -> bool:
        return name not in self.best or metric(name.partition("/")[0]).improves(
            value, self.best[name]["value"]
        )

    def _write_checkpoints(self, learner: Learner, better: list[str]) -> None:
        written, kept = None, ""
        for name in better:
            path = self.run.checkpoint(name)
            if written is None:
                kept = save_weights(
                    arrays_of(learner.model), self.spec, path, {"step": learner.step}
                )
                written = path
                continue
            with atomic_file(path) as partial:  # the same weights under another name
                try:
                    os.link(written, partial)
                except OSError:
                    shutil.copyfile(written, partial)
        self.run.facts.setdefault("checkpoints", {}).update(dict.fromkeys(better, kept))

    def _count_patience(self, learner: Learner, better: list[str]) -> None:
        patience = learner.options.patience
        if patience is None:
            return
        watched = watched_metric(learner.options, self.measured_on)
        self.waited = 0 if watched in better else self.waited + 1
        self.stopped = self.waited >= patience

    def _warn_of_collapse(self, learner: Learner, said: npt.NDArray[np.float16] | None) -> None:
        if not learner.model.encoder.kind.sees_spectrum:
            return  # a control says the same about every spectrum by design
        last = self.stopped or learner.step == self.order.steps
        if not last and self._may_be_alike(learner):
            return
        warning = collapse_warning(said, learner.options, learner.step)
        if warning is None and last:
            warning = kept_warning(self.best)
        is_warned = bool(self.run.facts["warnings"])
        self.run.facts["warnings"] = [warning] if warning else []
        self.run.save()
        if warning and (last or not is_warned):
            self.say(f"warning: {warning}")

    def _may_be_alike(self, learner: Learner) -> bool:
        """Whether it is so early that a good model, too, may say the same of every spectrum."""
        step, options = learner.step, learner.options
        return (
            learned(options, step) < BEGUN_ABOVE
            or step < _SETTLED_WARMUPS * (options.warmup or 0)
            or self.order.epoch(step) < _SETTLED_EPOCHS
        )


def watched_metric(options: Options, measured_on: str) -> str:
    """The validation metric that early stopping looks at: HR@1 of ranking losses, else Tanimoto.

    Bit accuracy and cosine, which some losses stand for, are not measured on validation.
    """
    stands_for = options.facts.stands_for
    if stands_for.startswith("hit_rate"):
        return f"{stands_for}/{measured_on}"
    return "tanimoto"


def _line(
    step: int, steps: int, epoch: float, loss: float, means: dict[str, float], setting: str
) -> str:
    numbers = [
        f"{name.partition('/')[0].replace('hit_rate', 'HR')} {100 * value:.1f}"
        for name, value in means.items()
        if name.partition("/")[2] in ("", setting)
    ]
    return f"step {step:,} of {steps:,}, epoch {epoch:.1f}: loss {loss:.4g}, {', '.join(numbers)}"


def fit(run: Run, prepared: Prepared, *, tensorboard: bool, progress: Progress, say: Log) -> None:
    """Train a run's model to its end, from the beginning or from its last validation.

    Parameters
    ----------
    run : Run
        Gets checkpoints, history and state.
    prepared : Prepared
    tensorboard : bool
        Write TensorBoard's event files too.
    progress : callable of (stage, done, total)
    say : callable of str

    Raises
    ------
    RunError, ModelError
        The loss is no number, or the state to go on from is damaged.
    """
    options, spec = Options.of_run(run), model_for(run, prepared)
    with _random_state_kept(), _charted(run, tensorboard) as chart:
        model = build(spec, seed=options.seed).to(device())
        torch.manual_seed(options.seed)
        learner = Learner(model, options, _offset(run, prepared, options, progress))
        maker, order = _training_set(prepared, learner, say)
        watched = prepared.in_fold("val")
        validator = _validation_set(prepared, model)
        keeper = Callbacks(run, spec, order, validator, watched, progress, say, chart)
        if run.state.exists():
            facts = load_state(run.state, model, learner.optimizer, run.identity)
            keeper.restore(facts)
            learner.step = int(facts["step"])
            say(f"going on at step {learner.step:,}")
        else:
            begin(model, prepared, options, say)
        model.train()
        for queries in order.from_step(learner.step):
            if keeper.stopped:
                break
            loss = learner.learn(maker.make(queries))
            keeper.after_step(learner, loss)


def _offset(run: Run, prepared: Prepared, options: Options, progress: Progress) -> OffsetOf | None:
    """The fixed term in the softmax, where one is asked for; the run notes what it is.

    It is a function of the data alone: a run that goes on has the same.
    """
    if options.offset is None:
        return None
    offsets = prior_offsets(prepared, options.candidates, progress)
    run.facts["offset"] = offsets.facts
    run.save()
    return lambda queries: offsets.of(prepared.molecule[queries])


def _training_set(
    prepared: Prepared, learner: Learner, say: Log
) -> tuple[BatchMaker, TrainingOrder]:
    """What batches are made of, and in which order."""
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


def _validation_set(prepared: Prepared, model: Retriever) -> BatchMaker:
    settings, queries = tuple(prepared.measured_settings), prepared.in_fold("val")
    return BatchMaker(prepared, model.encoder.kind.reads, settings, queries, backward=False)


def check_tensorboard() -> None:
    """Refuse to chart what nobody could write.

    Raises
    ------
    RunError
        TensorBoard is not installed.
    """
    if not find_spec("tensorboard"):
        raise RunError("--tensorboard needs it: pip install 'mzseek[tensorboard]'")


@contextmanager
def _charted(run: Run, tensorboard: bool) -> Iterator[Chart]:
    """Where the numbers of each validation are drawn, if anywhere."""
    if not tensorboard:
        yield lambda numbers, step: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(run.folder / "tensorboard") as writer:

        def chart(numbers: dict[str, float], step: int) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, step)

        yield chart


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """Seed torch in the block; whoever calls finds its random numbers where they were."""
    gpus = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=gpus):
        yield
