"""The control that sees nothing, as `mzseek.models.encoders.blind` has it."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from mzseek.networks.weights import Array, Weights


class BlindEncoder:
    """One learned vector for every spectrum."""

    reads: ClassVar[str] = "bins"

    def __init__(self, weights: Weights, options: Any, bins: int) -> None:
        self.constant = weights.take("constant", (options.width,))

    def __call__(self, spectra: csr_array) -> Array:
        """The same embedding for each of the batch, shape (batch, width)."""
        return np.repeat(self.constant[None], spectra.shape[0], axis=0)
