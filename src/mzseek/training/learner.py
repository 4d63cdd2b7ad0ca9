"""The step that training repeats."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mzseek.errors import RunError
from mzseek.models import Output, Retriever
from mzseek.prepared.batch import Batch
from mzseek.training.objective import Objective
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.plan.options import Options

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
