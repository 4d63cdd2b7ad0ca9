"""What the losses over candidate lists share."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mzseek.errors import LossError
from mzseek.tensors import query_index


@dataclass(frozen=True)
class LabelledLists:
    """Ragged lists, checked, with the positive of each found.

    Attributes
    ----------
    counts : int64 tensor, shape (lists,)
        Candidates in each list.
    query : int64 tensor, shape (candidates,)
        The list that each candidate is in.
    positive : int64 tensor, shape (lists,)
        Where each list's first labelled candidate is.
    negative : bool tensor, shape (candidates,)
        Neither the positive nor a twin of it.
    """

    counts: Tensor
    query: Tensor
    positive: Tensor
    negative: Tensor

    def total(self, values: Tensor) -> Tensor:
        """Sum over each list, shape (lists,)."""
        return values.new_zeros(len(self.positive)).index_add_(0, self.query, values)


def read_lists(scores: Tensor, counts: Tensor, labels: Tensor, temperature: float) -> LabelledLists:
    """Check the arguments of a listwise loss and find the positives.

    `mzseek.ragged` does this for arrays; these are tensors, on the device that they are on, and a
    score may be no number: the loop notices that, and says at which step.

    Raises
    ------
    LossError
        The lengths disagree, a list is empty or has no label, or the temperature is not positive.
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
