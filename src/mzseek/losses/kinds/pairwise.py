"""Pairwise contrastive loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mzseek.losses.kinds.bce import LINEAR_FROM

if TYPE_CHECKING:
    from torch import Tensor


def pairwise(scores: Tensor, counts: Tensor, labels: Tensor, temperature: float = 1.0) -> Tensor:
    r"""Mean over negatives of ``softplus((s⁻ − s⁺)/τ)``, then over lists.

    Positives and twins as in `contrastive`; a list without negatives has loss 0.

    Parameters
    ----------
    scores, counts, labels, temperature
        As in `contrastive`.

    Returns
    -------
    scalar tensor

    References
    ----------
    In the paper's published code, not in its text.

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.tensor([0.0, 0.0, 7.0]), torch.tensor([True, False, True])
    >>> round(pairwise(scores, torch.tensor([2, 1]), labels).item(), 4)   # (log 2 + 0) / 2
    0.3466
    """
    import torch.nn.functional as F

    from mzseek.losses.lists import read_lists
    from mzseek.tensors import spread

    lists = read_lists(scores, counts, labels, temperature)
    difference = (scores - spread(scores[lists.positive], lists.counts)) / temperature
    cost = F.softplus(difference, threshold=LINEAR_FROM) * lists.negative
    negatives = lists.total(lists.negative.to(scores.dtype))
    return (lists.total(cost) / negatives.clamp(min=1)).mean()
