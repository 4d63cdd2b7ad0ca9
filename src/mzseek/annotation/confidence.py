"""Numbers by which scores become probabilities, sets and doubts: pure data, one set an ion mode."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mzseek.annotation.in_database import InDatabase
from mzseek.annotation.matching import MatchOdds
from mzseek.decision import Calibration, Pooling
from mzseek.errors import BundleError, DecisionError
from mzseek.files.json_file import check_fields

MODES = {"positive": 1, "negative": -1}
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
UNLIKE = 0.05  # "unlike anything known": below this quantile
_SLACK = 1e-9
_FIELDS = {
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
class OfMode:
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
        fitting = [each for each in sorted(table) if each >= coverage - _SLACK]
        if not fitting:
            most = max(table, default=0.0)
            raise BundleError(f"coverage is {coverage:g}, and this model promises {most:g} at most")
        return fitting[0], table[fitting[0]]

    def ion_prior(self, adduct: str) -> float:
        """How common an ion is, before the spectrum is looked at; not below the floor."""
        return max(self.ions.get(adduct, 0.0), self.floor)

    def unlike(self, nearest: float) -> bool:
        """Whether the nearest reference spectrum is further off than of nearly all unknowns."""
        return nearest < self.nearest.get(UNLIKE, 0.0)

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
    def from_dict(cls, facts: Mapping[str, Any], where: object = "confidence") -> "OfMode":
        """From plain data.

        Raises
        ------
        BundleError
            A field is missing, of another type or out of range.
        """
        check_fields(facts, _FIELDS, where, BundleError)
        try:
            pooling = Pooling(facts["dependence"])
        except DecisionError as error:
            raise BundleError(f"{where}: {error}") from error
        calibration = Calibration(**{name: float(facts["calibration"][name]) for name in _KEPT})
        if not calibration.temperature > 0 or not 0 <= calibration.floor < 1:
            raise BundleError(f"{where}: calibration is {calibration}, which is none")
        if not 0 < facts["floor"] <= 1:
            raise BundleError(f"{where}: floor is {facts['floor']}, expected above 0, at most 1")
        in_database, match = facts["in_database"], facts["match"]
        return cls(
            calibration,
            pooling,
            _numbers(facts["thresholds"], where),
            _numbers(facts["together"], where),
            dict(facts["ions"]),
            float(facts["floor"]),
            _numbers(facts["nearest"], where),
            None
            if in_database is None
            else InDatabase.from_dict(in_database, f"{where}, in_database"),
            None if match is None else MatchOdds.from_dict(match, f"{where}, match"),
            facts["molecules"],
            facts["own"],
        )


_KEPT = ("temperature", "power", "floor")


@dataclass(frozen=True, eq=False)
class Confidence:
    """The numbers of both ion modes.

    Attributes
    ----------
    modes : mapping of str to OfMode
        ``positive`` and ``negative``.
    """

    modes: Mapping[str, OfMode]

    def of(self, mode: int) -> OfMode:
        """Of an ion mode: −1 for negative, 1 for positive; what is not known (0) is positive."""
        return self.modes["negative" if mode < 0 else "positive"]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {mode: own.to_dict() for mode, own in self.modes.items()}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], where: object = "confidence") -> "Confidence":
        """From plain data.

        Raises
        ------
        BundleError
            An ion mode or one of its fields is missing, or of another type.
        """
        check_fields(facts, dict.fromkeys(MODES, dict), where, BundleError)
        return cls({mode: OfMode.from_dict(facts[mode], f"{where}, {mode} mode") for mode in MODES})


def _texts(table: Mapping[float, float]) -> dict[str, float]:
    return {f"{key:g}": value for key, value in table.items()}


def _numbers(table: Mapping[str, float], where: object) -> dict[float, float]:
    try:
        return {float(key): float(value) for key, value in table.items()}
    except ValueError as error:
        raise BundleError(f"{where}: has a key that is no number ({error})") from error
