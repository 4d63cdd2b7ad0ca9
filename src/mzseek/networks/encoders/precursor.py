"""The control that sees the precursor alone, as `mzseek.models.encoders.precursor` has it."""

from typing import Any, ClassVar

from mzseek.networks.encoders.base import Peaks
from mzseek.networks.layers import FourierFeatures, Mlp
from mzseek.networks.weights import Array, Weights


class PrecursorMlp:
    """An MLP on Fourier features of the precursor m/z."""

    reads: ClassVar[str] = "peaks"

    def __init__(self, weights: Weights, options: Any, bins: int) -> None:
        self.fourier = FourierFeatures()
        self.layers = Mlp(weights.under("layers"), self.fourier.width, options.width, options.width)

    def __call__(self, spectra: Peaks) -> Array:
        """Embeddings, shape (batch, width)."""
        return self.layers(self.fourier(spectra.precursor_mz))
