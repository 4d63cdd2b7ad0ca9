"""A network on fingerprints."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.linear import Linear
from mzseek.models.scorers.base import Scorer
from mzseek.models.scorers.fp_mlp import SCORER, FpMlpOptions
from mzseek.models.scorers.kind import ScorerKind
from mzseek.models.scorers.layers import mlp
from mzseek.tensors import SparseRows, product, spread, weighted_product


class FpMlp(Scorer):
    """``MLP(ŷ ‖ c ‖ ŷ ⊙ c)`` in the space of fingerprints: 12,288 → 1,536 → 768 → 1.

    Parameters
    ----------
    bits : int
        Length of a fingerprint.
    dropout : float
    hidden : int
        Length of the first layer; 0 for three eighths of the bits.
    """

    kind: ClassVar[ScorerKind] = SCORER

    def __init__(self, bits: int, dropout: float, hidden: int = 0) -> None:
        super().__init__()
        hidden = FpMlpOptions(dropout, hidden).first_layer(bits)
        # The first layer's weight in its three parts; each starts as a part of one layer would.
        self.predicted = Linear(bits, hidden)
        self.candidate = nn.Parameter(torch.empty(bits, hidden))
        self.common = nn.Parameter(torch.empty(bits, hidden))
        bound = (3 * bits) ** -0.5
        for part in (self.predicted.weight, self.predicted.bias, self.candidate, self.common):
            nn.init.uniform_(part, -bound, bound)
        self.rest = mlp(hidden, dropout)

    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Scores, shape (candidates,)."""
        # W1 (ŷ ‖ c ‖ ŷ⊙c) = Wa ŷ + Wb c + Wp (ŷ⊙c): the first term once a spectrum, the other two
        # sums over the candidate's bits.
        candidates = candidates.ready() if torch.is_grad_enabled() else candidates
        first = product(candidates, self.candidate)
        first = first + weighted_product(spectra, candidates, counts, self.common)
        first = first + spread(self.predicted(spectra), counts)
        result: Tensor = self.rest(first)
        return result.squeeze(1)
