"""Losses on the predicted fingerprint: BCE, focal, cosine, IoU."""

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.core.errors import LossError
from mzseek.similarity.soft import Target, soft_cosine, soft_tanimoto
from mzseek.tensors import SparseRows, query_index


def at_set_bits(values: Tensor, target: Target) -> Tensor:
    """Return values where the target is set (times the target, where that is not 0/1)."""
    if isinstance(target, SparseRows):
        flat_indices = query_index(target.sizes) * target.width + target.indices
        return values.reshape(-1)[flat_indices]
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


# Above it, log(1 + exp(z)) is z to the last digit, also in float64.
LINEAR_FROM = 40.0


def bce(logits: Tensor, target: Target) -> Tensor:
    r"""Binary cross entropy, the mean over bits and batch.

    .. math:: -\frac{1}{nm} \sum_{i,k} y_k \log ŷ_k + (1 - y_k) \log(1 - ŷ_k),
              \quad ŷ = σ(\mathrm{logits})

    which is ``softplus(z) − y z``: only its first part needs the zeros of ``y``. The paper's BCE
    equation, with the mean in place of its sum.

    Parameters
    ----------
    logits : float tensor, shape (batch, bits)
    target : tensor of the same shape with values in [0, 1], or SparseRows

    Examples
    --------
    >>> import torch
    >>> round(bce(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])).item(), 4)
    0.6931
    """
    check_target(logits, target)
    zeros = F.softplus(logits, threshold=LINEAR_FROM).sum()
    return (zeros - at_set_bits(logits, target).sum()) / logits.numel()


def focal(logits: Tensor, target: Target, gamma: float = 2.0) -> Tensor:
    r"""Focal loss, the mean over bits and batch.

    .. math:: -\frac{1}{nm} \sum_{i,k} y_k (1-ŷ_k)^γ \log ŷ_k + (1-y_k) ŷ_k^γ \log(1-ŷ_k)

    Both powers are taken as ``exp(−γ softplus(±z))``, which has a finite gradient for every γ ≥ 0,
    also where ŷ has reached 0 or 1.

    The paper's FL equation, with the mean in place of its sum. Parameters are those of `bce`, and
    γ: 0 gives `bce`, the paper's choice is 2.

    Examples
    --------
    >>> import torch
    >>> round(focal(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), gamma=1.0).item(), 4)
    0.3466
    """
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
    """Return the loss of bits that should be zero."""
    cost = F.softplus(logits, threshold=LINEAR_FROM)
    if gamma == 2.0:  # the square of a sigmoid is much cheaper than a power
        return torch.sigmoid(logits).square() * cost
    return torch.exp(F.softplus(-logits, threshold=LINEAR_FROM) * -gamma) * cost


def cosine(logits: Tensor, target: Target) -> Tensor:
    r"""Return one minus the cosine of prediction and truth, the mean over the batch.

    .. math:: 1 - \frac{ŷ^⊤ y}{‖ŷ‖_2 ‖y‖_2}, \quad ŷ = σ(\mathrm{logits})

    Parameters are those of `bce`, with a 0/1 target.

    Examples
    --------
    >>> import torch
    >>> round(cosine(torch.zeros(1, 4), torch.tensor([[1.0, 0.0, 0.0, 0.0]])).item(), 4)
    0.5
    """
    check_target(logits, target)
    return 1 - soft_cosine(torch.sigmoid(logits), target).mean()


def iou(logits: Tensor, target: Target) -> Tensor:
    r"""Return one minus the soft Tanimoto similarity of prediction and truth, the batch's mean.

    .. math:: 1 - \frac{ŷ^⊤ y}{‖ŷ‖_1 + ‖y‖_1 - ŷ^⊤ y}, \quad ŷ = σ(\mathrm{logits})

    Parameters are those of `bce`, with a 0/1 target. Started from small weights it can fall into
    one constant prediction; see the page on where the paper leaves a choice.

    Examples
    --------
    >>> import torch
    >>> round(iou(torch.zeros(1, 4), torch.tensor([[1.0, 0.0, 0.0, 0.0]])).item(), 4)
    0.8
    """
    check_target(logits, target)
    return 1 - soft_tanimoto(torch.sigmoid(logits), target).mean()
