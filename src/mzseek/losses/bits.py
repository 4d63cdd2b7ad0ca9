"""What the losses that read a target fingerprint share."""

import torch
from torch import Tensor

from mzseek.errors import LossError
from mzseek.similarity.soft import Target
from mzseek.tensors import SparseRows, query_index


def at_set_bits(values: Tensor, target: Target) -> Tensor:
    """Values where the target is set (times the target, where that is not 0/1)."""
    if isinstance(target, SparseRows):
        places = query_index(target.sizes) * target.width + target.indices
        return values.reshape(-1)[places]
    return values * target


def check_target(logits: Tensor, target: Target) -> None:
    """Refuse shapes that would broadcast into a wrong mean."""
    if logits.ndim != 2 or tuple(logits.shape) != tuple(target.shape):
        raise LossError(
            f"logits {tuple(logits.shape)} and target {tuple(target.shape)}: "
            "expected two equal shapes (batch, bits)"
        )
    if (
        isinstance(target, SparseRows)
        and target.values is not None
        and bool((target.values != 1).any())
    ):
        raise LossError("sparse target holds values other than 1, expected a 0/1 fingerprint")
    if not logits.numel():
        raise LossError("logits are empty, expected at least one row and one bit")
    if not torch.is_floating_point(logits):
        raise LossError(f"logits are {logits.dtype}, expected floats")
