"""Bayes decisions, and what the wrong one costs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import DecisionError
from mzseek.core.registry import check_name
from mzseek.decision.distributions import (
    Distribution,
    checked_prediction,
    distribution,
    expected,
    expected_of_candidates,
)
from mzseek.decision.utilities import WITHIN, Within, utility_named
from mzseek.similarity import checked_rows


@dataclass(frozen=True)
class Decision:
    """The decision for a utility.

    Attributes
    ----------
    bits : uint8 array, shape (bits,)
        The fingerprint decided for.
    index : int or None
        The row of the candidates that has it (of equal rows, the most probable); None if none has.
    expected_utility : float
    upper_bound : float
        No decision of the same kind has a higher expected utility. Equal to it where the decision
        is known to be optimal, which is always but for Tanimoto over all fingerprints.
    """

    bits: npt.NDArray[np.uint8]
    index: int | None
    expected_utility: float
    upper_bound: float

    @property
    def optimal(self) -> bool:
        """Whether no decision can be better."""
        return self.upper_bound <= self.expected_utility


@dataclass(frozen=True)
class Decomposition:
    """A rule's regret in two parts that sum to it (lemma "exact decomposition").

    Attributes
    ----------
    bayes : float
        Deciding for one utility when another counts.
    residual : float
        Deciding by the learned rule instead of by the Bayes rule; may be negative.
    total : float
    """

    bayes: float
    residual: float
    total: float


def bayes_decision(
    utility: str,
    fingerprints: Any,
    probabilities: npt.ArrayLike,
    within: Within = "candidates",
) -> Decision:
    """Return the decision of highest expected utility.

    Parameters
    ----------
    utility : str
        "hit" (HR@1), "bits" (bit accuracy), "tanimoto", "cosine" or "f1".
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
        Equal rows count as one, with the sum of their probabilities.
    probabilities : array, shape (candidates,)
    within : "candidates" or "all"
        Decide for one of the candidates, or for any fingerprint of {0,1}^m.

    Returns
    -------
    Decision
        Of several that are equally good, one of the candidates comes before others where the two
        are compared, and the first comes before the later.

    Examples
    --------
    The paper's example:

    >>> rows = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 1, 0, 0, 1]]
    >>> p = [0.05, 0.25, 0.30, 0.40]
    >>> for utility in ("hit", "bits", "cosine", "tanimoto"):
    ...     decision = bayes_decision(utility, rows, p, within="all")
    ...     bits = "".join(map(str, decision.bits))
    ...     print(utility, bits, round(decision.expected_utility, 4))
    hit 11001 0.4
    bits 10000 0.72
    cosine 11111 0.6893
    tanimoto 11001 0.5708
    """
    return decide(utility, distribution(fingerprints, probabilities), within)


def decide(utility: str, candidates: Distribution, within: Within = "candidates") -> Decision:
    """`bayes_decision` under a checked distribution."""
    rules = utility_named(utility).rules
    check_within(within)
    if within == "candidates":
        values = expected_of_candidates(utility, candidates)
        best = int(np.argmax(values))
        value = float(values[best])
        return Decision(candidates.bits_of(best), int(candidates.rows[best]), value, value)
    bits, value, ceiling = rules.decode(candidates)
    index = candidates.place_of(bits)
    return Decision(bits, None if index is None else int(candidates.rows[index]), value, ceiling)


def top_k(fingerprints: Any, probabilities: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Return the HR@k decision: the k most probable fingerprints.

    Parameters
    ----------
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
        Equal rows count as one: it is listed once, as the most probable of them.
    probabilities : array, shape (candidates,)
    k : int
        At least 1.

    Returns
    -------
    int64 array
        Rows, the most probable first, equally probable ones in their order; fewer than k where
        there are fewer distinct fingerprints.

    Examples
    --------
    >>> top_k([[1, 0], [0, 1], [1, 0], [1, 1]], [0.3, 0.35, 0.25, 0.1], k=2).tolist()
    [0, 1]
    """
    if k < 1:
        raise DecisionError(f"k is {k}, expected at least 1")
    candidates = distribution(fingerprints, probabilities)
    return candidates.rows[np.argsort(-candidates.probabilities, kind="stable")[:k]]


def regret(
    evaluated_under: str,
    decoded_for: str,
    fingerprints: Any,
    probabilities: npt.ArrayLike,
    within: Within = "candidates",
) -> float:
    """Return what is lost, in one utility, by the decision that is best for another.

    ``E[U(Y, y_U)] − E[U(Y, y_V)]``, with U the utility evaluated under and V the one decoded for.

    Parameters
    ----------
    evaluated_under, decoded_for : str
        Utilities as in `bayes_decision`.
    fingerprints, probabilities, within
        As in `bayes_decision`.

    Returns
    -------
    float
        Not negative. For Tanimoto over all fingerprints, where the best decision is the best one
        found, the true regret may be larger.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 1, 0, 0, 1]]
    >>> round(regret("hit", "tanimoto", rows, [0.3, 0.25, 0.2, 0.25]), 3)
    0.0
    """
    candidates = distribution(fingerprints, probabilities)
    reached = expected(evaluated_under, decide(decoded_for, candidates, within).bits, candidates)
    return max(decide(evaluated_under, candidates, within).expected_utility - reached, 0.0)


def decompose(
    evaluated_under: str,
    decoded_for: str,
    fingerprints: Any,
    probabilities: npt.ArrayLike,
    chosen: Any,
    within: Within = "candidates",
) -> Decomposition:
    """Split what a rule loses into Bayes mismatch and residual (lemma "exact decomposition").

    Parameters
    ----------
    evaluated_under, decoded_for : str
        Utilities as in `bayes_decision`: the one that counts, and the one that the rule was made
        for.
    fingerprints, probabilities, within
        As in `bayes_decision`; the probabilities are the calibrated posterior.
    chosen : int, or 0/1 array of shape (bits,)
        What the rule decided for: a row of the candidates, or a fingerprint.

    Examples
    --------
    >>> parts = decompose("hit", "tanimoto", [[1, 1, 0], [1, 0, 1], [0, 1, 1]],
    ...                   [0.5, 0.3, 0.2], chosen=2)
    >>> [round(part, 3) for part in (parts.bayes, parts.residual, parts.total)]
    [0.0, 0.3, 0.3]
    """
    candidates = distribution(fingerprints, probabilities)
    if np.ndim(chosen) == 0:
        rows = np.shape(probabilities)[0]
        if not isinstance(chosen, int | np.integer) or not 0 <= chosen < rows:
            raise DecisionError(f"chosen is {chosen!r}, expected a row from 0 to {rows - 1}")
        chosen = checked_rows(fingerprints)[[int(chosen)]]
    bits = checked_prediction(chosen, candidates.width)
    reached = expected(evaluated_under, bits, candidates)
    return decompose_under(evaluated_under, decoded_for, candidates, reached, within)


def decompose_under(
    evaluated_under: str,
    decoded_for: str,
    candidates: Distribution,
    reached: float,
    within: Within = "candidates",
) -> Decomposition:
    """`decompose` under a checked distribution, of a rule that is worth so much."""
    best = decide(evaluated_under, candidates, within).expected_utility
    other = expected(evaluated_under, decide(decoded_for, candidates, within).bits, candidates)
    return Decomposition(best - other, other - reached, best - reached)


def check_within(within: str) -> None:
    """Refuse another place to decide in than there is."""
    check_name(WITHIN, within, "within", DecisionError)
