"""Similarities of soft predictions with the candidates of their own lists, by numpy and scipy.

`mzseek.similarity.soft` has the cosine as tensors with gradients.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import SimilarityError
from mzseek.core.registry import choose
from mzseek.similarity.rows import cosine_of, tanimoto_of

Floats = npt.NDArray[np.float32]
Counts = npt.NDArray[np.integer]


def _end_to_end(shape: tuple[int, ...], candidates: csr_array, counts: Counts) -> csr_array:
    """A long row for each candidate, to be multiplied with all predictions end to end.

    scipy's loop over entries then does all lists in one call, and gathers nothing.
    """
    lists, bits = shape
    wide = candidates.indices.dtype if lists * bits < 2**31 else np.int64
    first = np.repeat(np.arange(lists, dtype=wide) * bits, counts)
    places = candidates.indices + np.repeat(first, np.diff(candidates.indptr))
    return csr_array(
        (candidates.data, places, candidates.indptr), shape=(candidates.shape[0], lists * bits)
    )


@dataclass(frozen=True)
class _Kind:
    """A similarity: of what of a prediction, and by which formula of dots, totals and sizes."""

    reads: Callable[[Floats], Floats]
    total: Callable[[Floats], Floats]
    formula: Callable[[Floats, Floats, Floats], Floats]


def _as_it_is(prediction: Floats) -> Floats:
    return prediction


def _thresholded(prediction: Floats) -> Floats:
    result: Floats = (prediction > 0.5).astype(np.float32)
    return result


def _sum(prediction: Floats) -> Floats:
    result: Floats = prediction.sum(1)
    return result


def _sum_of_squares(prediction: Floats) -> Floats:
    result: Floats = np.einsum("ij,ij->i", prediction, prediction)
    return result


_SOFT_TANIMOTO = _Kind(_as_it_is, _sum, tanimoto_of)

# Of a 0/1 candidate and a prediction within [0, 1] the smaller of two entries is their product, so
# Σmin/Σmax is the product form: two names, one kind (a test compares it with Σmin/Σmax).
LIST_SIMILARITIES: dict[str, _Kind] = {
    "cosine": _Kind(_as_it_is, _sum_of_squares, cosine_of),
    "tanimoto": _Kind(_thresholded, _sum, tanimoto_of),
    "soft-tanimoto": _SOFT_TANIMOTO,
    "minmax-tanimoto": _SOFT_TANIMOTO,
}


def ranking_of(kind: str) -> str:
    """The first name of those that rank alike: ``minmax-tanimoto`` ranks as ``soft-tanimoto``.

    Examples
    --------
    >>> ranking_of("minmax-tanimoto"), ranking_of("tanimoto")
    ('soft-tanimoto', 'tanimoto')
    """
    found = choose(LIST_SIMILARITIES, kind, "similarity", SimilarityError)
    return next(name for name, each in LIST_SIMILARITIES.items() if each is found)


def list_similarities(
    prediction: Floats, candidates: csr_array, counts: Counts, kinds: Iterable[str]
) -> dict[str, Floats]:
    """Similarities of each predicted fingerprint with each candidate of its own list, by name.

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
    >>> said = np.array([[0.75, 0.25, 1.0]], np.float32)
    >>> found = list_similarities(said, rows, np.array([2]), ["tanimoto", "soft-tanimoto"])
    >>> {name: [f"{score:.3f}" for score in scores] for name, scores in found.items()}
    {'tanimoto': ['1.000', '0.000'], 'soft-tanimoto': ['0.778', '0.091']}
    """
    chosen = {
        name: choose(LIST_SIMILARITIES, name, "similarity", SimilarityError) for name in kinds
    }
    if not chosen:
        return {}
    read = {each.reads: each.reads(prediction) for each in chosen.values()}
    rows = _end_to_end(prediction.shape, candidates, counts)
    dots = {reads: rows @ said.reshape(-1) for reads, said in read.items()}
    sizes = np.diff(candidates.indptr).astype(np.float32)  # bits of each candidate
    return {
        name: each.formula(dots[each.reads], np.repeat(each.total(read[each.reads]), counts), sizes)
        for name, each in chosen.items()
    }
