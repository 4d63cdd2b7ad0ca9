"""Utilities: what a decision is worth when the truth is known.

Each is computed from the bits that decision and truth have in common and from the bits of each, by
the formulas of `mzseek.similarity`. The zero vector is worth 1 against itself and 0 against any
other, for Tanimoto, cosine and F1 alike.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.distributions import (
    Distribution,
    Floats,
    binary_rows,
    distribution,
)
from mzseek.decision.registry import utility_named
from mzseek.errors import DecisionError


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
    candidates = distribution(fingerprints, probabilities)
    return expected(utility, checked_prediction(prediction, candidates.width), candidates)


def expected(utility: str, bits: npt.NDArray[np.uint8], candidates: Distribution) -> float:
    """`expected_utility` of a 0/1 array under a checked distribution."""
    common = candidates.sums_over_bits(bits.astype(np.float64))
    values = utility_named(utility).of(
        common, float(bits.sum()), candidates.sizes, candidates.width
    )
    return float(values @ candidates.probabilities)


def expected_of_candidates(utility: str, candidates: Distribution) -> Floats:
    """Expected utility of deciding for each of the distinct candidates."""
    rules = utility_named(utility).rules
    if rules.of_candidates is not None:
        return rules.of_candidates(candidates)
    p, sizes = candidates.probabilities, candidates.sizes
    return np.asarray(
        rules.of(candidates.overlaps, sizes[:, None], sizes[None, :], candidates.width) @ p
    )


def checked_prediction(prediction: Any, width: int) -> npt.NDArray[np.uint8]:
    """A prediction as a 0/1 array of the right length."""
    _, indices, own_width = binary_rows(prediction)
    rows = np.shape(prediction)[0] if np.ndim(prediction) == 2 else 1
    if own_width != width or rows != 1:
        raise DecisionError(
            f"prediction has shape {np.shape(prediction)}, expected one row of {width} bits"
        )
    bits = np.zeros(width, np.uint8)
    bits[indices] = 1
    return bits
