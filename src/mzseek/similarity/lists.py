"""Similarities of soft predictions with the candidates of their own lists, by numpy and scipy.

`mzseek.similarity.soft` has the cosine as tensors with gradients.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.errors import SimilarityError
from mzseek.registry import choose
from mzseek.similarity.formulas import cosine_of, tanimoto_of

Floats = npt.NDArray[np.float32]
Counts = npt.NDArray[np.integer]


def list_dots(prediction: Floats, candidates: csr_array, counts: Counts) -> Floats:
    """For each candidate, the sum of its list's prediction over the bits that it has.

    Parameters
    ----------
    prediction : float32 array, shape (lists, bits)
    candidates : CSR matrix of ones, shape (candidates, bits)
        Of all lists, concatenated.
    counts : int array, shape (lists,)
        Candidates in each list.

    Returns
    -------
    float32 array, shape (candidates,)

    Examples
    --------
    >>> rows = csr_array(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
    >>> list_dots(np.array([[0.5, 0.25, 1.0]], np.float32), rows, np.array([2])).tolist()
    [1.5, 0.25]
    """
    # One matrix of a long row for each candidate, times all predictions end to end: scipy's loop
    # over entries then does all lists in one call, and gathers nothing.
    lists, bits = prediction.shape
    wide = candidates.indices.dtype if lists * bits < 2**31 else np.int64
    first = np.repeat(np.arange(lists, dtype=wide) * bits, counts)
    places = candidates.indices + np.repeat(first, np.diff(candidates.indptr))
    rows = csr_array(
        (candidates.data, places, candidates.indptr), shape=(candidates.shape[0], lists * bits)
    )
    result: Floats = rows @ prediction.reshape(-1)
    return result


def _cosine(prediction: Floats, candidates: csr_array, counts: Counts) -> Floats:
    squared = np.repeat(np.einsum("ij,ij->i", prediction, prediction), counts)
    return cosine_of(list_dots(prediction, candidates, counts), squared, _sizes(candidates))


def _soft_tanimoto(prediction: Floats, candidates: csr_array, counts: Counts) -> Floats:
    total = np.repeat(prediction.sum(1), counts)
    return tanimoto_of(list_dots(prediction, candidates, counts), total, _sizes(candidates))


def _thresholded_tanimoto(prediction: Floats, candidates: csr_array, counts: Counts) -> Floats:
    return _soft_tanimoto((prediction > 0.5).astype(np.float32), candidates, counts)


def _sizes(candidates: csr_array) -> Floats:
    """Bits of each candidate."""
    result: Floats = np.diff(candidates.indptr).astype(np.float32)
    return result


# Of a 0/1 candidate and a prediction within [0, 1] the smaller of two entries is their product, so
# Σmin/Σmax is the product form: two names, one function (a test compares it with Σmin/Σmax).
LIST_SIMILARITIES: dict[str, Callable[[Floats, csr_array, Counts], Floats]] = {
    "cosine": _cosine,
    "tanimoto": _thresholded_tanimoto,
    "soft-tanimoto": _soft_tanimoto,
    "minmax-tanimoto": _soft_tanimoto,
}


def list_similarity(
    prediction: Floats, candidates: csr_array, counts: Counts, kind: str = "cosine"
) -> Floats:
    """Similarity of each predicted fingerprint with each candidate of its own list.

    Parameters
    ----------
    prediction : float32 array, shape (lists, bits)
        Within [0, 1].
    candidates : CSR matrix of ones, shape (candidates, bits)
    counts : int array, shape (lists,)
    kind : str
        ``cosine``, ``tanimoto`` (the prediction thresholded at > 0.5), ``soft-tanimoto`` (the
        product form) or ``minmax-tanimoto`` (Σmin/Σmax).

    Returns
    -------
    float32 array, shape (candidates,)
    """
    function = choose(LIST_SIMILARITIES, kind, "similarity", SimilarityError)
    return function(prediction, candidates, counts)
