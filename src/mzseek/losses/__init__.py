"""The paper's losses: tensors in, a scalar out.

Each is a pure function. ``target`` is a 0/1 tensor of shape (batch, bits) or the same as
`mzseek.tensors.SparseRows`; ``scores`` and ``labels`` run over all candidates of all queries,
concatenated, and ``counts`` says how many each query has.
"""

from typing import TYPE_CHECKING, Any

from mzseek.core.registry import load
from mzseek.losses.registry import LOSSES, Loss, loss_named

if TYPE_CHECKING:
    from mzseek.losses.fingerprint import bce, cosine, focal, iou
    from mzseek.losses.ranking import combined, contrastive, pairwise

__all__ = [
    "LOSSES", "Loss", "bce", "combined", "contrastive", "cosine", "focal", "iou", "loss_named",
    "pairwise",
]  # fmt: skip

_FUNCTIONS = {
    **dict.fromkeys(("bce", "cosine", "focal", "iou"), "mzseek.losses.fingerprint"),
    **dict.fromkeys(("combined", "contrastive", "pairwise"), "mzseek.losses.ranking"),
}


def __getattr__(name: str) -> Any:
    """Load the functions, which need torch, when they are first used."""
    if name in _FUNCTIONS:
        return load(f"{_FUNCTIONS[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
