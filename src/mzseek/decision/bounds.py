"""Similarity bands of candidate lists, and the bounds on regret that follow from them."""

import math
from collections.abc import Callable
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
from mzseek.decision.decide import check_within, regret
from mzseek.decision.distributions import (
    Distribution,
    Floats,
    Ints,
    binary_rows,
    distribution,
    expected_of_candidates,
)
from mzseek.decision.utilities import BAND_SIMILARITIES, UTILITIES, Within


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
    of = UTILITIES[similarity].rules.of
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
    values = UTILITIES[similarity].rules.of(known.overlaps, sizes[:, None], sizes, known.width)
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
        """Return one row for each list; none where there is nothing to compare."""
        return Table({"low": self.low.tolist(), "high": self.high.tolist()}, "Similarity bands")

    def medians(self) -> dict[str, float]:
        """Return medians of σ_min, σ_max and of the width, as in the paper's table."""
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
    """Return the bands of many candidate lists.

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
    _check_rows(candidates, counts, references, len(indptr) - 1)
    bounds = pointers(counts)
    low, high = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    of = UTILITIES[similarity].rules.of
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


def _check_rows(candidates: Ints, counts: Ints, references: Ints | None, rows: int) -> None:
    if (np.asarray(counts) < 0).any() or np.sum(counts) != len(candidates):
        raise DecisionError(
            f"counts sum to {np.sum(counts):,}, but there are {len(candidates):,} candidates"
        )
    if references is not None and np.shape(references) != np.shape(counts):
        raise DecisionError(
            f"references have shape {np.shape(references)}, expected {np.shape(counts)}"
        )
    for name, rows_of in (("candidate", candidates), ("reference", references)):
        selected = np.asarray([] if rows_of is None else rows_of, np.int64)
        wrong = selected[(selected < 0) | (selected >= rows)]
        if len(wrong):
            raise DecisionError(f"{name} is {wrong[0]}, expected a row from 0 to {rows - 1}")


def check_similarity(similarity: str) -> None:
    """Refuse what is no similarity of vectors."""
    check_name(BAND_SIMILARITIES, similarity, "similarity", DecisionError)


def row_bounds(low: float, high: float, probability: float) -> tuple[float, float]:
    r"""Bound a candidate's expected similarity by its probability: the row-wise lemma.

    :math:`p_i + \sigma_{min} (1 - p_i) \le u_i \le p_i + \sigma_{max} (1 - p_i)`; both other bounds
    follow from it.

    Parameters
    ----------
    low, high : float
        Similarity band over all pairs of distinct candidates.
    probability : float
        Of the candidate.

    Returns
    -------
    tuple of float
        The least and the largest that the expected similarity can be.

    Examples
    --------
    >>> row_bounds(0.25, 0.5, probability=0.5)
    (0.625, 0.75)
    """
    _check_band(low, high, probability=probability)
    return probability + low * (1 - probability), probability + high * (1 - probability)


def bound_hit_under_similarity(
    low: float, high: float, p_star: float, p_similarity: float
) -> float:
    r"""Largest regret, under a similarity, of deciding for HR@1 (theorem 4.2).

    :math:`[(\sigma_{max} - \sigma_{min})(1 - p_\star - p_{Sim})
    - (1 - \sigma_{max})(p_\star - p_{Sim})]_+`; it is tight.

    Parameters
    ----------
    low, high : float
        Similarity band over all pairs of distinct candidates.
    p_star : float
        Probability of the mode.
    p_similarity : float
        Probability of the candidate that is best under the similarity.

    Examples
    --------
    >>> round(bound_hit_under_similarity(0.1, 0.4, p_star=0.3, p_similarity=0.2), 3)
    0.09
    """
    _check_band(low, high, p_star=p_star, p_similarity=p_similarity)
    if p_similarity > p_star:
        raise DecisionError(
            f"p_similarity {p_similarity:g} is above p_star {p_star:g}, which is the largest"
        )
    width = (high - low) * (1 - p_star - p_similarity)
    return max(0.0, width - (1 - high) * (p_star - p_similarity))


def bound_similarity_under_hit(low: float, high: float, p_star: float) -> float:
    r"""Largest regret, under HR@1, of deciding for a similarity (theorem 4.3).

    :math:`\min\{p_\star, (\sigma_{max} - \sigma_{min}) / (1 - \sigma_{max}) (1 - p_\star)\}`;
    :math:`p_\star` alone where :math:`\sigma_{max} = 1`.

    Parameters
    ----------
    low, high : float
        Similarity band over all pairs of distinct candidates.
    p_star : float
        Probability of the mode.

    Examples
    --------
    >>> round(bound_similarity_under_hit(0.1, 0.4, p_star=0.8), 3)
    0.1
    >>> bound_similarity_under_hit(0.1, 1.0, p_star=0.8)
    0.8
    """
    _check_band(low, high, p_star=p_star)
    if high == 1:
        return p_star
    return min(p_star, (high - low) / (1 - high) * (1 - p_star))


def agreement_guaranteed(low: float, high: float, p_star: float, margin: float) -> bool:
    r"""Return whether the mode is sure to be among the best candidates under a similarity.

    :math:`\Delta \ge (\sigma_{max} - \sigma_{min}) / (1 - \sigma_{max}) (1 - p_\star)`. Others may
    be as good; and where :math:`\sigma_{max} = 1` the theorem says nothing.

    Parameters
    ----------
    low, high, p_star
        As in `bound_similarity_under_hit`.
    margin : float
        Probability of the mode less that of the next candidate.

    Examples
    --------
    >>> agreement_guaranteed(0.1, 0.4, p_star=0.8, margin=0.7)
    True
    >>> agreement_guaranteed(0.1, 1.0, p_star=0.8, margin=0.7)
    False
    """
    _check_band(low, high, p_star=p_star, margin=margin)
    if high == 1:
        return False
    return margin >= (high - low) / (1 - high) * (1 - p_star)


@dataclass(frozen=True)
class Bounds:
    """What the theorems say about one candidate list.

    Attributes
    ----------
    low, high : float
        Band over all pairs of distinct candidates; NaN where there is only one.
    p_star, p_similarity, margin : float
    hit_under_similarity, similarity_under_hit : float
        The two bounds.
    agreement : bool
    """

    low: float
    high: float
    p_star: float
    p_similarity: float
    margin: float
    hit_under_similarity: float
    similarity_under_hit: float
    agreement: bool


def regret_bounds(
    similarity: str,
    fingerprints: Any,
    probabilities: npt.ArrayLike,
    within: Within = "candidates",
) -> Bounds:
    """Both bounds and the agreement condition for a list of candidates.

    Parameters
    ----------
    similarity : str
        "bits", "tanimoto", "cosine" or "f1".
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
        Equal rows are merged first, so that they do not make the band reach 1.
    probabilities : array, shape (candidates,)
    within : "candidates"
        Anything else is refused: the theorems do not hold over all fingerprints.
    """
    check_within(within)
    if within != "candidates":
        raise DecisionError(
            "the bounds hold for decisions within the candidates alone; over all fingerprints "
            "they fail (100, 010, 001, equally probable, under cosine)"
        )
    return bounds_under(similarity, distribution(fingerprints, probabilities))


def bounds_under(similarity: str, known: Distribution) -> Bounds:
    """`regret_bounds` of a checked distribution."""
    check_similarity(similarity)
    p = known.probabilities
    p_star = float(p.max())
    if len(known) == 1:
        return Bounds(np.nan, np.nan, p_star, p_star, p_star, 0.0, 0.0, True)
    best = int(np.argmax(expected_of_candidates(similarity, known)))
    second = float(np.partition(p, -2)[-2])
    band = band_of(known, similarity)
    known_band = band.low, band.high, p_star
    return Bounds(
        *known_band,
        p_similarity=float(p[best]),
        margin=p_star - second,
        hit_under_similarity=bound_hit_under_similarity(*known_band, float(p[best])),
        similarity_under_hit=bound_similarity_under_hit(*known_band),
        agreement=agreement_guaranteed(*known_band, p_star - second),
    )


def _check_band(low: float, high: float, **probabilities: float) -> None:
    for name, value in {"low": low, "high": high, **probabilities}.items():
        if not 0 <= value <= 1:
            raise DecisionError(f"{name} is {value:g}, expected 0 to 1")
    if low > high:
        raise DecisionError(f"the band is {low:g} to {high:g}, expected low at most high")


@dataclass(frozen=True)
class WorstCase:
    """A distribution over fingerprints of m bits, and the regret on it.

    Attributes
    ----------
    fingerprints : uint8 array, shape (outcomes, m)
    probabilities : float64 array, shape (outcomes,)
    regret : float
        Over all of {0,1}^m, on this distribution.
    limit : float
        The paper's value: what the regret is at least, as epsilon tends to 0. It tends to just
        that, but for cosine decoded for bits: there the paper's proof takes a decision that is
        worth one half, and the full vector is worth (1 + √(m − 1)) / (2 √m), which falls to it
        with m.
    tight : bool
        Whether no distribution has more; otherwise the limit is a lower bound of the largest.
    """

    fingerprints: npt.NDArray[np.uint8]
    probabilities: Floats
    regret: float
    limit: float
    tight: bool


def _against_bits(m: int, epsilon: float) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return one bit, its complement, and the neighbours of that: each bit in under half."""
    unit = np.zeros(m, np.uint8)
    unit[0] = 1
    complement = 1 - unit
    neighbours = np.repeat(complement[None], m - 1, axis=0)
    neighbours[np.arange(m - 1), np.arange(1, m)] = 0
    p = [0.5 - epsilon, 0.5 - (2 * m - 3) * epsilon, *[2 * epsilon] * (m - 1)]
    return np.vstack([unit, complement, neighbours]), np.array(p)


def _against_hit(m: int, epsilon: float) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Make the zero vector the mode by a little; all else is full, or full but for one bit."""
    ones = np.ones(m, np.uint8)
    almost = np.repeat(ones[None], m, axis=0)
    np.fill_diagonal(almost, 0)
    alpha = 1 / (m + 2) - epsilon
    p = [1 / (m + 2) + (m + 1) * epsilon, *[alpha] * (m + 1)]
    return np.vstack([0 * ones, ones, almost]), np.array(p)


# By utility evaluated under and utility decoded for: the paper's limit, and whether it is tight.
_LIMITS: dict[tuple[str, str], tuple[Callable[[int], float], bool]] = {
    ("hit", "bits"): (lambda m: 0.5, True),
    ("tanimoto", "bits"): (lambda m: 0.5, False),
    ("cosine", "bits"): (lambda m: 0.5, False),
    ("bits", "hit"): (lambda m: (m - 2) / (m + 2), True),
    ("tanimoto", "hit"): (lambda m: (m - 1) / (m + 2), False),
    ("cosine", "hit"): (lambda m: math.sqrt(m * (m - 1)) / (m + 2), False),
}


def worst_case(evaluated_under: str, decoded_for: str, m: int, epsilon: float = 1e-6) -> WorstCase:
    """Return a distribution on which deciding for one utility is as bad, in another, as proved.

    Parameters
    ----------
    evaluated_under, decoded_for : str
        "hit", "tanimoto" or "cosine" decoded for "bits", or "bits", "tanimoto" or "cosine" decoded
        for "hit".
    m : int
        Bits of a fingerprint: at least 3 where it is decoded for bits, at least 4 for HR@1.
    epsilon : float
        How far the distribution is from a tie.

    Examples
    --------
    >>> case = worst_case("tanimoto", "hit", m=10)
    >>> round(case.regret, 4), case.limit
    (0.75, 0.75)
    """
    if (evaluated_under, decoded_for) not in _LIMITS:
        cases = "; ".join(f"{u} decoded for {v}" for u, v in _LIMITS)
        raise DecisionError(
            f"no worst case of {evaluated_under!r} decoded for {decoded_for!r} is known, "
            f"expected one of: {cases}"
        )
    # The theorem is for m > 3: of three bits, 000, 110 and 111 at a third each lose 2/9, not 1/5.
    family, least_m = (_against_bits, 3) if decoded_for == "bits" else (_against_hit, 4)
    if m < least_m:
        raise DecisionError(f"m is {m}, expected at least {least_m}")
    largest = 0.5 / (2 * m)  # beyond it, probabilities turn negative
    if not 0 < epsilon < largest:
        raise DecisionError(f"epsilon is {epsilon:g}, expected above 0 and below {largest:g}")
    fingerprints, p = family(m, epsilon)
    limit, tight = _LIMITS[evaluated_under, decoded_for]
    lost = regret(evaluated_under, decoded_for, fingerprints, p, within="all")
    return WorstCase(fingerprints, p, lost, limit(m), tight)
