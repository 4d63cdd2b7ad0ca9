"""From a model's output and a batch to the number that is minimised."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mzseek import losses
from mzseek.errors import LossError
from mzseek.losses import Loss
from mzseek.models import Output
from mzseek.similarity.soft import Target


@dataclass(frozen=True)
class Objective:
    """A loss with its options.

    Attributes
    ----------
    loss : Loss
    gamma, temperature, weight : float
        Of focal, the listwise losses, and the mixture; unread by the others.
    pairwise : bool
        Take the pairwise form of a listwise loss.
    """

    loss: Loss
    gamma: float = 2.0
    temperature: float = 1.0
    weight: float = 0.5
    pairwise: bool = False

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
        function: Callable[..., Tensor] = losses.pairwise if self.pairwise else loss.function
        return function(*read, **{name: getattr(self, name) for name in loss.options})
