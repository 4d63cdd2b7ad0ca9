"""The cosine of learned projections."""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from mzseek.models.scorers.emb_cos import SCORER
from mzseek.models.scorers.kind import ScorerKind
from mzseek.models.scorers.layers import Projected
from mzseek.tensors import SparseRows, gather_dot, mapped_norm, spread


class EmbCos(Projected):
    """``cos(W_sp e, W_c c)``, in a learned space.

    Parameters
    ----------
    width, bits : int
        Length of an embedding, and of a fingerprint.
    projected : int
        Dimensions of the learned space, 256 in the paper.
    """

    kind: ClassVar[ScorerKind] = SCORER

    def forward(self, spectra: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
        """Cosines, shape (candidates,)."""
        spectrum = F.normalize(self.spectrum(spectra), dim=1)
        weight, bias = self.candidate.weight, self.candidate.bias
        # a·(c W + b) = (W a)·c + a·b: with W a at hand, once a spectrum, a candidate's product is a
        # sum over its bits. Only its norm needs the projection itself.
        dot = gather_dot(F.linear(spectrum, weight), candidates, counts)
        dot = dot + spread(spectrum @ bias, counts)
        return dot / mapped_norm(candidates, weight, bias).clamp(min=1e-12)
