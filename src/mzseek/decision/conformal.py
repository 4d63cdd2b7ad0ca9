"""Prediction sets and abstention: cover the truth with a stated probability."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from mzseek.core.errors import DecisionError
from mzseek.decision.calibration import checked_labels, checked_lists, list_weights
from mzseek.decision.distributions import Floats, Ints

# The same probability computed twice may differ by so much, and one at the threshold is in.
_ROUNDING = 1e-9
# Sums of shares may be so much below what they stand for.
_SLACK = 1e-12


def prediction_sets(
    probabilities: npt.ArrayLike, counts: npt.ArrayLike, threshold: float
) -> npt.NDArray[np.bool_]:
    """Return which candidates are in their list's prediction set.

    A candidate is in it if its `strength` ``p √n`` is at least the threshold, and the first of a
    list is always in. Neither p alone, which in a long list is small for all, nor p n, which in a
    short list is, treats lists of different lengths alike; their mean does, and gives the smallest
    sets of the three.

    Parameters
    ----------
    probabilities : array
        Over all candidates of all lists, concatenated.
    counts : int array
        Candidates a list.
    threshold : float
        From `fit_set_threshold`.

    Returns
    -------
    bool array
        One value a candidate; equally probable ones of a list are in or out together.

    Examples
    --------
    >>> prediction_sets([0.6, 0.3, 0.06, 0.04, 1.0], [4, 1], threshold=0.5).tolist()
    [True, True, False, False, True]
    """
    if np.isnan(threshold):
        raise DecisionError("threshold is not a number")
    p, lists = checked_lists(probabilities, counts, "probabilities")
    first = p == lists.repeat_per_list(lists.max(p))
    inside: npt.NDArray[np.bool_] = (strength(p, lists.counts) >= threshold - _ROUNDING) | first
    return inside


def fit_set_threshold(
    probabilities: npt.ArrayLike,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    coverage: float,
    groups: Any = None,
) -> float:
    """Fit the threshold under which `prediction_sets` contain the truth as often as wanted.

    Split conformal prediction. The promise rests on exchangeable molecules: those to come are like
    these as if all had been drawn from one urn. Then sets contain the truth with at least the
    stated probability, on average over such draws; a poor posterior makes them larger, not wrong.
    It does not hold for molecules of other structures than these, such as where clusters were split
    apart, and strictly not where these very molecules have chosen or calibrated the posterior. One
    fit on few molecules is off by chance as well: see `coverage_range`.

    Of n molecules, the one to come is reckoned as one more, and the worst of them: enough of these
    must be in that they are the stated share of n + 1, which is the correction for few molecules.

    Parameters
    ----------
    probabilities, counts, labels
        Of a validation fold, over all candidates of all lists, concatenated.
    coverage : float
        Above 0 and below 1.
    groups : array, shape (lists,), optional
        The molecule of each list. Each molecule then counts once, its lists share that one, and the
        promise is for a spectrum of a new molecule: spectra of one molecule, being alike, cannot
        support more. Without groups each list is a molecule of its own.

    Returns
    -------
    float
        0, which puts every candidate in, where there are fewer molecules than `molecules_needed`.

    References
    ----------
    Vovk, Gammerman and Shafer, Algorithmic learning in a random world, 2005; with groups, Lee,
    Barber and Willett, Distribution-free inference with hierarchical data, 2023.

    Examples
    --------
    >>> p, counts = [0.7, 0.2, 0.1, 0.0] * 9, [4] * 9
    >>> labels = [1, 0, 0, 0] * 6 + [0, 1, 0, 0] * 3
    >>> [fit_set_threshold(p, counts, labels, coverage) for coverage in (0.6, 0.8, 0.99)]
    [1.4, 0.4, 0.0]
    """
    _check_coverage(coverage)
    p, lists = checked_lists(probabilities, counts, "probabilities")
    truth = checked_labels(labels, lists)
    reached = lists.max(np.where(truth, strength(p, lists.counts), -np.inf))
    weights = list_weights(groups, len(lists))
    # The list to come is one group more, and the worst: hence the + 1.
    order = np.argsort(-reached, kind="stable")
    share = np.cumsum(weights[order]) / (weights.sum() + 1)
    enough = share >= coverage - _SLACK
    return float(reached[order][np.argmax(enough)]) if enough.any() else 0.0


def molecules_needed(coverage: float) -> int:
    """Return the fewest molecules on which a threshold can be fitted that leaves any candidate out.

    Examples
    --------
    >>> [molecules_needed(coverage) for coverage in (0.8, 0.9, 0.95)]
    [4, 9, 19]
    """
    _check_coverage(coverage)
    return math.ceil(coverage / (1 - coverage) - 1e-9)


def coverage_range(molecules: int, coverage: float, level: float = 0.95) -> tuple[float, float]:
    """Return the range of coverage by chance of a threshold fitted on ``molecules`` molecules.

    The promise is an average over draws of the molecules fitted on. With one draw, the share of new
    molecules covered is distributed as Beta(k, n + 1 − k), k being the molecules that must be in.

    Parameters
    ----------
    molecules : int
        That the threshold was fitted on, one spectrum each; with several a molecule, the range is
        somewhat narrower.
    coverage : float
        That was stated.
    level : float
        How probable it is that the true coverage lies in the range.

    Returns
    -------
    low, high : float
        1 and 1 where there are fewer molecules than `molecules_needed`: then everything is in.

    Examples
    --------
    >>> [tuple(round(end, 2) for end in coverage_range(n, 0.8)) for n in (3, 24, 500)]
    [(1.0, 1.0), (0.63, 0.93), (0.76, 0.83)]
    """
    if molecules < molecules_needed(coverage):
        return 1.0, 1.0
    inside = math.ceil((molecules + 1) * (coverage - _SLACK))
    tails = (1 - level) / 2, (1 + level) / 2
    low, high = (float(betaincinv(inside, molecules + 1 - inside, tail)) for tail in tails)
    return low, high


def strength(probabilities: Floats, counts: Ints) -> Floats:
    """``p √n``: how probable a candidate is, for the length of its list."""
    return np.asarray(probabilities * np.repeat(np.sqrt(counts.astype(np.float64)), counts))


def _check_coverage(coverage: float) -> None:
    if not 0 < coverage < 1:
        raise DecisionError(f"coverage is {coverage:g}, expected above 0 and below 1")


@dataclass(frozen=True)
class RiskCoverage:
    """How the error falls when fewer questions are answered.

    Attributes
    ----------
    threshold : float64 array, falling
        Decoded where the confidence is at least this.
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
    covered = np.cumsum(weights)[last]
    wrong = np.cumsum(weights * (1 - right))[last]
    return RiskCoverage(sure[last], covered / weights.sum(), wrong / covered)


def abstention_threshold(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, error_rate: float, groups: Any = None
) -> float:
    """Return the lowest confidence to answer at, so that no more answers than wanted are wrong.

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
    accepted = curve.coverage * total
    careful = (curve.risk * accepted + 1) / (accepted + 1)
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
