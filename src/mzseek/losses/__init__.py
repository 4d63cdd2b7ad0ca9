"""The paper's losses: tensors in, a scalar out.

Each is a pure function. ``target`` is a 0/1 tensor of shape (batch, bits) or the same as
`mzseek.tensors.SparseRows`; ``scores`` and ``labels`` run over all candidates of all queries,
concatenated, and ``counts`` says how many each query has.
"""

from mzseek.losses.kinds.bce import bce
from mzseek.losses.kinds.combined import combined
from mzseek.losses.kinds.contrastive import contrastive
from mzseek.losses.kinds.cosine import cosine
from mzseek.losses.kinds.focal import focal
from mzseek.losses.kinds.iou import iou
from mzseek.losses.kinds.pairwise import pairwise
from mzseek.losses.loss import Loss
from mzseek.losses.registry import LOSSES, loss_named

__all__ = [
    "LOSSES",
    "Loss",
    "bce",
    "combined",
    "contrastive",
    "cosine",
    "focal",
    "iou",
    "loss_named",
    "pairwise",
]
