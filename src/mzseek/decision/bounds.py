"""Bounds on regret from the similarity band, and the worst cases that reach them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import DecisionError
from mzseek.decision.bands import band_of, check_similarity
from mzseek.decision.decide import check_within, regret
from mzseek.decision.distributions import Distribution, Floats, distribution, expected_of_candidates
from mzseek.decision.utilities import Within


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
    _check_band(low, high)
    _check_unit(p_star=p_star, p_similarity=p_similarity)
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
    _check_band(low, high)
    _check_unit(p_star=p_star)
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
    _check_band(low, high)
    _check_unit(p_star=p_star, margin=margin)
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
    return Bounds(
        low=band.low,
        high=band.high,
        p_star=p_star,
        p_similarity=float(p[best]),
        margin=p_star - second,
        hit_under_similarity=bound_hit_under_similarity(
            band.low, band.high, p_star, float(p[best])
        ),
        similarity_under_hit=bound_similarity_under_hit(band.low, band.high, p_star),
        agreement=agreement_guaranteed(band.low, band.high, p_star, p_star - second),
    )


def _check_band(low: float, high: float) -> None:
    _check_unit(low=low, high=high)
    if low > high:
        raise DecisionError(f"the band is {low:g} to {high:g}, expected low at most high")


def _check_unit(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise DecisionError(f"{name} is {value:g}, expected 0 to 1")


_Family = tuple[npt.NDArray[np.uint8], Floats]


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


def _against_bits(m: int, epsilon: float) -> _Family:
    """One bit, its complement, and the neighbours of that: every bit is set in just under half."""
    unit = np.zeros(m, np.uint8)
    unit[0] = 1
    complement = 1 - unit
    neighbours = np.repeat(complement[None], m - 1, axis=0)
    neighbours[np.arange(m - 1), np.arange(1, m)] = 0
    p = [0.5 - epsilon, 0.5 - (2 * m - 3) * epsilon, *[2 * epsilon] * (m - 1)]
    return np.vstack([unit, complement, neighbours]), np.array(p)


def _against_hit(m: int, epsilon: float) -> _Family:
    """The zero vector is the mode by a little; all else is full, or full but for one bit."""
    ones = np.ones(m, np.uint8)
    almost = np.repeat(ones[None], m, axis=0)
    np.fill_diagonal(almost, 0)
    alpha = 1 / (m + 2) - epsilon
    p = [1 / (m + 2) + (m + 1) * epsilon, *[alpha] * (m + 1)]
    return np.vstack([0 * ones, ones, almost]), np.array(p)


@dataclass(frozen=True)
class _Case:
    family: Callable[[int, float], _Family]
    limit: Callable[[int], float]
    least_m: int
    tight: bool


_CASES: dict[tuple[str, str], _Case] = {
    ("hit", "bits"): _Case(_against_bits, lambda m: 0.5, 3, tight=True),
    ("tanimoto", "bits"): _Case(_against_bits, lambda m: 0.5, 3, tight=False),
    ("cosine", "bits"): _Case(_against_bits, lambda m: 0.5, 3, tight=False),
    # The theorem is for m > 3: of three bits, 000, 110 and 111 at a third each lose 2/9, not 1/5.
    ("bits", "hit"): _Case(_against_hit, lambda m: (m - 2) / (m + 2), 4, tight=True),
    ("tanimoto", "hit"): _Case(_against_hit, lambda m: (m - 1) / (m + 2), 4, tight=False),
    ("cosine", "hit"): _Case(
        _against_hit, lambda m: math.sqrt(m * (m - 1)) / (m + 2), 4, tight=False
    ),
}


def worst_case(evaluated_under: str, decoded_for: str, m: int, epsilon: float = 1e-6) -> WorstCase:
    """A distribution on which deciding for one utility is as bad, in another, as the paper shows.

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
    case = _CASES.get((evaluated_under, decoded_for))
    if case is None:
        cases = "; ".join(f"{u} decoded for {v}" for u, v in _CASES)
        raise DecisionError(
            f"no worst case of {evaluated_under!r} decoded for {decoded_for!r} is known, "
            f"expected one of: {cases}"
        )
    if m < case.least_m:
        raise DecisionError(f"m is {m}, expected at least {case.least_m}")
    largest = 0.5 / (2 * m)  # beyond it, probabilities turn negative
    if not 0 < epsilon < largest:
        raise DecisionError(f"epsilon is {epsilon:g}, expected above 0 and below {largest:g}")
    fingerprints, p = case.family(m, epsilon)
    lost = regret(evaluated_under, decoded_for, fingerprints, p, within="all")
    return WorstCase(fingerprints, p, lost, case.limit(m), case.tight)
