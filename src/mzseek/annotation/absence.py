"""Whether the molecule is among the candidates at all: a probability, from what lists look like.

A list that lacks the truth has a best candidate, too. It tends to be less sure, and to explain
less. A logistic regression reads a few such signs. It is fitted on lists without their truth and on
the same lists without one of the others, both with equal weight, so that it is a likelihood ratio:
how many lists lack their truth is a prior of the user's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.errors import BundleError
from mzseek.files.json_file import check_fields
from mzseek.ragged import Ragged

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PRIOR = 0.5
# Signs of the first candidate that are sums of a channel's features, as the channel gives them.
RAW: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "explained": ("fragments", ("no break", "one break", "two breaks", "three breaks")),
    "worth": ("fragments", ("worth",)),
    "pairs": ("fragments", ("pairs",)),
    "lent": ("analogs", ("morgan2, nearest",)),
}
NAMES = ("log candidates", "log-odds", "entropy", "log spectra", "nearest", *RAW)
_SURE = 8.0  # log-odds that are not told from certainty
_PER_SIGN = ("mean", "spread", "weights")
_FIELDS = {
    "names": [str],
    "mean": [float],
    "spread": [float],
    "weights": [float],
    "intercept": float,
    "auc": float,
    "error": float,
    "molecules": int,
}


class _Named(Protocol):
    """What is read of a channel."""

    feature_names: tuple[str, ...]

    @property
    def label(self) -> str: ...


def raw_values(channels: Sequence[_Named], features: Sequence[npt.NDArray[np.floating]]) -> Floats:
    """What channels say of each candidate, before it is compared with its list.

    Parameters
    ----------
    channels : sequence of Channel
    features : sequence of arrays, shapes (rows, features of the channel)
        What each of them says.

    Returns
    -------
    float64 array, shape (rows, len(RAW))
        0 where there is no such channel.
    """
    rows = len(features[0]) if features else 0
    found = np.zeros((rows, len(RAW)))
    by_label = {channel.label: place for place, channel in enumerate(channels)}
    for column, (label, names) in enumerate(RAW.values()):
        if label not in by_label:
            continue
        place = by_label[label]
        known = channels[place].feature_names
        own = [known.index(name) for name in names if name in known]
        found[:, column] = np.asarray(features[place], np.float64)[:, own].sum(1)
    return found


def absence_features(
    probabilities: npt.ArrayLike,
    counts: npt.ArrayLike,
    raw: npt.ArrayLike,
    nearest: npt.ArrayLike,
    spectra: npt.ArrayLike,
) -> Floats:
    """Signs of whether lists hold their truth; what is fitted and what is asked go through here.

    Parameters
    ----------
    probabilities : array
        Calibrated, of all candidates of all lists, concatenated; of all ions that were tried, each
        list summing to 1.
    counts : int array, shape (lists,)
        Candidates of each, at least 1.
    raw : array, shape (candidates of all lists, len(RAW))
        From `raw_values`; the mean over its spectra where a feature has several.
    nearest : array, shape (lists,)
        Similarity of the nearest reference spectrum, the highest of the feature's spectra.
    spectra : int array, shape (lists,)
        Spectra behind each list.

    Returns
    -------
    float64 array, shape (lists, len(NAMES))

    Examples
    --------
    >>> absence_features([0.5, 0.5], [2], np.ones((2, 4)), [0.25], [1]).round(3).tolist()
    [[0.693, 0.0, 0.693, 0.0, 0.25, 1.0, 1.0, 1.0, 1.0]]
    """
    p, lists = np.asarray(probabilities, np.float64), Ragged(np.asarray(counts, np.int64))
    own = np.asarray(raw, np.float64)
    if (lists.counts < 1).any() or lists.total != len(p) or own.shape != (len(p), len(RAW)):
        raise BundleError(
            f"{lists.total} candidates have {len(p)} probabilities and signs of shape {own.shape}"
        )
    first = first_of(p, lists)
    sure = np.clip(p[first], 1e-12, 1 - 1e-12)
    entropy = lists.sum(-p * np.log(np.maximum(p, 1e-300)))
    return np.column_stack(
        [
            np.log(lists.counts),
            np.clip(np.log(sure) - np.log1p(-sure), -_SURE, _SURE),
            entropy,
            np.log(np.asarray(spectra, np.float64)),
            np.asarray(nearest, np.float64),
            own[first],
        ]
    )


def first_of(values: Floats, lists: Ragged) -> Ints:
    """Where the highest value of each list stands; of equal ones the first."""
    order = np.lexsort((np.arange(len(values)), -values, lists.owner))
    return np.asarray(order[lists.starts], np.int64)


@dataclass(frozen=True, eq=False)
class Absence:
    """A fitted regression.

    Attributes
    ----------
    mean, spread, weights : float64 arrays, shape (len(NAMES),)
        Features are taken as differences to the mean, in units of the spread.
    intercept : float
    auc, error : float
        Of molecules that it was not fitted on: how often a list with its truth has the higher
        probability of two, and the expected calibration error.
    molecules : int
        That it was fitted on.
    """

    mean: Floats
    spread: Floats
    weights: Floats
    intercept: float
    auc: float
    error: float
    molecules: int

    def present(self, features: npt.ArrayLike, prior: float = PRIOR) -> Floats:
        """Probability that the truth is among the candidates.

        Parameters
        ----------
        features : array, shape (lists, len(NAMES))
            From `absence_features`.
        prior : float
            Share of features whose molecule is in the database, between 0 and 1.

        Returns
        -------
        float64 array, shape (lists,)
        """
        if not 0 < prior < 1:
            raise BundleError(
                f"the share of molecules in the database is {prior:g}, expected above 0 and below 1"
            )
        values = (np.asarray(features, np.float64) - self.mean) / self.spread
        odds = values @ self.weights + self.intercept + np.log(prior) - np.log1p(-prior)
        return np.asarray(1 / (1 + np.exp(-odds)), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "names": list(NAMES),
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
            "weights": self.weights.tolist(),
            "intercept": self.intercept,
            "auc": self.auc,
            "error": self.error,
            "molecules": self.molecules,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], where: object = "absence") -> "Absence":
        """From plain data.

        Raises
        ------
        BundleError
            A field is missing or of another type, or it reads other signs.
        """
        check_fields(facts, _FIELDS, where, BundleError)
        mean, spread, weights = (np.array(facts[name], np.float64) for name in _PER_SIGN)
        if tuple(facts["names"]) != NAMES or {len(mean), len(spread), len(weights)} != {len(NAMES)}:
            raise BundleError(f"{where}: reads other signs than this version of mzseek has")
        if not (spread > 0).all():
            raise BundleError(f"{where}: has a spread of 0 or less")
        numbers = float(facts["intercept"]), float(facts["auc"]), float(facts["error"])
        return cls(mean, spread, weights, *numbers, facts["molecules"])


def fit_logistic(
    values: Floats, labels: npt.NDArray[np.bool_], weights: Floats, l2: float = 1e-2
) -> tuple[Floats, float]:
    """Weights and intercept under which the labels are most probable.

    Minimises the weighted mean of the log-loss plus ``l2 / 2 · Σ weights²``; the intercept is free.

    Examples
    --------
    >>> values = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> weights, intercept = fit_logistic(values, np.array([1, 1, 0, 1], bool), np.ones(4), 0.1)
    >>> bool(weights[0] > 0), round(intercept, 1)
    (True, 0.7)
    """
    sign = np.where(labels, 1.0, -1.0)
    share = weights / weights.sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        margin = sign * (values @ at[:-1] + at[-1])
        slope = -share * sign / (1 + np.exp(margin))
        value = share @ np.logaddexp(0, -margin) + 0.5 * l2 * at[:-1] @ at[:-1]
        return float(value), np.append(values.T @ slope + l2 * at[:-1], slope.sum())

    found = minimize(loss, np.zeros(values.shape[1] + 1), jac=True, method="L-BFGS-B")
    return np.asarray(found.x[:-1]), float(found.x[-1])
