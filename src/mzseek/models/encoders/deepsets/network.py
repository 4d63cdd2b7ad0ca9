"""DeepSets on peaks."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.blocks import Block
from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.encoders.deepsets import ENCODER
from mzseek.models.encoders.fourier import FourierFeatures
from mzseek.models.encoders.kind import EncoderKind
from mzseek.models.linear import Linear
from mzseek.tensors import PeakLists


class DeepSets(Encoder):
    """An MLP on each peak, their mean weighted by intensity, an MLP on that and the precursor.

    Parameters
    ----------
    width : int
        Length of an embedding.
    hidden : int
        Width of the MLP on peaks.
    dropout : float
    """

    kind: ClassVar[EncoderKind] = ENCODER

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(width)
        self.fourier = FourierFeatures()
        self.on_peak = nn.Sequential(
            Linear(self.fourier.width + 1, hidden), Block(hidden, dropout), Linear(hidden, hidden)
        )
        self.on_set = nn.Sequential(
            Linear(hidden + self.fourier.width, width), Block(width, dropout), Linear(width, width)
        )

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings of peak lists, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # the batch maker asks `reads`
        peaks = spectra
        features = torch.cat([self.fourier(peaks.mz), peaks.intensities[..., None]], -1)
        states = self.on_peak(features.flatten(0, 1)).unflatten(0, features.shape[:2])
        weights = peaks.intensities * peaks.real
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-12)
        pooled = (states * weights[..., None]).sum(1)  # (batch, hidden)
        result: Tensor = self.on_set(torch.cat([pooled, self.fourier(peaks.precursor_mz)], -1))
        return result
