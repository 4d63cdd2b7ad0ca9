"""A control that sees nothing of the spectrum."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.encoders.blind import ENCODER
from mzseek.models.encoders.kind import EncoderKind
from mzseek.tensors import SparseRows


class BlindEncoder(Encoder):
    """One learned vector for every spectrum: what is left is the candidates' own prior.

    Parameters
    ----------
    width : int
        Length of an embedding.
    """

    kind: ClassVar[EncoderKind] = ENCODER

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.constant = nn.Parameter(torch.randn(width))

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """The same embedding for each of the batch, shape (batch, width)."""
        assert isinstance(spectra, SparseRows)  # the batch maker asks `reads`
        return self.constant.expand(spectra.shape[0], -1)
