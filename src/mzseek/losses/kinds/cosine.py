"""Cosine loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mzseek.losses.loss import Loss

if TYPE_CHECKING:
    from torch import Tensor

    from mzseek.similarity.soft import Target


def cosine(logits: Tensor, target: Target) -> Tensor:
    r"""One minus the cosine of prediction and truth, the mean over the batch.

    .. math:: 1 - \frac{ŷ^⊤ y}{‖ŷ‖_2 ‖y‖_2}, \quad ŷ = σ(\mathrm{logits})

    Parameters
    ----------
    logits : float tensor, shape (batch, bits)
    target : 0/1 tensor of the same shape, or SparseRows

    Returns
    -------
    scalar tensor

    Examples
    --------
    >>> import torch
    >>> round(cosine(torch.zeros(1, 4), torch.tensor([[1.0, 0.0, 0.0, 0.0]])).item(), 4)
    0.5
    """
    import torch

    from mzseek.losses.bits import check_target
    from mzseek.similarity.soft import soft_cosine

    check_target(logits, target)
    return 1 - soft_cosine(torch.sigmoid(logits), target).mean()


LOSS = Loss("cosine", cosine, kind="vectorwise", stands_for="cosine")
