"""Similarities of soft predictions with the candidates of their own lists, by numpy and scipy.

`mzseek.similarity.soft` has the cosine as tensors with gradients.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import SimilarityError
from mzseek.core.registry import choose
from mzseek.similarity.rows import cosine_of, tanimoto_of

Floats = npt.NDArray[np.float32]
Counts = npt.NDArray[np.integer]


def _end_to_end(shape: tuple[int, ...], candidates: csr_array, counts: Counts) -> csr_array:
    """Shift each candidate's bits to the prediction of its list, of all predictions concatenated.

    One product by scipy then serves all lists, without gathering.
    """
    lists, bits = shape
    wide = candidates.indices.dtype if lists * bits < 2**31 else np.int64
    first = np.repeat(np.arange(lists, dtype=wide) * bits, counts)
    columns = candidates.indices + np.repeat(first, np.diff(candidates.indptr))
    return csr_array(
        (candidates.data, columns, candidates.indptr), shape=(candidates.shape[0], lists * bits)
    )


def _sum_of_squares(prediction: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", prediction, prediction))


def _sum(prediction: Floats) -> Floats:
    return np.asarray(prediction.sum(1))


class _Kind(NamedTuple):
    """Formula of dot and sizes, size of a prediction, and whether that is thresholded first."""

    formula: Callable[[Floats, Floats, Floats], Floats]
    size: Callable[[Floats], Floats] = _sum
    is_thresholded: bool = False


_SOFT_TANIMOTO = _Kind(tanimoto_of)

# Of a 0/1 candidate and a prediction within [0, 1] the smaller of two entries is their product, so
# Σmin/Σmax is the product form: two names, one kind (a test compares it with Σmin/Σmax).
LIST_SIMILARITIES: dict[str, _Kind] = {
    "cosine": _Kind(cosine_of, _sum_of_squares),
    "tanimoto": _Kind(tanimoto_of, is_thresholded=True),
    "soft-tanimoto": _SOFT_TANIMOTO,
    "minmax-tanimoto": _SOFT_TANIMOTO,
}


def ranking_of(kind: str) -> str:
    """Return the first of the names that rank the same, as two names of one kind do.

    Examples
    --------
    >>> ranking_of("minmax-tanimoto"), ranking_of("tanimoto")
    ('soft-tanimoto', 'tanimoto')
    """
    chosen = choose(LIST_SIMILARITIES, kind, "similarity", SimilarityError)
    return next(name for name, other in LIST_SIMILARITIES.items() if other is chosen)


def list_similarities(
    prediction: Floats, candidates: csr_array, counts: Counts, kinds: Iterable[str]
) -> dict[str, Floats]:
    """Compare each predicted fingerprint with each candidate of its own list, by several names.

    Parameters
    ----------
    prediction : float32 array, shape (lists, bits)
        Within [0, 1].
    candidates : CSR matrix of ones, shape (candidates, bits)
        Of all lists, concatenated.
    counts : int array, shape (lists,)
        Candidates in each list.
    kinds : iterable of str
        ``cosine``, ``tanimoto`` (the prediction thresholded at > 0.5), ``soft-tanimoto`` (the
        product form) or ``minmax-tanimoto`` (Σmin/Σmax).

    Returns
    -------
    dict of str to float32 array, shape (candidates,)

    Examples
    --------
    >>> rows = csr_array(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
    >>> prediction = np.array([[0.75, 0.25, 1.0]], np.float32)
    >>> by_name = list_similarities(prediction, rows, np.array([2]), ["tanimoto", "soft-tanimoto"])
    >>> {name: [f"{score:.3f}" for score in scores] for name, scores in by_name.items()}
    {'tanimoto': ['1.000', '0.000'], 'soft-tanimoto': ['0.778', '0.091']}
    """
    chosen = {
        name: choose(LIST_SIMILARITIES, name, "similarity", SimilarityError) for name in kinds
    }
    if not chosen:
        return {}
    rows = _end_to_end(prediction.shape, candidates, counts)
    sizes = np.diff(candidates.indptr).astype(np.float32)  # bits of each candidate
    predictions = {False: prediction}
    if any(kind.is_thresholded for kind in chosen.values()):
        predictions[True] = (prediction > 0.5).astype(np.float32)
    dots = {key: rows @ values.reshape(-1) for key, values in predictions.items()}
    return {
        name: kind.formula(
            dots[kind.is_thresholded],
            np.repeat(kind.size(predictions[kind.is_thresholded]), counts),
            sizes,
        )
        for name, kind in chosen.items()
    }
