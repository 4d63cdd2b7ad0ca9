"""What the network of an encoder is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from mzseek.models.encoders.kind import EncoderKind
from mzseek.tensors import PeakLists, SparseRows

SpectrumInput = SparseRows | PeakLists


class Encoder(nn.Module, ABC):
    """Reads a batch of spectra, gives embeddings.

    Attributes
    ----------
    kind : EncoderKind
        What is known about it, such as what it reads.
    width : int
        Length of an embedding.
    """

    kind: ClassVar[EncoderKind]

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    @abstractmethod
    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings, shape (batch, width)."""
