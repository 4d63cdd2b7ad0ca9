"""What several scorers share."""

import numpy as np

from mzseek.networks.layers import Block, Linear
from mzseek.networks.scorers.base import Counts
from mzseek.networks.weights import Array, Weights


class Rest:
    """The layers of an MLP scorer after its first: B, W2, B, W3."""

    def __init__(self, weights: Weights, width: int) -> None:
        self.block1 = Block(weights.under("0"), width)
        self.linear1 = Linear(weights.under("1"), width, width // 2)
        self.block2 = Block(weights.under("2"), width // 2)
        self.linear2 = Linear(weights.under("3"), width // 2, 1)

    def __call__(self, first: Array) -> Array:
        """Scores, shape (rows,)."""
        return self.linear2(self.block2(self.linear1(self.block1(first))))[:, 0]


def norms(rows: Array) -> Array:
    """Length of each row."""
    result: Array = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return result


def slices(counts: Counts) -> list[slice]:
    """Where the candidates of each list are."""
    ends = np.cumsum(counts).tolist()
    return [slice(end - count, end) for end, count in zip(ends, counts.tolist(), strict=True)]
