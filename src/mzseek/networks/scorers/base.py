"""What a scorer is here: built from weights and sizes, called with what was read of spectra."""

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.networks.weights import Array, Weights

Counts = npt.NDArray[np.int64]


class Scorer(Protocol):
    """Scores the candidates of each spectrum.

    Attributes
    ----------
    reads_fingerprint : bool
        Does it read the predicted fingerprint (or the embedding)?
    """

    reads_fingerprint: ClassVar[bool]

    def __init__(self, weights: Weights, options: Any, width: int, bits: int) -> None: ...

    def __call__(self, spectra: Array, candidates: csr_array, counts: Counts) -> Array:
        """Scores, shape (candidates,).

        Parameters
        ----------
        spectra : float32 array, shape (batch, bits or width)
            Predicted fingerprints within [0, 1], or embeddings.
        candidates : CSR matrix of ones, shape (candidates, bits)
            Of all spectra, concatenated.
        counts : int array, shape (batch,)
            Candidates of each spectrum.
        """
