"""The cosine of learned projections of the embedding and of the candidate."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from mzseek.networks.layers import Linear, SparseLinear
from mzseek.networks.scorers.base import Counts
from mzseek.networks.scorers.layers import norms, slices
from mzseek.networks.weights import Array, Weights


class EmbCos:
    """``cos(W_sp e, W_c c)``, in a learned space."""

    reads_fingerprint: ClassVar[bool] = False

    def __init__(self, weights: Weights, options: Any, width: int, bits: int) -> None:
        self.spectrum = Linear(weights.under("spectrum"), width, options.projected)
        self.candidate = SparseLinear(weights.under("candidate"), bits, options.projected)

    def __call__(self, spectra: Array, candidates: csr_array, counts: Counts) -> Array:
        """Cosines, shape (candidates,)."""
        spectrum = self.spectrum(spectra)
        spectrum /= np.maximum(norms(spectrum), np.float32(1e-12))[:, None]
        candidate = self.candidate(candidates)
        # One small product a list; a row of `spectrum` for each candidate would be as large again.
        dots = np.empty(len(candidate), np.float32)
        for row, here in zip(spectrum, slices(counts), strict=True):
            np.dot(candidate[here], row, out=dots[here])
        dots /= np.maximum(norms(candidate), np.float32(1e-12))
        return dots
