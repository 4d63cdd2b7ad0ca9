"""Probability that the molecule of a feature is in the searched database.

A list that lacks the true molecule has a best candidate, too. Whether it is the molecule shows in
how far it is ahead of wrong molecules of the same mass: those of its own list and, where the list
is short, bundled molecules that serve as background. A logistic regression reads this margin with
the explained intensity, the channel scores and the nearest reference spectrum. It is fitted on
lists with and without the true molecule, thinned to lengths from 1 to some hundred, both with
equal weight: it gives a likelihood ratio. The share of features whose molecule is in the database
is a prior, which depends on the database (`expected_share`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.decision import Calibration
from mzseek.errors import BundleError
from mzseek.files.json_file import check_fields

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
CHANNELS = ("fragments", "analogs")  # whose absolute scores are read; 0 where there is none
_PLAIN = ("log candidates", "log-odds", "margin", *CHANNELS, "explained", "explained ahead",
          "entropy", "log peaks", "log same mass", "nearest")  # fmt: skip
_BY_LENGTH = _PLAIN[1:10]  # features whose weight depends on the length of the list
NAMES = (*_PLAIN, *(f"{name} × log candidates" for name in _BY_LENGTH))
# Expected share of features whose molecule the database holds, by its number of molecules.
LISTED = 0.15  # candidates that the user lists
SHARES = ((150_000, 0.1), (1_000_000, 0.13), (np.inf, 0.17))
LONGEST = 256  # candidates: the longest lists that it was fitted on
_BOUND = 8.0  # log-odds beyond this are not told from certainty
_FIELDS = {
    "names": [str],
    "mean": [float],
    "spread": [float],
    "weights": [float],
    "intercept": float,
    "least_explained": float,
    "least_margin": float,
    "auc": {...: float},
    "error": float,
    "molecules": int,
}


def expected_share(molecules: int, *, listed: bool = False) -> float:
    """Return the default share of features whose molecule is expected in the database.

    Defaults are cautious. They were chosen on validation (`benchmarks/not_in_database.py`) so that
    at most 3 % of the answers about missing molecules get a confidence above one half.

    Parameters
    ----------
    molecules : int
        In the database.
    listed : bool
        Whether the candidates are the user's own list.

    Examples
    --------
    >>> expected_share(46_000), expected_share(2_000_000)
    (0.1, 0.17)
    """
    if listed:
        return LISTED
    return next(share for size, share in SHARES if molecules <= size)


@dataclass(frozen=True, eq=False)
class ListEvidence:
    """What the scores of a candidate list and of its background say.

    Attributes
    ----------
    scores : float64 array, shape (candidates,)
        Absolute: comparable with those of the background.
    explained : float64 array, shape (candidates,)
        Share of the intensity that each candidate's fragments explain.
    channels : float64 array, shape (candidates, len(CHANNELS))
        Absolute score contributions, the mean over spectra.
    background, background_explained : float64 arrays, shape (background molecules,)
    nearest : float
        Similarity of the nearest reference spectrum.
    peaks : float
        Peaks of a spectrum, the mean over spectra.
    same_mass : int
        How many of the background molecules have the mass of the candidates.
    """

    scores: Floats
    explained: Floats
    channels: Floats
    background: Floats
    background_explained: Floats
    nearest: float
    peaks: float
    same_mass: int

    def only(
        self,
        candidates: npt.NDArray[np.integer],
        background: npt.NDArray[np.integer],
        same_mass: int,
    ) -> "ListEvidence":
        """Return the evidence of some of the candidates and of the background molecules."""
        return ListEvidence(
            self.scores[candidates],
            self.explained[candidates],
            self.channels[candidates],
            self.background[background],
            self.background_explained[background],
            self.nearest,
            self.peaks,
            same_mass,
        )

    @property
    def best(self) -> int:
        """The candidate with the highest score; of equal ones the first."""
        return int(np.argmax(self.scores))

    def margin(self, calibration: Calibration) -> float:
        """Return how far the best candidate is ahead of the average other molecule (log-odds)."""
        others = np.delete(np.concatenate([self.scores, self.background]), self.best)
        if not len(others):
            return 0.0
        scaled = (others - self.scores[self.best]) / calibration.temperature_of(len(others) + 1)
        return float(np.log(len(others)) - np.logaddexp.reduce(scaled))

    def features(self, calibration: Calibration) -> Floats:
        """Return the features of the regression, in the order of `NAMES`."""
        best = self.best
        scores = np.concatenate([self.scores, self.background])
        p = calibration.posterior(scores, [len(scores)])
        p_best = float(np.clip(p[best], 1e-12, 1 - 1e-12))
        explained = np.delete(np.concatenate([self.explained, self.background_explained]), best)
        length = np.log(min(len(self.scores), LONGEST))
        plain = np.array([
            length,
            np.clip(np.log(p_best) - np.log1p(-p_best), -_BOUND, _BOUND),
            np.clip(self.margin(calibration), -_BOUND, 2 * _BOUND),
            *self.channels[best],
            self.explained[best],
            self.explained[best] - (explained.max() if len(explained) else 0.0),
            -(p * np.log(np.maximum(p, 1e-300))).sum(),
            np.log(max(self.peaks, 1.0)),
            np.log(min(len(self.scores) + self.same_mass, LONGEST)),
            self.nearest,
        ])  # fmt: skip
        return np.concatenate([plain, plain[1 : 1 + len(_BY_LENGTH)] * length])


@dataclass(frozen=True, eq=False)
class InDatabase:
    """Fitted logistic regression for the probability that the molecule is in the database.

    Attributes
    ----------
    mean, spread, weights : float64 arrays, shape (len(NAMES),)
        Features are standardised by mean and spread.
    intercept : float
    least_explained, least_margin : float
        Explained intensity and margin that nine of ten true molecules reach which rank first.
    auc : mapping of str to float
        On molecules that it was not fitted on, by list length: how often a list with its molecule
        has the higher probability of two.
    error : float
        Expected calibration error on these.
    molecules : int
        That it was fitted on.
    """

    mean: Floats
    spread: Floats
    weights: Floats
    intercept: float
    least_explained: float
    least_margin: float
    auc: Mapping[str, float]
    error: float
    molecules: int

    def probability(self, features: npt.ArrayLike, share: float) -> Floats:
        """Return the probability that the molecule is among the candidates.

        Parameters
        ----------
        features : array, shape (lists, len(NAMES))
            From `ListEvidence.features`.
        share : float
            Expected share of features whose molecule is in the database, between 0 and 1.

        Returns
        -------
        float64 array, shape (lists,)
        """
        check_share(share)
        values = (np.asarray(features, np.float64) - self.mean) / self.spread
        odds = values @ self.weights + self.intercept + np.log(share) - np.log1p(-share)
        return np.asarray(1 / (1 + np.exp(-odds)), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "names": list(NAMES),
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
            "weights": self.weights.tolist(),
            "intercept": self.intercept,
            "least_explained": self.least_explained,
            "least_margin": self.least_margin,
            "auc": dict(self.auc),
            "error": self.error,
            "molecules": self.molecules,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], where: object = "in_database") -> "InDatabase":
        """Read plain data.

        Raises
        ------
        BundleError
            A field is missing or of another type, or the features are others.
        """
        check_fields(facts, _FIELDS, where, BundleError)
        arrays = [np.array(facts[name], np.float64) for name in ("mean", "spread", "weights")]
        if tuple(facts["names"]) != NAMES or {len(array) for array in arrays} != {len(NAMES)}:
            raise BundleError(f"{where}: has other features than this version of mzseek reads")
        if not (arrays[1] > 0).all():
            raise BundleError(f"{where}: has a spread of 0 or less")
        mean, spread, weights = arrays
        return cls(
            mean,
            spread,
            weights,
            intercept=float(facts["intercept"]),
            least_explained=float(facts["least_explained"]),
            least_margin=float(facts["least_margin"]),
            auc=facts["auc"],
            error=float(facts["error"]),
            molecules=facts["molecules"],
        )


def check_share(share: float) -> None:
    """Refuse a share that is no probability between 0 and 1."""
    if not 0 < share < 1:
        raise BundleError(
            f"the share of molecules in the database is {share:g}, expected above 0 and below 1"
        )


def fit_logistic(
    values: Floats, labels: npt.NDArray[np.bool_], weights: Floats, l2: float = 3e-3
) -> tuple[Floats, float]:
    """Return the weights and the intercept under which the labels are most probable.

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
