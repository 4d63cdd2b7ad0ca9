"""Answering only where it is likely to be right."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.confidence.lists import Floats, list_weights
from mzseek.errors import DecisionError


@dataclass(frozen=True)
class RiskCoverage:
    """How the error falls when fewer questions are answered.

    Attributes
    ----------
    threshold : float64 array, falling
        Answer where the confidence is at least this.
    coverage, risk : float64 arrays
        Share of the questions answered then, and share of the answers that are wrong.
    """

    threshold: Floats
    coverage: Floats
    risk: Floats

    @property
    def area(self) -> float:
        """Area under risk over coverage: the mean risk over all shares answered."""
        return float(np.diff(self.coverage, prepend=0.0) @ self.risk)

    def at(self, coverage: float) -> float:
        """Risk when at least this share is answered."""
        place = int(np.searchsorted(self.coverage, coverage - 1e-12))
        return float(self.risk[min(place, len(self.risk) - 1)])


def risk_coverage(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, groups: Any = None
) -> RiskCoverage:
    """Risk against coverage, from the surest answer to all of them.

    Parameters
    ----------
    confidence : array, shape (n,)
    correct : array, shape (n,)
        1 where the answer is right, 0 where it is wrong, a fraction where it is so on average.
    groups : array, shape (n,), optional
        The molecule of each question, so that each molecule counts once.

    Returns
    -------
    RiskCoverage
        One entry for each confidence that occurs.

    Examples
    --------
    >>> curve = risk_coverage([0.9, 0.8, 0.5, 0.5], [1, 0, 1, 0])
    >>> curve.threshold.tolist(), curve.coverage.tolist(), curve.risk.tolist()
    ([0.9, 0.8, 0.5], [0.25, 0.5, 1.0], [0.0, 0.5, 0.5])
    """
    sure, right, weights = _checked(confidence, correct, groups)
    order = np.argsort(-sure, kind="stable")
    sure, right, weights = sure[order], right[order], weights[order]
    last = np.r_[np.diff(sure) != 0, True]
    answered = np.cumsum(weights)[last]
    wrong = np.cumsum(weights * (1 - right))[last]
    return RiskCoverage(sure[last], answered / weights.sum(), wrong / answered)


def abstention_threshold(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, error_rate: float, groups: Any = None
) -> float:
    """The lowest confidence to answer at, so that no more answers than wanted are wrong.

    One more wrong answer is counted than was seen, so that a few lucky answers promise nothing.

    Parameters
    ----------
    confidence, correct, groups
        As in `risk_coverage`; of a validation fold.
    error_rate : float
        Share of wrong answers that is acceptable, from 0 to 1.

    Returns
    -------
    float
        Infinity where no threshold reaches it: then nothing should be answered.

    Examples
    --------
    >>> abstention_threshold([0.9] * 9 + [0.5] * 9, [1] * 9 + [0] * 9, error_rate=0.1)
    0.9
    """
    if not 0 <= error_rate <= 1:
        raise DecisionError(f"error_rate is {error_rate:g}, expected 0 to 1")
    curve = risk_coverage(confidence, correct, groups)
    total = _checked(confidence, correct, groups)[2].sum()
    answered = curve.coverage * total
    careful = (curve.risk * answered + 1) / (answered + 1)
    fine = np.flatnonzero(careful <= error_rate)
    return float(curve.threshold[fine[-1]]) if len(fine) else float("inf")


def _checked(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, groups: Any
) -> tuple[Floats, Floats, Floats]:
    try:
        sure = np.asarray(confidence, np.float64)
        right = np.asarray(correct, np.float64)
    except (TypeError, ValueError):
        raise DecisionError("confidence and correct are no numbers") from None
    if sure.ndim != 1 or sure.shape != right.shape or not len(sure):
        raise DecisionError(
            f"confidence has shape {sure.shape} and correct {right.shape}, expected two equal "
            "one-dimensional arrays that are not empty"
        )
    if not np.isfinite(sure).all() or not ((right >= 0) & (right <= 1)).all():
        raise DecisionError("confidence must be finite and correct from 0 to 1")
    return sure, right, list_weights(groups, len(sure))
