"""From a model's output and a batch to the number that is minimised."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

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
