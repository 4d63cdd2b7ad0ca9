"""A transformer on peaks."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.encoders.fourier import FourierFeatures
from mzseek.models.encoders.kind import EncoderKind
from mzseek.models.encoders.transformer import ENCODER
from mzseek.models.linear import Linear
from mzseek.tensors import PeakLists


class PeakTransformer(Encoder):
    """Self-attention over peaks, each a token of Fourier features of m/z and its intensity.

    The precursor is a token of its own, and the one whose last state is read.

    Parameters
    ----------
    width : int
        Length of an embedding.
    tokens : int
        Width inside the transformer.
    layers, heads : int
    dropout : float
    """

    kind: ClassVar[EncoderKind] = ENCODER

    def __init__(
        self,
        width: int,
        tokens: int,
        layers: int,
        heads: int,
        dropout: float,
    ) -> None:
        super().__init__(width)
        self.fourier = FourierFeatures()
        self.embed = Linear(self.fourier.width + 2, tokens)
        layer = nn.TransformerEncoderLayer(
            tokens, heads, 4 * tokens, dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Sequential(nn.LayerNorm(tokens), Linear(tokens, width))

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings of peak lists, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # the batch maker asks `reads`
        peaks = spectra
        mz = torch.cat([peaks.precursor_mz[:, None], peaks.mz], 1)  # (batch, 1 + peaks)
        intensities = torch.cat([torch.zeros_like(mz[:, :1]), peaks.intensities], 1)
        is_precursor = torch.zeros_like(mz)
        is_precursor[:, 0] = 1
        features = torch.cat(
            [self.fourier(mz), intensities[..., None], is_precursor[..., None]], -1
        )
        padded = torch.cat([peaks.real.new_zeros(len(peaks.real), 1), ~peaks.real], 1)
        states = self.layers(self.embed(features), src_key_padding_mask=padded)
        result: Tensor = self.out(states[:, 0])
        return result
