"""A network on learned projections of the embedding and of the candidate."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from mzseek.networks.layers import Linear, SparseLinear
from mzseek.networks.scorers.base import Counts
from mzseek.networks.scorers.layers import Rest, slices
from mzseek.networks.weights import Array, Weights


class EmbMlp:
    """``MLP(e_sp ‖ e_c ‖ e_sp ⊙ e_c)`` on the learned projections."""

    reads_fingerprint: ClassVar[bool] = False

    def __init__(self, weights: Weights, options: Any, width: int, bits: int) -> None:
        projected = options.projected
        hidden = 3 * projected // 8
        self.spectrum = Linear(weights.under("spectrum"), width, projected)
        self.candidate = SparseLinear(weights.under("candidate"), bits, projected)
        self.first = Linear(weights.under("first"), 3 * projected, hidden)
        self.rest = Rest(weights.under("rest"), hidden)

    def __call__(self, spectra: Array, candidates: csr_array, counts: Counts) -> Array:
        """Scores, shape (candidates,)."""
        spectrum, candidate = self.spectrum(spectra), self.candidate(candidates)
        h = spectrum.shape[1]
        of_spectrum, of_candidate, of_both = np.split(self.first.weight, (h, 2 * h), axis=1)
        once = spectrum @ of_spectrum.T + self.first.bias
        first = np.empty((len(candidate), once.shape[1]), np.float32)
        # W1 (a ‖ b ‖ a⊙b) = Wa a + (Wb + Wp diag(a)) b: one matrix for each list.
        for row, start, here in zip(spectrum, once, slices(counts), strict=True):
            np.matmul(candidate[here], (of_candidate + of_both * row).T, out=first[here])
            first[here] += start
        return self.rest(first)
