"""The paper's losses: tensors in, a scalar out.

Each is a pure function. ``target`` is a 0/1 tensor of shape (batch, bits) or the same as
`mzseek.tensors.SparseRows`; ``scores`` and ``labels`` run over all candidates of all queries,
concatenated, and ``counts`` says how many each query has.
"""

from mzseek.losses.bce import bce
from mzseek.losses.combined import combined
from mzseek.losses.contrastive import contrastive
from mzseek.losses.cosine import cosine
from mzseek.losses.focal import focal
from mzseek.losses.iou import iou
from mzseek.losses.pairwise import pairwise
from mzseek.losses.registry import LOSSES, Loss, loss_named

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
