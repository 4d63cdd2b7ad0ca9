"""The appendix' worst cases: distributions on which one decision is as bad as can be shown."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.decision.decide import regret
from mzseek.decision.distributions import Floats
from mzseek.errors import DecisionError

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
    one = np.zeros(m, np.uint8)
    one[0] = 1
    complement = 1 - one
    neighbours = np.repeat(complement[None], m - 1, axis=0)
    neighbours[np.arange(m - 1), np.arange(1, m)] = 0
    p = [0.5 - epsilon, 0.5 - (2 * m - 3) * epsilon, *[2 * epsilon] * (m - 1)]
    return np.vstack([one, complement, neighbours]), np.array(p)


def _against_hit(m: int, epsilon: float) -> _Family:
    """The zero vector is the mode by a little; all else is full, or full but for one bit."""
    full = np.ones(m, np.uint8)
    almost = np.repeat(full[None], m, axis=0)
    np.fill_diagonal(almost, 0)
    alpha = 1 / (m + 2) - epsilon
    p = [1 / (m + 2) + (m + 1) * epsilon, *[alpha] * (m + 1)]
    return np.vstack([0 * full, full, almost]), np.array(p)


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

    Returns
    -------
    WorstCase

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
