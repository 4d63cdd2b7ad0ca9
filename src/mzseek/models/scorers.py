"""Scorers: networks that score the candidates of a list."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mzseek.models.configs import SCORERS, ScorerKind
from mzseek.models.layers import Block, Linear, SparseLinear
from mzseek.similarity.soft import candidate_cosine
from mzseek.tensors import (
    SparseRows,
    gather_dot,
    mapped_norm,
    product,
    repeat_per_list,
    weighted_product,
)


class Scorer(nn.Module, ABC):
    """Network that scores the candidates of each spectrum."""

    kind: ClassVar[ScorerKind]

    @abstractmethod
    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Scores, shape (candidates,).

        Parameters
        ----------
        spectra : tensor, shape (batch, bits or width)
            Predicted fingerprints within [0, 1], or embeddings.
        candidates : SparseRows of ones, shape (candidates, bits)
            Of all spectra, concatenated.
        counts : int tensor, shape (batch,)
            Candidates of each spectrum.
        """


class Projected(Scorer):
    """Base of the two scorers on learned projections, W_sp and W_c."""

    def __init__(self, width: int, bits: int, projected: int) -> None:
        super().__init__()
        self.spectrum = Linear(width, projected)
        self.candidate = SparseLinear(bits, projected)


def mlp(width: int, dropout: float) -> nn.Sequential:
    """Return the scorer's layers after its first: B, W2, B, W3."""
    return nn.Sequential(
        Block(width, dropout),
        Linear(width, width // 2),
        Block(width // 2, dropout),
        Linear(width // 2, 1),
    )


class EmbCos(Projected):
    """``cos(W_sp e, W_c c)``, in a learned space (of 256 dimensions in the paper)."""

    kind: ClassVar[ScorerKind] = SCORERS["emb-cos"]

    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Cosines, shape (candidates,)."""
        spectrum = F.normalize(self.spectrum(spectra), dim=1)
        weight, bias = self.candidate.weight, self.candidate.bias
        # a·(c W + b) = (W a)·c + a·b: with W a at hand, once a spectrum, a candidate's product is a
        # sum over its bits. Only its norm needs the projection itself.
        dot = gather_dot(F.linear(spectrum, weight), candidates, counts)
        dot = dot + repeat_per_list(spectrum @ bias, counts)
        return dot / mapped_norm(candidates, weight, bias).clamp(min=1e-12)


class EmbMlp(Projected):
    """``MLP(e_sp ‖ e_c ‖ e_sp ⊙ e_c)`` on the learned projections: 768 → 96 → 48 → 1."""

    kind: ClassVar[ScorerKind] = SCORERS["emb-mlp"]

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
        both = torch.cat([candidate, candidate * repeat_per_list(spectrum, counts)], 1)
        first = repeat_per_list(once, counts) + F.linear(both, self.first.weight[:, h:])
        result: Tensor = self.rest(first)
        return result.squeeze(1)


class FpCos(Scorer):
    """``cos(ŷ, c)``, in the space of fingerprints; it has no parameters."""

    kind: ClassVar[ScorerKind] = SCORERS["fp-cos"]

    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Cosines, shape (candidates,)."""
        return candidate_cosine(spectra, candidates, counts)


class FpMlp(Scorer):
    """``MLP(ŷ ‖ c ‖ ŷ ⊙ c)`` in the space of fingerprints: 12,288 → 1,536 → 768 → 1."""

    kind: ClassVar[ScorerKind] = SCORERS["fp-mlp"]

    def __init__(self, bits: int, dropout: float, hidden: int = 0) -> None:
        super().__init__()
        hidden = hidden or 3 * bits // 8
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
        first = first + repeat_per_list(self.predicted(spectra), counts)
        result: Tensor = self.rest(first)
        return result.squeeze(1)
