"""A network on the predicted fingerprint and the candidate's."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from mzseek.networks.layers import Linear
from mzseek.networks.scorers.base import Counts
from mzseek.networks.scorers.layers import Rest, slices
from mzseek.networks.weights import Array, Weights


class FpMlp:
    """``MLP(ŷ ‖ c ‖ ŷ ⊙ c)`` in the space of fingerprints."""

    reads_fingerprint: ClassVar[bool] = True

    def __init__(self, weights: Weights, options: Any, width: int, bits: int) -> None:
        hidden = options.first_layer(bits)
        self.predicted = Linear(weights.under("predicted"), bits, hidden)
        self.candidate = weights.take("candidate", (bits, hidden))
        self.common = weights.take("common", (bits, hidden))
        self.rest = Rest(weights.under("rest"), hidden)

    def __call__(self, spectra: Array, candidates: csr_array, counts: Counts) -> Array:
        """Scores, shape (candidates,)."""
        once = self.predicted(spectra)
        scores = np.empty(candidates.shape[0], np.float32)
        # W1 (ŷ ‖ c ‖ ŷ⊙c) = Wa ŷ + (Wb + diag(ŷ) Wp) c: one matrix for each list, its bits alone.
        for predicted, start, here in zip(spectra, once, slices(counts), strict=True):
            if here.start == here.stop:
                continue
            borders = candidates.indptr[here.start : here.stop + 1]
            entries = candidates.indices[borders[0] : borders[-1]]
            bits, places = np.unique(entries, return_inverse=True)
            matrix = self.common[bits]
            matrix *= predicted[bits, None]
            matrix += self.candidate[bits]
            ones = np.ones(len(places), np.float32)
            rows = csr_array((ones, places, borders - borders[0]), (len(borders) - 1, len(bits)))
            first = rows @ matrix
            first += start
            scores[here] = self.rest(first)
        return scores
