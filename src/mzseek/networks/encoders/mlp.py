"""The paper's encoder, as `mzseek.models.encoders.mlp` has it."""

from typing import Any, ClassVar

from scipy.sparse import csr_array

from mzseek.networks.layers import Block, Linear, SparseLinear
from mzseek.networks.weights import Array, Weights


class BinnedMlp:
    """``E(x) = W4 B(W3 B(W2 B(W1 x)))`` of binned spectra."""

    reads: ClassVar[str] = "bins"

    def __init__(self, weights: Weights, options: Any, bins: int) -> None:
        width = options.width
        self.first = SparseLinear(weights.under("first"), bins, width)
        rest = weights.under("rest")
        self.rest = [
            (Block(rest.under(f"{2 * n}"), width), Linear(rest.under(f"{2 * n + 1}"), width, width))
            for n in range(options.blocks)
        ]

    def __call__(self, spectra: csr_array) -> Array:
        """Embeddings, shape (batch, width)."""
        state = self.first(spectra)
        for block, linear in self.rest:
            state = linear(block(state))
        return state
