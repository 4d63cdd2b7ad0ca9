"""The paper's losses: tensors in, a scalar out.

Each is a pure function. ``target`` is a 0/1 tensor of shape (batch, bits) or the same as
`mzseek.tensors.SparseRows`; ``scores`` and ``labels`` run over all candidates of all queries,
concatenated, and ``counts`` says how many each query has.
"""

from typing import TYPE_CHECKING

from mzseek.core.registry import lazy_names
from mzseek.losses.registry import LOSSES, Loss, loss_named

if TYPE_CHECKING:
    from mzseek.losses.fingerprint import bce, cosine, focal, iou
    from mzseek.losses.ranking import combined, contrastive, pairwise

__all__ = [
    "LOSSES", "Loss", "bce", "combined", "contrastive", "cosine", "focal", "iou", "loss_named",
    "pairwise",
]  # fmt: skip

# The functions, which need torch, are loaded when they are first used.
__getattr__ = lazy_names(
    "mzseek.losses",
    {"fingerprint": "bce cosine focal iou", "ranking": "combined contrastive pairwise"},
)
