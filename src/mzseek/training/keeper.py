"""What happens between steps: validation, checkpoints by metric, state, early stopping."""

import os
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.errors import RunError
from mzseek.evaluation.validation import other_rankings, validation_means
from mzseek.files import atomic_file
from mzseek.files.json_file import check_fields
from mzseek.metrics import metric
from mzseek.models import ModelSpec
from mzseek.models.applied import TorchNetwork, arrays_of
from mzseek.prepared.batch import BatchMaker
from mzseek.runs.checkpoint import save_weights
from mzseek.runs.predictions import predict
from mzseek.runs.run import BEST, Run
from mzseek.training.collapse import (
    BEGUN_ABOVE,
    collapse_warning,
    kept_warning,
    learned,
    spread,
)
from mzseek.training.learner import Learner
from mzseek.training.order import TrainingOrder
from mzseek.training.plan.options import Options
from mzseek.training.state import save_state
from mzseek.work.progress import Progress, Say

# Epochs, and warm-ups, before which a model may well say nearly the same about every spectrum: bce
# on MassBank, with 500 steps of warm-up, does so through its first epoch of 556 steps.
_SETTLED_EPOCHS, _SETTLED_WARMUPS = 2, 3
Chart = Callable[[dict[str, float], int], None]  # gets the numbers of a validation, and its step
_FACTS = {"history": [{...: float}], "best": BEST, "waited": int, "stopped": bool}


class Keeper:
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
        say: Say,
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
