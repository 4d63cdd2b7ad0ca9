"""A control that sees nothing of the spectrum."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.tensors import SparseRows


class BlindEncoder(Encoder):
    """One learned vector for every spectrum: what is left is the candidates' own prior.

    Parameters
    ----------
    width : int
        Length of an embedding.
    """

    options: ClassVar[tuple[str, ...]] = ("width",)
    reads: ClassVar[str] = "bins"
    sees_spectrum: ClassVar[bool] = False

    def __init__(self, width: int = 1024) -> None:
        super().__init__(width)
        self.constant = nn.Parameter(torch.randn(width))

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """The same embedding for each of the batch, shape (batch, width)."""
        assert isinstance(spectra, SparseRows)  # the batch maker asks `reads`
        return self.constant.expand(spectra.shape[0], -1)
