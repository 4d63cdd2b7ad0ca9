"""From a model's output and a batch to the number that is minimised."""

from dataclasses import dataclass

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
        if self.loss.kind == "listwise":
            listwise = losses.pairwise if self.pairwise else losses.contrastive
            return listwise(*self._lists(output, counts, labels), self.temperature)
        logits = output.logits
        if logits is None:
            raise LossError(f"{self.loss.name} needs a model that predicts a fingerprint")
        match self.loss.name:
            case "bce":
                return losses.bce(logits, target)
            case "focal":
                return losses.focal(logits, target, self.gamma)
            case "cosine":
                return losses.cosine(logits, target)
            case "iou":
                return losses.iou(logits, target)
        lists = self._lists(output, counts, labels)
        return losses.combined(logits, target, *lists, self.temperature, self.weight)

    def _lists(
        self, output: Output, counts: Tensor | None, labels: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if output.scores is None or counts is None or labels is None:
            raise LossError(f"{self.loss.name} needs candidates")
        return output.scores, counts, labels
