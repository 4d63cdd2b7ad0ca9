"""Listwise contrastive loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mzseek.losses.kinds.pairwise import pairwise as in_pairs
from mzseek.losses.loss import Loss
from mzseek.registry import option

if TYPE_CHECKING:
    from torch import Tensor


def contrastive(scores: Tensor, counts: Tensor, labels: Tensor, temperature: float = 1.0) -> Tensor:
    r"""Cross entropy of the truth among its candidates, the mean over lists.

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

    Returns
    -------
    scalar tensor

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.tensor([0.0, 0.0, 7.0]), torch.tensor([True, False, True])
    >>> round(contrastive(scores, torch.tensor([2, 1]), labels).item(), 4)   # (log 2 + 0) / 2
    0.3466
    """
    import torch

    from mzseek.losses.lists import read_lists
    from mzseek.tensors import spread

    lists = read_lists(scores, counts, labels, temperature)
    scaled = scores / temperature
    # Relative to the positive: the loss is log(1 + Σ exp(difference)), of which each list's largest
    # difference (or 0, the positive's own) is taken out first, so that nothing overflows.
    difference = scaled - spread(scaled[lists.positive], lists.counts)
    difference = difference.masked_fill(~lists.negative, -torch.inf)
    largest = difference.detach().new_zeros(len(lists.positive))
    largest.scatter_reduce_(0, lists.query, difference.detach(), "amax")
    total = lists.total(torch.exp(difference - largest[lists.query]))
    return (largest + torch.log(total + torch.exp(-largest))).mean()


@dataclass(frozen=True)
class FpCosOptions:
    """Options of a listwise loss; τ is the one tuned for the cosine of fingerprints."""

    temperature: float = option(1 / 256, "τ: what scores are divided by", above=0)
    pairwise: bool = option(False, "take the pairwise form")


@dataclass(frozen=True)
class EmbCosLossOptions(FpCosOptions):
    """The same, with τ for the cosine of learned projections."""

    temperature: float = option(1 / 64, "τ: what scores are divided by", above=0)


@dataclass(frozen=True)
class MlpLossOptions(FpCosOptions):
    """The same, with τ for the scorers that are networks."""

    temperature: float = option(1 / 16, "τ: what scores are divided by", above=0)


def listwise(
    scores: Tensor, counts: Tensor, labels: Tensor, temperature: float, pairwise: bool = False
) -> Tensor:
    """`contrastive`, or the pairwise form of it; arguments as there."""
    function = in_pairs if pairwise else contrastive
    return function(scores, counts, labels, temperature)


def _loss(name: str, options: type) -> Loss:
    """The loss that trains the scorer of its name."""
    return Loss(
        name, listwise, kind="listwise", stands_for="hit_rate@1", options=options, scorer=name,
        reads_target=False, reads_candidates=True, predicts_fingerprint=name.startswith("fp-"),
        reports_fingerprint=name == "fp-cos",
    )  # fmt: skip


LOSSES = (
    _loss("fp-cos", FpCosOptions),
    _loss("emb-cos", EmbCosLossOptions),
    _loss("fp-mlp", MlpLossOptions),
    _loss("emb-mlp", MlpLossOptions),
)
