"""Similarity bands: how alike the candidates of a list are."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import DecisionError
from mzseek.core.ragged import gather_indices, pointers
from mzseek.core.registry import check_name
from mzseek.core.text import Table, Tabular
from mzseek.decision.distributions import Distribution, Floats, Ints, binary_rows
from mzseek.decision.utilities import BAND_SIMILARITIES, UTILITIES


@dataclass(frozen=True)
class Band:
    """The similarity band of a set of candidates.

    Attributes
    ----------
    low, high : float
        Smallest and largest similarity of two different candidates: σ_min and σ_max.
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        """``high − low``."""
        return self.high - self.low


def similarity_band(
    fingerprints: Any, similarity: str = "tanimoto", reference: int | None = None
) -> Band:
    """Smallest and largest similarity among candidates.

    Parameters
    ----------
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
        At least two. Equal rows are different candidates here: they make ``high`` 1.
    similarity : str
        "bits", "tanimoto", "cosine" or "f1".
    reference : int, optional
        Compare this row with all others, as the paper's figures do with the truth. By default all
        pairs are compared, as its theorems need it.

    Examples
    --------
    >>> rows = [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    >>> similarity_band(rows)
    Band(low=0.0, high=0.5)
    >>> band = similarity_band(rows, reference=0)
    >>> round(band.low, 3), band.high
    (0.333, 0.5)
    """
    check_similarity(similarity)
    indptr, indices, width = binary_rows(fingerprints)
    count = len(indptr) - 1
    if count < 2:
        raise DecisionError("a similarity band needs at least two candidates, got 1")
    if reference is not None and not 0 <= reference < count:
        raise DecisionError(f"reference is {reference}, expected a row from 0 to {count - 1}")
    rows = csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(count, width))
    sizes = np.diff(indptr).astype(np.float64)
    of = UTILITIES[similarity].of
    if reference is not None:
        bits = np.zeros(width, np.float32)
        bits[indices[indptr[reference] : indptr[reference + 1]]] = 1
        values = np.delete(of(rows @ bits, sizes[reference], sizes, width), reference)
        return Band(float(values.min()), float(values.max()))
    low, high = np.inf, -np.inf
    turned = rows.T.tocsc()
    for start in range(0, count, 512):  # lists of any length, in bounded memory
        here = np.arange(start, min(start + 512, count))
        values = of((rows[here] @ turned).toarray(), sizes[here, None], sizes, width)
        values[np.arange(len(here)), here] = np.nan
        low, high = min(low, float(np.nanmin(values))), max(high, float(np.nanmax(values)))
    return Band(low, high)


def band_of(known: Distribution, similarity: str = "tanimoto") -> Band:
    """Band over all pairs of the distinct candidates of a distribution with at least two."""
    check_similarity(similarity)
    sizes = known.sizes
    values = UTILITIES[similarity].of(known.overlaps, sizes[:, None], sizes, known.width)
    above = values[np.triu_indices(len(known), 1)]
    return Band(float(above.min()), float(above.max()))


@dataclass(frozen=True)
class Bands(Tabular):
    """Similarity bands of many lists.

    Attributes
    ----------
    low, high : float64 arrays, shape (lists,)
        NaN for a list in which there is nothing to compare.
    """

    low: Floats
    high: Floats

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Lists in which there was something to compare."""
        return np.isfinite(self.low)

    def to_table(self) -> Table:
        """One row for each list; nothing where there is nothing to compare."""
        return Table({"low": self.low.tolist(), "high": self.high.tolist()}, "Similarity bands")

    def medians(self) -> dict[str, float]:
        """Medians of σ_min, σ_max and of the width, as in the paper's table."""
        low, high = self.low[self.usable], self.high[self.usable]
        if not len(low):
            raise DecisionError("no list has two candidates to compare")
        return {
            "low": float(np.median(low)),
            "high": float(np.median(high)),
            "width": float(np.median(high - low)),
        }


def bands_of_lists(
    fingerprints: csr_array,
    candidates: Ints,
    counts: Ints,
    references: Ints | None,
    similarity: str = "tanimoto",
) -> Bands:
    """Bands of many candidate lists.

    Parameters
    ----------
    fingerprints : CSR of 0/1, shape (molecules, bits)
    candidates : int array
        Rows of ``fingerprints``, all lists concatenated.
    counts : int array, shape (lists,)
    references : int array, shape (lists,), or None
        The row to compare each list's candidates with, itself left out where it is among them; None
        compares all pairs of each list.
    similarity : str
        "bits", "tanimoto", "cosine" or "f1".
    """
    check_similarity(similarity)
    indptr, indices, width = binary_rows(fingerprints)
    _check_places(candidates, counts, references, len(indptr) - 1)
    bounds = pointers(counts)
    low, high = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    of = UTILITIES[similarity].of
    flags = np.zeros(width, np.float64)
    for index, (start, end) in enumerate(pairwise(bounds)):
        members = np.asarray(candidates[start:end], np.int64)
        if references is None:
            if len(members) > 1:
                band = similarity_band(fingerprints[members], similarity)
                low[index], high[index] = band.low, band.high
            continue
        reference = int(references[index])
        members = members[members != reference]
        if not len(members):
            continue
        mine = indices[indptr[reference] : indptr[reference + 1]]
        flags[mine] = 1
        ends, take = gather_indices(indptr, members)
        sizes = np.diff(ends)
        list_of = np.repeat(np.arange(len(members)), sizes)
        common = np.bincount(list_of, weights=flags[indices[take]], minlength=len(members))
        values = of(common, float(len(mine)), sizes.astype(np.float64), width)
        flags[mine] = 0
        low[index], high[index] = values.min(), values.max()
    return Bands(low, high)


def _check_places(candidates: Ints, counts: Ints, references: Ints | None, rows: int) -> None:
    if (np.asarray(counts) < 0).any() or np.sum(counts) != len(candidates):
        raise DecisionError(
            f"counts sum to {np.sum(counts):,}, but there are {len(candidates):,} candidates"
        )
    if references is not None and np.shape(references) != np.shape(counts):
        raise DecisionError(
            f"references have shape {np.shape(references)}, expected {np.shape(counts)}"
        )
    for name, rows_of in (("candidate", candidates), ("reference", references)):
        selected = np.asarray(rows_of if rows_of is not None else [], np.int64)
        wrong = (selected < 0) | (selected >= rows)
        if wrong.any():
            raise DecisionError(
                f"{name} is {selected[wrong][0]}, expected a row from 0 to {rows - 1}"
            )


def check_similarity(similarity: str) -> None:
    """Refuse what is no similarity of vectors."""
    check_name(BAND_SIMILARITIES, similarity, "similarity", DecisionError)
