"""Calibration by polarity, odds of a match, probability of being in the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import BundleError, DecisionError
from mzseek.decision import Calibration, Pooling
from mzseek.io.manifest import check_fields

Floats = npt.NDArray[np.float64]
_MATCH_FIELDS = {"nats": [float], "same": int, "other": int, "overlap": float}


@dataclass(frozen=True, eq=False)
class MatchOdds:
    """Log-odds of similarities, in bins of equal width from 0 to 1; rising.

    Attributes
    ----------
    log_odds : float64 array, shape (bins,)
    same, other : int
        Pairs that they were measured on: of one molecule by different contributors, and of
        different molecules.
    overlap : float
        Of the molecules of a contributor, the share that others have measured as well.
    """

    log_odds: Floats
    same: int
    other: int
    overlap: float

    def of(self, similarities: npt.ArrayLike) -> Floats:
        """Log-odds of candidates whose own reference spectra are so similar.

        Between the middles of bins they rise evenly.

        Examples
        --------
        >>> MatchOdds(np.array([-1.0, 2.0]), 100, 100, 0.5).of([0.0, 0.25, 0.5, 1.0]).tolist()
        [-1.0, -1.0, 0.5, 2.0]
        """
        middles = (np.arange(len(self.log_odds)) + 0.5) / len(self.log_odds)
        return np.interp(np.asarray(similarities, np.float64), middles, self.log_odds)

    def prior_ratios(self, in_library: npt.NDArray[np.bool_], share: float) -> Floats:
        """Return how much more probable each candidate is for having reference spectra, or none.

        What one laboratory measures, others have often measured as well: `overlap` of its
        molecules, but a smaller share of a database. The mean over the database is 1. The ratio
        is bounded, since it was validated with the bundled database only, where it is 6.

        Parameters
        ----------
        in_library : bool array, shape (candidates,)
            Whether a library has spectra of the candidate's ion.
        share : float
            Share of the database's molecules with reference spectra.

        Examples
        --------
        >>> odds = MatchOdds(np.zeros(10), 100, 100, 0.5)
        >>> odds.prior_ratios(np.array([True, False]), 0.1).round(2).tolist()
        [5.0, 0.56]
        """
        if not self.overlap > share > 0:
            return np.ones(len(in_library))
        ratio = min(self.overlap / share, _MAX_PRIOR_RATIO)
        return np.where(in_library, ratio, (1 - ratio * share) / (1 - share))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "nats": self.log_odds.tolist(),
            "same": self.same,
            "other": self.other,
            "overlap": self.overlap,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object = "match") -> "MatchOdds":
        """Read plain data; raises `BundleError`."""
        check_fields(data, _MATCH_FIELDS, where, BundleError)
        if not data["nats"]:
            raise BundleError(f"{where}: has no nats")
        return cls(np.array(data["nats"], np.float64), data["same"], data["other"], data["overlap"])


_MAX_PRIOR_RATIO = 6.0
CHANNELS = ("fragments", "analogs")  # whose absolute scores are read; 0 where there is none
_PLAIN = ("log candidates", "log-odds", "margin", *CHANNELS, "explained", "explained ahead",
          "entropy", "log peaks", "log same mass", "nearest")  # fmt: skip
_BY_LENGTH = _PLAIN[1:10]  # features whose weight depends on the length of the list
NAMES = (*_PLAIN, *(f"{name} × log candidates" for name in _BY_LENGTH))
# Expected share of features whose molecule the database holds, by its number of molecules.
LISTED = 0.08  # candidates that the user lists
SHARES = ((150_000, 0.02), (1_000_000, 0.04), (np.inf, 0.05))
LONGEST = 256  # candidates: the longest lists that it was fitted on
_BOUND = 8.0  # log-odds beyond this are not told from certainty
_IN_DATABASE_FIELDS = {
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

    Defaults are cautious: the largest with which, on validation (`benchmarks/not_in_database.py`),
    the 95 % upper limits are within 2 % of annotations about missing molecules at level 3 or better
    and 3 % with a confidence above one half. Those of large databases were lowered alike.

    Parameters
    ----------
    molecules : int
        In the database.
    listed : bool
        Whether the candidates are the user's own list.

    Examples
    --------
    >>> expected_share(46_000), expected_share(2_000_000)
    (0.02, 0.05)
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
        odds = (values * self.weights).sum(1) + self.intercept + np.log(share) - np.log1p(-share)
        return np.asarray(1 / (1 + np.exp(-odds)), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        values = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }
        return {"names": list(NAMES), **values, "auc": dict(self.auc)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object = "in_database") -> "InDatabase":
        """Read plain data.

        Raises
        ------
        BundleError
            A field is missing or of another type, or the features are others.
        """
        check_fields(data, _IN_DATABASE_FIELDS, where, BundleError)
        values = {name: data[name] for name in _IN_DATABASE_FIELDS if name != "names"}
        arrays = {name: np.array(data[name], np.float64) for name in ("mean", "spread", "weights")}
        sizes = {len(array) for array in arrays.values()}
        if tuple(data["names"]) != NAMES or sizes != {len(NAMES)}:
            raise BundleError(f"{where}: has other features than this version of mzseek reads")
        if not (arrays["spread"] > 0).all():
            raise BundleError(f"{where}: has a spread of 0 or less")
        return cls(**values | arrays)


def check_share(share: float) -> None:
    """Refuse a share that is no probability between 0 and 1."""
    if not 0 < share < 1:
        raise BundleError(
            f"the share of molecules in the database is {share:g}, expected above 0 and below 1"
        )


MODES = {"positive": 1, "negative": -1}
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
OUT_OF_DOMAIN = 0.05  # "out of domain": below this quantile
_SLACK = 1e-9
_POLARITY_FIELDS = {
    "calibration": {"temperature": float, "power": float, "floor": float},
    "dependence": float,
    "thresholds": {...: float},
    "together": {...: float},
    "ions": {...: float},
    "floor": float,
    "nearest": {...: float},
    "in_database": dict | None,
    "match": dict | None,
    "molecules": int,
    "own": bool,
}


@dataclass(frozen=True, eq=False)
class PolarityCalibration:
    """What one ion mode goes by.

    Attributes
    ----------
    calibration : Calibration
        Of the scores of one spectrum's candidates.
    pooling : Pooling
        How scores of several spectra of a feature add up.
    thresholds : mapping of float to float
        For each coverage what `mzseek.decision.prediction_sets` takes, of features of one spectrum;
        fitted over molecules.
    together : mapping of float to float
        The same of features of several spectra.
    ions : mapping of str to float
        Share of each ion among the library's features.
    floor : float
        Share that is given to an ion that the library has never seen.
    nearest : mapping of float to float
        Quantiles of how similar the nearest reference spectrum is, to spectra of molecules that the
        library does not have.
    in_database : InDatabase or None
        Probability that the molecule is among the candidates at all.
    match : MatchOdds or None
        What a spectrum of the candidate itself in the library is worth.
    molecules : int
        That the numbers were fitted on.
    own : bool
        Whether they are of this ion mode; else it has too few molecules, and they are of both.
    """

    calibration: Calibration
    pooling: Pooling
    thresholds: Mapping[float, float]
    together: Mapping[float, float]
    ions: Mapping[str, float]
    floor: float
    nearest: Mapping[float, float]
    in_database: InDatabase | None
    match: MatchOdds | None
    molecules: int
    own: bool

    def threshold(self, coverage: float, spectra: int = 1) -> tuple[float, float]:
        """Return the coverage that a set is made for, and its threshold.

        Parameters
        ----------
        coverage : float
            Stated coverage; the next higher one is taken for one that was not fitted.
        spectra : int
            Spectra of the feature.

        Raises
        ------
        BundleError
            It is higher than any that was fitted, or no coverage.
        """
        if not 0 < coverage < 1:
            raise BundleError(f"coverage is {coverage:g}, expected above 0 and below 1")
        table = self.together if spectra > 1 and self.together else self.thresholds
        fitting = [fitted for fitted in sorted(table) if fitted >= coverage - _SLACK]
        if not fitting:
            highest = max(table, default=0.0)
            raise BundleError(
                f"coverage is {coverage:g}, and this model promises {highest:g} at most"
            )
        return fitting[0], table[fitting[0]]

    def ion_prior(self, adduct: str) -> float:
        """How common an ion is, before the spectrum is looked at; not below the floor."""
        return max(self.ions.get(adduct, 0.0), self.floor)

    def unlike(self, nearest: float) -> bool:
        """Whether the nearest reference spectrum is further off than of nearly all unknowns."""
        return nearest < self.nearest.get(OUT_OF_DOMAIN, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "calibration": dict(vars(self.calibration)),
            "dependence": self.pooling.dependence,
            "thresholds": _texts(self.thresholds),
            "together": _texts(self.together),
            "ions": dict(self.ions),
            "floor": self.floor,
            "nearest": _texts(self.nearest),
            "in_database": None if self.in_database is None else self.in_database.to_dict(),
            "match": None if self.match is None else self.match.to_dict(),
            "molecules": self.molecules,
            "own": self.own,
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], where: object = "confidence"
    ) -> "PolarityCalibration":
        """Read plain data.

        Raises
        ------
        BundleError
            A field is missing, of another type or out of range.
        """
        check_fields(data, _POLARITY_FIELDS, where, BundleError)
        values = {name: data[name] for name in _POLARITY_FIELDS if name != "dependence"}
        try:
            pooling = Pooling(data["dependence"])
            for name in ("thresholds", "together", "nearest"):
                values[name] = {float(key): float(value) for key, value in data[name].items()}
        except DecisionError as error:
            raise BundleError(f"{where}: {error}") from error
        except ValueError as error:
            raise BundleError(f"{where}: has a key that is no number ({error})") from error
        fitted = {
            name: float(data["calibration"][name]) for name in ("temperature", "power", "floor")
        }
        calibration = Calibration(**fitted)
        if not calibration.temperature > 0 or not 0 <= calibration.floor < 1:
            raise BundleError(f"{where}: calibration is {calibration}, which is none")
        if not 0 < data["floor"] <= 1:
            raise BundleError(f"{where}: floor is {data['floor']}, expected above 0, at most 1")
        for name, kind in (("in_database", InDatabase), ("match", MatchOdds)):
            if data[name] is not None:
                values[name] = kind.from_dict(data[name], f"{where}, {name}")
        return cls(**values | {"calibration": calibration, "pooling": pooling})


@dataclass(frozen=True, eq=False)
class Confidence:
    """The numbers of both ion modes.

    ``modes`` has a `PolarityCalibration` for ``positive`` and ``negative``.
    """

    modes: Mapping[str, PolarityCalibration]

    def of(self, mode: int) -> PolarityCalibration:
        """Return the calibration of an ion mode: −1 is negative, 1 and 0 (unknown) are positive."""
        return self.modes["negative" if mode < 0 else "positive"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {mode: calibration.to_dict() for mode, calibration in self.modes.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object = "confidence") -> "Confidence":
        """Read plain data.

        Raises
        ------
        BundleError
            An ion mode or one of its fields is missing, or of another type.
        """
        check_fields(data, dict.fromkeys(MODES, dict), where, BundleError)
        return cls(
            {
                mode: PolarityCalibration.from_dict(data[mode], f"{where}, {mode} mode")
                for mode in MODES
            }
        )


def _texts(table: Mapping[float, float]) -> dict[str, float]:
    return {f"{key:g}": value for key, value in table.items()}
