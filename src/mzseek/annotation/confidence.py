"""Calibration by polarity, odds of a match, probability of being in the database."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression, minimize

from mzseek.core.errors import BundleError, DecisionError
from mzseek.core.ragged import pointers
from mzseek.decision import Calibration, Pooling
from mzseek.fragments.matching import AT_PRECURSOR
from mzseek.io.manifest import check_fields
from mzseek.library import Library
from mzseek.library.library import Matches
from mzseek.library.similarity import PeakLists
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
BINS = 10
PPM = 20.0  # precursors of one m/z
_FIELDS = {"nats": [float], "same": int, "other": int}
_SAMPLE, _TOP, _MIN_PAIRS = 1_500, 100, 50
_MAX_LOG_ODDS = 5.0  # nats: a few hundred pairs say no more


@dataclass(frozen=True, eq=False)
class MatchOdds:
    """Log-odds of similarities, in bins of equal width from 0 to 1; rising.

    Attributes
    ----------
    log_odds : float64 array, shape (bins,)
    same, other : int
        Pairs that they were measured on: of one molecule by different contributors, and of
        different molecules.
    """

    log_odds: Floats
    same: int
    other: int

    def of(self, similarities: npt.ArrayLike) -> Floats:
        """Log-odds of candidates whose own reference spectra are so similar.

        Between the middles of bins they rise evenly.

        Examples
        --------
        >>> MatchOdds(np.array([-1.0, 2.0]), 100, 100).of([0.0, 0.25, 0.5, 1.0]).tolist()
        [-1.0, -1.0, 0.5, 2.0]
        """
        middles = (np.arange(len(self.log_odds)) + 0.5) / len(self.log_odds)
        return np.interp(np.asarray(similarities, np.float64), middles, self.log_odds)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"nats": self.log_odds.tolist(), "same": self.same, "other": self.other}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object = "match") -> "MatchOdds":
        """From plain data; raises `BundleError`."""
        check_fields(data, _FIELDS, where, BundleError)
        if not data["nats"]:
            raise BundleError(f"{where}: has no nats")
        return cls(np.array(data["nats"], np.float64), data["same"], data["other"])


def without_precursor(spectrum: Spectrum) -> Spectrum:
    """A spectrum less its precursor's peaks: every spectrum of that m/z has those in common.

    One that has no others stays as it is.
    """
    far = np.abs(spectrum.mz - spectrum.precursor_mz) > AT_PRECURSOR
    if far.all() or not far.any():
        return spectrum
    return replace(spectrum, mz=spectrum.mz[far], intensities=spectrum.intensities[far])


def library_without_precursors(library: Library) -> Library:
    """The same library, its spectra less the peaks of their precursors."""
    peaks = library.peaks
    list_index = peaks.list_index
    values, weights = np.asarray(peaks.values), np.asarray(peaks.weights)
    far = np.abs(values - np.asarray(library.ions.precursors)[list_index]) > AT_PRECURSOR
    counts = np.bincount(list_index[far], minlength=len(library))
    far |= counts[list_index] == 0
    remaining = PeakLists(
        pointers(np.bincount(list_index[far], minlength=len(library))), values[far], weights[far]
    )
    return Library.from_arrays(
        library.folder,
        remaining,
        library.ions,
        library.molecule_of,
        library.records,
        library.molecules,
    )


def fit_match_odds(library: Library, mode: int) -> MatchOdds | None:
    """Measure what similarities are worth in a library.

    Parameters
    ----------
    library : Library
        With contributors.
    mode : int
        1 for positive, −1 for negative.

    Returns
    -------
    MatchOdds or None
        None where too few molecules have spectra of two contributors.
    """
    chosen = _sample(np.flatnonzero(np.asarray(library.ions.modes) == mode))
    if not len(chosen):
        return None
    spectra = [without_precursor(_spectrum(library, int(record))) for record in chosen]
    matches = library_without_precursors(library).search(spectra, "cosine", _TOP, precursor_ppm=PPM)
    same, others = _best_of_pairs(library, chosen, matches)
    if len(same) < _MIN_PAIRS or len(others) < _MIN_PAIRS:
        return None
    return MatchOdds(_odds(same, others), len(same), len(others))


def _best_of_pairs(
    library: Library, chosen: npt.NDArray[np.int64], matches: Matches
) -> tuple[Floats, Floats]:
    """BestMatches similarities of each spectrum with its own molecule, and with others of its m/z.

    Pairs without a peak in common have 0. Of its own molecule only records of other contributors
    count: those of one laboratory are more alike, and the user's is another one.
    """
    whose = np.array(library.records["contributor"].to_pylist(), object)
    molecule, precursors = np.asarray(library.molecule_of), np.asarray(library.ions.precursors)
    modes = np.asarray(library.ions.modes)
    scores = {
        (query, record): score
        for query, record, score in zip(
            matches.queries.tolist(), matches.records.tolist(), matches.scores.tolist(), strict=True
        )
    }
    order = np.argsort(precursors, kind="stable")
    width = PPM * 1e-6 * precursors[chosen]
    low = np.searchsorted(precursors[order], precursors[chosen] - width)
    high = np.searchsorted(precursors[order], precursors[chosen] + width, side="right")
    best: tuple[dict[tuple[int, int], float], ...] = ({}, {})
    for query, record in enumerate(chosen.tolist()):
        for other in order[low[query] : high[query]].tolist():
            is_same = bool(molecule[other] == molecule[record])
            if modes[other] != modes[record] or (is_same and whose[other] == whose[record]):
                continue
            key = (query, int(molecule[other]))
            best_scores = best[0 if is_same else 1]
            best_scores[key] = max(best_scores.get(key, 0.0), scores.get((query, other), 0.0))
    same, others = (np.array(list(scores_of.values()), np.float64) for scores_of in best)
    return same, others


def _odds(same: Floats, others: Floats) -> Floats:
    """Log of the ratio of two histograms, one added to each bin, made to rise, and bounded."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = [
        np.histogram(np.minimum(similarities, 1.0), edges)[0] + 1.0
        for similarities in (same, others)
    ]
    log_odds = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    rising = isotonic_regression(log_odds, weights=counts[0] + counts[1]).x
    return np.asarray(np.clip(rising, -_MAX_LOG_ODDS, _MAX_LOG_ODDS))


def _sample(records: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """At most so many, evenly spaced."""
    step = max(len(records) // _SAMPLE, 1)
    return np.asarray(records[::step][:_SAMPLE], np.int64)


def _spectrum(library: Library, record: int) -> Spectrum:
    rows = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    return Spectrum(
        np.array(library.peaks.values[rows]), np.array(library.peaks.weights[rows]),
        float(library.ions.precursors[record]), None, int(library.ions.modes[record]) or None,
        str(record),
    )  # fmt: skip


Ints = npt.NDArray[np.int64]
CHANNELS = ("fragments", "analogs")  # whose absolute scores are read; 0 where there is none
_PLAIN = ("log candidates", "log-odds", "margin", *CHANNELS, "explained", "explained ahead",
          "entropy", "log peaks", "log same mass", "nearest")  # fmt: skip
_BY_LENGTH = _PLAIN[1:10]  # features whose weight depends on the length of the list
NAMES = (*_PLAIN, *(f"{name} × log candidates" for name in _BY_LENGTH))
# Expected share of features whose molecule the database holds, by its number of molecules.
LISTED = 0.15  # candidates that the user lists
SHARES = ((150_000, 0.07), (1_000_000, 0.13), (np.inf, 0.17))
LONGEST = 256  # candidates: the longest lists that it was fitted on
_BOUND = 8.0  # log-odds beyond this are not told from certainty
_FIELDS_in_database = {
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
    at most 3 % of the annotations about missing molecules get a confidence above one half.

    Parameters
    ----------
    molecules : int
        In the database.
    listed : bool
        Whether the candidates are the user's own list.

    Examples
    --------
    >>> expected_share(46_000), expected_share(2_000_000)
    (0.07, 0.17)
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
        check_fields(data, _FIELDS_in_database, where, BundleError)
        arrays = [np.array(data[name], np.float64) for name in ("mean", "spread", "weights")]
        if tuple(data["names"]) != NAMES or {len(array) for array in arrays} != {len(NAMES)}:
            raise BundleError(f"{where}: has other features than this version of mzseek reads")
        if not (arrays[1] > 0).all():
            raise BundleError(f"{where}: has a spread of 0 or less")
        values: dict[str, Any] = {
            name: data[name] for name in _FIELDS_in_database if name != "names"
        }
        return cls(**values | dict(zip(("mean", "spread", "weights"), arrays, strict=True)))


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

    solution = minimize(loss, np.zeros(values.shape[1] + 1), jac=True, method="L-BFGS-B")
    return np.asarray(solution.x[:-1]), float(solution.x[-1])


MODES = {"positive": 1, "negative": -1}
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
OUT_OF_DOMAIN = 0.05  # "unlike anything known": below this quantile
_SLACK = 1e-9
_FIELDS_confidence = {
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
        """The coverage that a set is made for, and its threshold.

        Parameters
        ----------
        coverage : float
            Wanted. One that was not fitted is taken from the next higher one.
        spectra : int
            Of the feature.

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
        """As plain data."""
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
        """From plain data.

        Raises
        ------
        BundleError
            A field is missing, of another type or out of range.
        """
        check_fields(data, _FIELDS_confidence, where, BundleError)
        try:
            pooling = Pooling(data["dependence"])
        except DecisionError as error:
            raise BundleError(f"{where}: {error}") from error
        calibration = Calibration(
            **{name: float(data["calibration"][name]) for name in _CALIBRATION_FIELDS}
        )
        if not calibration.temperature > 0 or not 0 <= calibration.floor < 1:
            raise BundleError(f"{where}: calibration is {calibration}, which is none")
        if not 0 < data["floor"] <= 1:
            raise BundleError(f"{where}: floor is {data['floor']}, expected above 0, at most 1")
        in_database, match = data["in_database"], data["match"]
        return cls(
            calibration,
            pooling,
            _numbers(data["thresholds"], where),
            _numbers(data["together"], where),
            dict(data["ions"]),
            float(data["floor"]),
            _numbers(data["nearest"], where),
            None
            if in_database is None
            else InDatabase.from_dict(in_database, f"{where}, in_database"),
            None if match is None else MatchOdds.from_dict(match, f"{where}, match"),
            data["molecules"],
            data["own"],
        )


_CALIBRATION_FIELDS = ("temperature", "power", "floor")


@dataclass(frozen=True, eq=False)
class Confidence:
    """The numbers of both ion modes.

    ``modes`` has a `PolarityCalibration` for ``positive`` and ``negative``.
    """

    modes: Mapping[str, PolarityCalibration]

    def of(self, mode: int) -> PolarityCalibration:
        """Of an ion mode: −1 for negative, 1 for positive; what is not known (0) is positive."""
        return self.modes["negative" if mode < 0 else "positive"]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {mode: calibration.to_dict() for mode, calibration in self.modes.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: object = "confidence") -> "Confidence":
        """From plain data.

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


def _numbers(table: Mapping[str, float], where: object) -> dict[float, float]:
    try:
        return {float(key): float(value) for key, value in table.items()}
    except ValueError as error:
        raise BundleError(f"{where}: has a key that is no number ({error})") from error
