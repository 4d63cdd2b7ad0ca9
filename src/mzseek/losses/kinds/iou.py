"""IoU (Tanimoto) loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mzseek.losses.loss import Loss

if TYPE_CHECKING:
    from torch import Tensor

    from mzseek.similarity.soft import Target


def iou(logits: Tensor, target: Target) -> Tensor:
    r"""One minus the soft Tanimoto similarity of prediction and truth, the mean over the batch.

    .. math:: 1 - \frac{ŷ^⊤ y}{‖ŷ‖_1 + ‖y‖_1 - ŷ^⊤ y}, \quad ŷ = σ(\mathrm{logits})

    Parameters
    ----------
    logits : float tensor, shape (batch, bits)
    target : 0/1 tensor of the same shape, or SparseRows

    Returns
    -------
    scalar tensor

    Notes
    -----
    Started from small weights it can fall into one constant prediction; see the page on where the
    paper leaves a choice.

    Examples
    --------
    >>> import torch
    >>> round(iou(torch.zeros(1, 4), torch.tensor([[1.0, 0.0, 0.0, 0.0]])).item(), 4)
    0.8
    """
    import torch

    from mzseek.losses.bits import check_target
    from mzseek.similarity.soft import soft_tanimoto

    check_target(logits, target)
    return 1 - soft_tanimoto(torch.sigmoid(logits), target).mean()


LOSS = Loss("iou", iou, kind="vectorwise", stands_for="tanimoto", stalls=True)
