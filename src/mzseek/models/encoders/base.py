"""What an encoder is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from mzseek.tensors import PeakLists, SparseRows

SpectrumInput = SparseRows | PeakLists


class Encoder(nn.Module, ABC):
    """Reads a batch of spectra, gives embeddings.

    Attributes
    ----------
    reads : str
        ``bins`` (`SparseRows`) or ``peaks`` (`PeakLists`): what a batch must carry for it.
    sees_spectrum : bool
        False for the controls, which must do without the peaks.
    options : tuple of str
        Fields of a `ModelSpec` that it is built from.
    width : int
        Length of an embedding.
    """

    options: ClassVar[tuple[str, ...]] = ("width", "dropout")
    reads: ClassVar[str]
    sees_spectrum: ClassVar[bool] = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    @abstractmethod
    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings, shape (batch, width)."""
