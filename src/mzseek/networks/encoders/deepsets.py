"""DeepSets on peaks, as `mzseek.models.encoders.deepsets` has it."""

from typing import Any, ClassVar

import numpy as np

from mzseek.networks.encoders.base import Peaks
from mzseek.networks.layers import FourierFeatures, Mlp
from mzseek.networks.weights import Array, Weights


class DeepSets:
    """An MLP on each peak, their mean weighted by intensity, an MLP on that and the precursor."""

    reads: ClassVar[str] = "peaks"

    def __init__(self, weights: Weights, options: Any, bins: int) -> None:
        self.fourier = FourierFeatures()
        waves, hidden, width = self.fourier.width, options.hidden, options.width
        self.on_peak = Mlp(weights.under("on_peak"), waves + 1, hidden, hidden)
        self.on_set = Mlp(weights.under("on_set"), hidden + waves, width, width)

    def __call__(self, spectra: Peaks) -> Array:
        """Embeddings, shape (batch, width)."""
        mz, heights = spectra.mz[spectra.real], spectra.intensities[spectra.real]
        states = self.on_peak(np.concatenate([self.fourier(mz), heights[:, None]], 1))
        weights = spectra.intensities * spectra.real
        weights /= np.maximum(weights.sum(1, keepdims=True), np.float32(1e-12))
        states *= weights[spectra.real][:, None]
        pooled = np.zeros((len(spectra.mz), states.shape[1]), np.float32)
        counts = spectra.real.sum(1)
        starts = np.cumsum(counts) - counts
        if len(states):  # a spectrum without peaks has no segment, and stays zero
            pooled[counts > 0] = np.add.reduceat(states, starts[counts > 0])
        precursor = self.fourier(spectra.precursor_mz)
        return self.on_set(np.concatenate([pooled, precursor], 1))
