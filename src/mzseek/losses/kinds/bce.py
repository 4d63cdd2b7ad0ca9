"""Binary cross entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mzseek.losses.loss import Loss

if TYPE_CHECKING:
    from torch import Tensor

    from mzseek.similarity.soft import Target

# Above it, log(1 + exp(z)) is z to the last digit, also in float64.
LINEAR_FROM = 40.0


def bce(logits: Tensor, target: Target) -> Tensor:
    r"""Binary cross entropy, the mean over bits and batch.

    .. math:: -\frac{1}{nm} \sum_{i,k} y_k \log ŷ_k + (1 - y_k) \log(1 - ŷ_k),
              \quad ŷ = σ(\mathrm{logits})

    which is ``softplus(z) − y z``: only its first part needs the zeros of ``y``.

    Parameters
    ----------
    logits : float tensor, shape (batch, bits)
    target : tensor of the same shape with values in [0, 1], or SparseRows

    Returns
    -------
    scalar tensor

    References
    ----------
    The paper's BCE equation, with the mean in place of its sum.

    Examples
    --------
    >>> import torch
    >>> round(bce(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])).item(), 4)
    0.6931
    """
    import torch.nn.functional as F

    from mzseek.losses.bits import at_set_bits, check_target

    check_target(logits, target)
    zeros = F.softplus(logits, threshold=LINEAR_FROM).sum()
    return (zeros - at_set_bits(logits, target).sum()) / logits.numel()


LOSS = Loss("bce", bce, kind="bitwise", stands_for="bit_accuracy", stalls=True)
