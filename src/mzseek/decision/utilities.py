"""Utilities: what a decision is worth when the truth is known.

Each is computed from the bits that decision and truth have in common and from the bits of each, by
the formulas of `mzseek.similarity`. The zero vector is worth 1 against itself and 0 against any
other, for Tanimoto, cosine and F1 alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.distributions import (
    Distribution,
    Floats,
    binary_rows,
    distribution,
)
from mzseek.errors import DecisionError
from mzseek.similarity import bit_agreement_of, cosine_of, f1_of, tanimoto_of

Statistics = Callable[[Any, Any, Any, int], Any]


def _hit(dot: Any, size_a: Any, size_b: Any, width: int) -> Any:
    return ((dot == size_a) & (dot == size_b)).astype(np.float64)


@dataclass(frozen=True)
class Utility:
    """A utility, with the facts that others read.

    Attributes
    ----------
    name, label : str
        In code, and for people.
    of : callable of (common bits, bits of the one, bits of the other, width)
    vectorwise : bool
        Whether it is a similarity of vectors in the sense of the paper's theorems.
    """

    name: str
    label: str
    of: Statistics
    vectorwise: bool


UTILITIES: dict[str, Utility] = {
    each.name: each
    for each in (
        Utility("hit", "HR@1", _hit, vectorwise=False),
        Utility("bits", "bit accuracy", bit_agreement_of, vectorwise=False),
        Utility("tanimoto", "Tanimoto", lambda d, a, b, _: tanimoto_of(d, a, b), vectorwise=True),
        Utility("cosine", "cosine", lambda d, a, b, _: cosine_of(d, a, b), vectorwise=True),
        Utility("f1", "F1", lambda d, a, b, _: f1_of(d, a, b), vectorwise=True),
    )
}


def utility_named(name: str) -> Utility:
    """Utility of that name; an unknown one is refused with the list of those there are."""
    try:
        return UTILITIES[name]
    except KeyError:
        known = ", ".join(UTILITIES)
        raise DecisionError(f"utility {name!r} is unknown, expected one of {known}") from None


def expected_utility(
    utility: str, prediction: Any, fingerprints: Any, probabilities: npt.ArrayLike
) -> float:
    """Expected utility of a prediction: ``Σ U(prediction, y) p(y)``.

    Parameters
    ----------
    utility : str
        "hit", "bits", "tanimoto", "cosine" or "f1".
    prediction : 0/1 array or CSR of one row, shape (bits,)
        Any fingerprint, a candidate or not.
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
    probabilities : array, shape (candidates,)

    Returns
    -------
    float

    Examples
    --------
    >>> candidates = [[1, 1, 0], [0, 1, 1]]
    >>> round(expected_utility("tanimoto", [0, 1, 0], candidates, [0.5, 0.5]), 3)
    0.5
    """
    known = distribution(fingerprints, probabilities)
    return expected(utility, checked_prediction(prediction, known.width), known)


def expected(utility: str, bits: npt.NDArray[np.uint8], known: Distribution) -> float:
    """`expected_utility` of a 0/1 array under a checked distribution."""
    common = known.sums_over_bits(bits.astype(np.float64))
    values = utility_named(utility).of(common, float(bits.sum()), known.sizes, known.width)
    return float(values @ known.probabilities)


def expected_of_candidates(utility: str, known: Distribution) -> Floats:
    """Expected utility of deciding for each of the distinct candidates."""
    p, sizes = known.probabilities, known.sizes
    if utility == "hit":
        return p
    if utility == "bits":
        if not known.width:
            return np.ones(len(known))
        q = known.marginals
        return np.asarray(((1 - q).sum() + known.sums_over_bits(2 * q - 1)) / known.width)
    if utility == "cosine":
        # Linear in the decision's bits, so that no pair of candidates has to be looked at.
        values = known.sums_over_bits(cosine_weights(known)) / np.sqrt(np.maximum(sizes, 1))
        return np.where(sizes == 0, known.probability_of_zero, values)
    of = utility_named(utility).of
    return np.asarray(of(known.overlaps, sizes[:, None], sizes[None, :], known.width) @ p)


def cosine_weights(known: Distribution) -> Floats:
    """``w_i = Σ_y y_i p(y) / ‖y‖`` of the paper's cosine theorem."""
    return known.weighted_bits(known.probabilities / np.sqrt(np.maximum(known.sizes, 1)))


def checked_prediction(prediction: Any, width: int) -> npt.NDArray[np.uint8]:
    """A prediction as a 0/1 array of the right length."""
    _, indices, found = binary_rows(prediction)
    rows = np.shape(prediction)[0] if np.ndim(prediction) == 2 else 1
    if found != width or rows != 1:
        raise DecisionError(
            f"prediction has shape {np.shape(prediction)}, expected one row of {width} bits"
        )
    bits = np.zeros(width, np.uint8)
    bits[indices] = 1
    return bits
