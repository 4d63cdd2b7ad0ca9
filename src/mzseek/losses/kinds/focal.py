"""Focal loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mzseek.errors import LossError
from mzseek.losses.kinds.bce import LINEAR_FROM
from mzseek.losses.loss import Loss
from mzseek.registry import option

if TYPE_CHECKING:
    from torch import Tensor

    from mzseek.similarity.soft import Target


@dataclass(frozen=True)
class FocalOptions:
    """Options of the focal loss."""

    gamma: float = option(2.0, "γ: how much less the bits count that are nearly right", least=0)


def focal(logits: Tensor, target: Target, gamma: float = 2.0) -> Tensor:
    r"""Focal loss, the mean over bits and batch.

    .. math:: -\frac{1}{nm} \sum_{i,k} y_k (1-ŷ_k)^γ \log ŷ_k + (1-y_k) ŷ_k^γ \log(1-ŷ_k)

    Both powers are taken as ``exp(−γ softplus(±z))``, which has a finite gradient for every γ ≥ 0,
    also where ŷ has reached 0 or 1.

    Parameters
    ----------
    logits : float tensor, shape (batch, bits)
    target : tensor of the same shape with values in [0, 1], or SparseRows
    gamma : float
        0 gives `bce`; the paper's choice is 2.

    Returns
    -------
    scalar tensor

    References
    ----------
    The paper's FL equation, with the mean in place of its sum.

    Examples
    --------
    >>> import torch
    >>> round(focal(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), gamma=1.0).item(), 4)
    0.3466
    """
    from torch import Tensor

    from mzseek.losses.bits import at_set_bits, check_target

    check_target(logits, target)
    if not gamma >= 0:
        raise LossError(f"gamma is {gamma:g}, expected 0 or more")
    where_zero = _term(logits, gamma)
    if isinstance(target, Tensor):
        where_one = _term(-logits, gamma)
        return (where_zero + target * (where_one - where_zero)).mean()
    ones = _term(-at_set_bits(logits, target), gamma)
    return (where_zero.sum() - at_set_bits(where_zero, target).sum() + ones.sum()) / logits.numel()


def _term(logits: Tensor, gamma: float) -> Tensor:
    """Loss of bits that should be zero."""
    import torch
    import torch.nn.functional as F

    cost = F.softplus(logits, threshold=LINEAR_FROM)
    if gamma == 2.0:  # the square of a sigmoid is much cheaper than a power
        return torch.sigmoid(logits).square() * cost
    return torch.exp(F.softplus(-logits, threshold=LINEAR_FROM) * -gamma) * cost


LOSS = Loss(
    "focal", focal, kind="bitwise", stands_for="bit_accuracy", options=FocalOptions, stalls=True
)
