"""Mixture of a listwise and a vectorwise loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mzseek.errors import LossError
from mzseek.losses.kinds.contrastive import contrastive
from mzseek.losses.kinds.iou import iou
from mzseek.losses.loss import Loss
from mzseek.registry import option

if TYPE_CHECKING:
    from torch import Tensor

    from mzseek.similarity.soft import Target


@dataclass(frozen=True)
class CombinedOptions:
    """Options of the mixture."""

    temperature: float = option(1 / 256, "τ of its listwise part", above=0)
    weight: float = option(0.5, "λ: weight on its listwise part", least=0, most=1)


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

    Returns
    -------
    scalar tensor
    """
    if not 0 <= weight <= 1:
        raise LossError(f"weight is {weight:g}, expected 0 to 1")
    listwise = contrastive(scores, counts, labels, temperature)
    return weight * listwise + (1 - weight) * iou(logits, target)


LOSS = Loss(
    "combined", combined, kind="mixture", stands_for="hit_rate@1", options=CombinedOptions,
    reads_candidates=True,
)  # fmt: skip
