"""A control that sees the precursor and no peak."""

from typing import ClassVar

from torch import Tensor, nn

from mzseek.models.blocks import Block
from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.encoders.fourier import FourierFeatures
from mzseek.models.encoders.kind import EncoderKind
from mzseek.models.encoders.precursor import ENCODER
from mzseek.models.linear import Linear
from mzseek.tensors import PeakLists


class PrecursorMlp(Encoder):
    """An MLP on Fourier features of the precursor m/z.

    Parameters
    ----------
    width : int
        Length of an embedding.
    dropout : float
    """

    kind: ClassVar[EncoderKind] = ENCODER

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(width)
        self.fourier = FourierFeatures()
        self.layers = nn.Sequential(
            Linear(self.fourier.width, width), Block(width, dropout), Linear(width, width)
        )

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings of precursors, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # the batch maker asks `reads`
        result: Tensor = self.layers(self.fourier(spectra.precursor_mz))
        return result
