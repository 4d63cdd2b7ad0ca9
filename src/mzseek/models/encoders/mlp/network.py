"""The paper's encoder: an MLP on binned spectra."""

from typing import ClassVar

from torch import Tensor, nn

from mzseek.models.blocks import Block
from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.encoders.kind import EncoderKind
from mzseek.models.encoders.mlp import ENCODER
from mzseek.models.linear import Linear, SparseLinear
from mzseek.tensors import SparseRows


class BinnedMlp(Encoder):
    """``E(x) = W4 B(W3 B(W2 B(W1 x)))`` with three blocks B.

    Parameters
    ----------
    bins : int
        10,050 in the paper.
    width : int
        1,024 in the paper.
    blocks : int
        3 is the paper's equation; its published runs used 2.
    dropout : float
    """

    kind: ClassVar[EncoderKind] = ENCODER

    def __init__(self, bins: int, width: int, blocks: int, dropout: float) -> None:
        super().__init__(width)
        self.first = SparseLinear(bins, width, may_defer=True)
        layers: list[nn.Module] = []
        for _ in range(blocks):
            layers += [Block(width, dropout), Linear(width, width)]
        self.rest = nn.Sequential(*layers)

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings of binned spectra, shape (batch, width)."""
        assert isinstance(spectra, SparseRows)  # the batch maker asks `reads`
        result: Tensor = self.rest(self.first(spectra))
        return result
