"""A network on learned projections."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.models.linear import Linear
from mzseek.models.scorers.emb_mlp import SCORER
from mzseek.models.scorers.kind import ScorerKind
from mzseek.models.scorers.layers import Projected, mlp
from mzseek.tensors import SparseRows, spread


class EmbMlp(Projected):
    """``MLP(e_sp ‖ e_c ‖ e_sp ⊙ e_c)`` on the learned projections: 768 → 96 → 48 → 1.

    Parameters
    ----------
    width, bits, projected : int
        As in `EmbCos`.
    dropout : float
    """

    kind: ClassVar[ScorerKind] = SCORER

    def __init__(self, width: int, bits: int, projected: int, dropout: float) -> None:
        super().__init__(width, bits, projected)
        hidden = 3 * projected // 8
        self.first = Linear(3 * projected, hidden)
        self.rest = mlp(hidden, dropout)

    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Scores, shape (candidates,)."""
        spectrum, candidate = self.spectrum(spectra), self.candidate(candidates)
        # W1 (a ‖ b ‖ a⊙b) = Wa a + Wb b + Wp (a⊙b): the first term once a spectrum.
        h = spectrum.shape[1]
        once = F.linear(spectrum, self.first.weight[:, :h], self.first.bias)
        both = torch.cat([candidate, candidate * spread(spectrum, counts)], 1)
        first = spread(once, counts) + F.linear(both, self.first.weight[:, h:])
        result: Tensor = self.rest(first)
        return result.squeeze(1)
