"""The step that Lightning repeats."""

import math
from typing import Any

import lightning
import torch
from torch import Tensor

from mzseek.errors import RunError
from mzseek.models import Retriever
from mzseek.prepared.batch import Batch
from mzseek.runs.options import Options
from mzseek.training.objective import Objective
from mzseek.training.optimizer import ClippedAdam


class Learner(lightning.LightningModule):
    """A model with the loss it is trained for.

    Clipping is the optimiser's, and the learning rate is a function of the step, so that there is
    no state beside weights, moments and the random generator.

    Parameters
    ----------
    model : Retriever
    options : Options
        Resolved.
    first_step : int
        Steps that were done before, by the run that this one goes on with.
    """

    def __init__(self, model: Retriever, options: Options, first_step: int = 0) -> None:
        super().__init__()
        self.model = model
        self.options = options
        self.first_step = first_step
        own = {name: getattr(options, name) for name in options.facts.options}
        self.objective = Objective(options.facts, **own, pairwise=options.pairwise)
        self.optimizer = ClippedAdam(model.parameters(), lr=options.lr, clip=options.clip)

    @property
    def step(self) -> int:
        """Steps done, those before a resumption included."""
        return self.first_step + self.global_step

    @property
    def setting(self) -> str | None:
        """The candidate lists that a step reads."""
        return self.options.candidates if self.options.facts.reads_candidates else None

    def configure_optimizers(self) -> ClippedAdam:
        """The optimiser; its learning rate is set at every step."""
        return self.optimizer

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Set this step's learning rate."""
        warmup = self.options.warmup
        warm = min(1.0, (self.step + 1) / warmup) if warmup else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.lr * warm

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch."""
        lists = batch.lists[self.setting] if self.setting else None
        output = self.model(
            batch.spectra,
            lists.rows if lists else None,
            lists.counts if lists else None,
        )
        loss = self.objective(
            output, batch.target, lists.counts if lists else None, lists.labels if lists else None
        )
        value = float(loss.detach())
        if not math.isfinite(value):
            raise RunError(f"the loss is {value} at step {self.step + 1}; try a smaller --lr")
        return loss

    def transfer_batch_to_device(
        self, batch: Batch, device: torch.device, dataloader_idx: int
    ) -> Batch:
        """The batch where the model is."""
        return batch if device.type == "cpu" else batch.to(device)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse: Lightning's checkpoints are pickles."""
        raise RunError("mzseek writes its own checkpoints")
