"""The cosine of the predicted fingerprint and the candidate's."""

from typing import Any, ClassVar

from scipy.sparse import csr_array

from mzseek.networks.scorers.base import Counts
from mzseek.networks.weights import Array, Weights
from mzseek.similarity.lists import list_similarity


class FpCos:
    """``cos(ŷ, c)``, in the space of fingerprints."""

    reads_fingerprint: ClassVar[bool] = True

    def __init__(self, weights: Weights, options: Any, width: int, bits: int) -> None:
        """It has no weights."""

    def __call__(self, spectra: Array, candidates: csr_array, counts: Counts) -> Array:
        """Cosines, shape (candidates,)."""
        return list_similarity(spectra, candidates, counts, "cosine")
