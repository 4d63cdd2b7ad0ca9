"""Layers that several scorers have."""

from torch import nn

from mzseek.models.blocks import Block
from mzseek.models.linear import Linear, SparseLinear
from mzseek.models.scorers.base import Scorer


class Projected(Scorer):
    """What the two scorers on learned projections share: W_sp and W_c."""

    def __init__(self, width: int, bits: int, projected: int) -> None:
        super().__init__()
        self.spectrum = Linear(width, projected)
        self.candidate = SparseLinear(bits, projected)


def mlp(width: int, dropout: float) -> nn.Sequential:
    """The scorer's layers after its first: B, W2, B, W3."""
    return nn.Sequential(
        Block(width, dropout),
        Linear(width, width // 2),
        Block(width // 2, dropout),
        Linear(width // 2, 1),
    )
