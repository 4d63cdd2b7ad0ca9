"""Losses on the scores of a candidate list: contrastive, pairwise, combined."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.core.errors import LossError
from mzseek.losses.fingerprint import LINEAR_FROM, iou
from mzseek.similarity.soft import Target
from mzseek.tensors import query_index, repeat_per_list


class LabelledLists(NamedTuple):
    """Ragged lists, checked, with the positive of each found.

    Candidates of each list, the list of each candidate, the index of each list's first labelled
    candidate, and whether a candidate is neither that nor a twin of it.
    """

    counts: Tensor
    query: Tensor
    positive: Tensor
    negative: Tensor

    def total(self, values: Tensor) -> Tensor:
        """Sum over each list, shape (lists,)."""
        return values.new_zeros(len(self.positive)).index_add_(0, self.query, values)


def read_lists(scores: Tensor, counts: Tensor, labels: Tensor, temperature: float) -> LabelledLists:
    """Check the arguments of a listwise loss and find the positives, as `mzseek.core.ragged` does.

    Scores that are not finite pass: the training loop reports them with the step.
    """
    counts = torch.as_tensor(counts, device=scores.device).long()
    labels = torch.as_tensor(labels, device=scores.device).bool()
    if not temperature > 0:
        raise LossError(f"temperature is {temperature:g}, expected more than 0")
    if scores.ndim != 1 or labels.shape != scores.shape:
        raise LossError(
            f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)}: expected two equal "
            "lengths, all candidates of all queries concatenated"
        )
    if not len(counts):
        raise LossError("counts are empty, expected at least one list")
    if bool((counts < 0).any()):
        raise LossError(f"counts hold {int(counts.min())}, expected 0 or more")
    if int(counts.sum()) != len(scores):
        raise LossError(
            f"counts add up to {int(counts.sum())}, expected the {len(scores)} scores there are"
        )
    query = query_index(counts)
    labelled = labels.nonzero().squeeze(1)
    positive = torch.full_like(counts, -1)
    positive.scatter_reduce_(0, query[labelled], labelled, "amin", include_self=False)
    if bool((positive < 0).any()):
        which = int((positive < 0).nonzero()[0])
        raise LossError(f"list {which} has no labelled candidate, expected the truth in each list")
    return LabelledLists(counts, query, positive, ~labels)


def pairwise(scores: Tensor, counts: Tensor, labels: Tensor, temperature: float = 1.0) -> Tensor:
    r"""Return the mean over negatives of ``softplus((s⁻ − s⁺)/τ)``, then over lists.

    Parameters, positives and twins are those of `contrastive`; a list without negatives has loss 0.
    In the paper's published code, not in its text.

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.tensor([0.0, 0.0, 7.0]), torch.tensor([True, False, True])
    >>> round(pairwise(scores, torch.tensor([2, 1]), labels).item(), 4)   # (log 2 + 0) / 2
    0.3466
    """
    lists = read_lists(scores, counts, labels, temperature)
    difference = (scores - repeat_per_list(scores[lists.positive], lists.counts)) / temperature
    cost = F.softplus(difference, threshold=LINEAR_FROM) * lists.negative
    negatives = lists.total(lists.negative.to(scores.dtype))
    return (lists.total(cost) / negatives.clamp(min=1)).mean()


def contrastive(scores: Tensor, counts: Tensor, labels: Tensor, temperature: float = 1.0) -> Tensor:
    r"""Return the cross entropy of the truth among its candidates, the mean over lists.

    .. math:: -\log \frac{e^{g(x, y)/τ}}{\sum_{c_j} e^{g(x, c_j)/τ}}

    The first labelled candidate of a list is its positive; its twins (labelled too) are left out of
    the sum, being no negatives. A list with one candidate has loss 0.

    Parameters
    ----------
    scores : float tensor, shape (candidates,)
        Of all candidates of all queries, concatenated.
    counts : int tensor, shape (queries,)
        Candidates of each query.
    labels : bool tensor, shape (candidates,)
        Every candidate that is identical to the truth.
    temperature : float
        τ; the paper's choice depends on the score (1/256 for the cosine of fingerprints).

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.tensor([0.0, 0.0, 7.0]), torch.tensor([True, False, True])
    >>> round(contrastive(scores, torch.tensor([2, 1]), labels).item(), 4)   # (log 2 + 0) / 2
    0.3466
    """
    lists = read_lists(scores, counts, labels, temperature)
    scaled = scores / temperature
    # Relative to the positive: the loss is log(1 + Σ exp(difference)), of which each list's largest
    # difference (or 0, the positive's own) is taken out first, so that nothing overflows.
    difference = scaled - repeat_per_list(scaled[lists.positive], lists.counts)
    difference = difference.masked_fill(~lists.negative, -torch.inf)
    largest = difference.detach().new_zeros(len(lists.positive))
    largest.scatter_reduce_(0, lists.query, difference.detach(), "amax")
    total = lists.total(torch.exp(difference - largest[lists.query]))
    return (largest + torch.log(total + torch.exp(-largest))).mean()


_pairwise = pairwise  # the option of `listwise` has the same name


def listwise(
    scores: Tensor, counts: Tensor, labels: Tensor, temperature: float, pairwise: bool = False
) -> Tensor:
    """Compute `contrastive`, or its pairwise form; arguments as there."""
    function = _pairwise if pairwise else contrastive
    return function(scores, counts, labels, temperature)


def combined(
    logits: Tensor,
    target: Target,
    scores: Tensor,
    counts: Tensor,
    labels: Tensor,
    temperature: float = 1.0,
    weight: float = 0.5,
) -> Tensor:
    """``λ · contrastive + (1 − λ) · iou``: a point between the two ends of the trade-off.

    Parameters
    ----------
    logits, target
        As in `iou`.
    scores, counts, labels, temperature
        As in `contrastive`; the paper takes the cosine of fingerprints as the score.
    weight : float
        λ, within [0, 1]: the weight on the contrastive part.
    """
    if not 0 <= weight <= 1:
        raise LossError(f"weight is {weight:g}, expected 0 to 1")
    listwise = contrastive(scores, counts, labels, temperature)
    return weight * listwise + (1 - weight) * iou(logits, target)
