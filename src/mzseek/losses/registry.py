"""The losses by name: one file each in `mzseek.losses.kinds`, and one line here."""

from mzseek.errors import LossError
from mzseek.losses.kinds import bce, combined, contrastive, cosine, focal, iou
from mzseek.losses.loss import Loss
from mzseek.registry import choose

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        bce.LOSS,
        focal.LOSS,
        cosine.LOSS,
        iou.LOSS,
        *contrastive.LOSSES,
        combined.LOSS,
    )
}


def loss_named(name: str) -> Loss:
    """Facts about the loss of that name."""
    return choose(LOSSES, name, "loss", LossError)
