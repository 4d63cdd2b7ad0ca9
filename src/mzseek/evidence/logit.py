"""The conditional logit: one of a list is the truth, with probability softmax(features · weights).

Fitted by likelihood with a penalty on the squares of the weights, by L-BFGS: no randomness.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.errors import EvidenceError
from mzseek.ragged import Ragged, Words, read_labels

Floats = npt.NDArray[np.float64]
_WORDS = Words(EvidenceError)
_MOST_STEPS = 500


def fit_logit(
    features: Any,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    l2: float = 1e-3,
) -> Floats:
    """Weights under which the labelled candidates are most probable.

    Minimises the mean of ``−log Σ_labelled p`` over lists, plus ``l2 / 2 · Σ weights²``.

    Parameters
    ----------
    features : array or CSR, shape (candidates of all lists, features)
    counts : int array, shape (lists,)
        Candidates in each list, at least 1.
    labels : bool array
        Candidates that are the truth, one a list at least: identical ones share its probability.
    weights : array, shape (lists,), optional
        What each list counts; all alike by default.
    l2 : float
        0 or more.

    Returns
    -------
    float64 array, shape (features,)

    Raises
    ------
    EvidenceError
        Lengths that do not fit, or a list without a label.

    Examples
    --------
    >>> features = np.array([[1.0], [0.0]] * 4)
    >>> right = [1, 0, 1, 0, 1, 0, 0, 1]  # the first of the two in 3 of 4 lists
    >>> fit_logit(features, [2] * 4, right, l2=0).round(3).tolist()  # log 3
    [1.099]
    """
    lists = Ragged(np.asarray(counts, np.int64))
    if (lists.counts < 1).any() or lists.total != features.shape[0]:
        raise EvidenceError(
            f"counts add up to {lists.total}, but there are {features.shape[0]} candidates"
        )
    truth = read_labels(labels, lists, _WORDS)
    share = np.ones(len(lists)) if weights is None else np.asarray(weights, np.float64)
    if share.shape != (len(lists),) or not share.sum() > 0:
        raise EvidenceError(f"{len(share)} weights for {len(lists)} lists, expected one each")
    found = minimize(
        _loss, np.zeros(features.shape[1]), (features, lists, truth, share / share.sum(), l2),
        jac=True, method="L-BFGS-B",
        options={"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-7, "maxcor": 20},
    )  # fmt: skip
    return np.asarray(found.x, np.float64)


def _loss(
    at: Floats,
    features: Any,
    lists: Ragged,
    truth: npt.NDArray[np.bool_],
    share: Floats,
    l2: float,
) -> tuple[float, Floats]:
    """What is minimised, and its slope."""
    slope, log_p = truth_slope(features @ at, lists, truth)
    value = -share @ log_p + 0.5 * l2 * at @ at
    return float(value), features.T @ (lists.spread(share) * slope) + l2 * at


def truth_slope(
    scores: Floats, lists: Ragged, truth: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The slope of −log p of each list's truth along its scores, and log p itself.

    p = softmax(scores); several candidates that are the truth share its probability.
    """
    weight = np.exp(scores - lists.spread(lists.max(scores)))
    p = weight / lists.spread(lists.sum(weight))
    of_truth = np.where(truth, p, 0.0)
    # A truth may be out of reach of the floats: its slope is then that of the least of them.
    mass = np.maximum(lists.sum(of_truth), np.finfo(np.float64).tiny)
    return p - of_truth / lists.spread(mass), np.log(mass)
