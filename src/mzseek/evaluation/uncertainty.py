"""How far a run's probabilities can be trusted: calibration, prediction sets, abstention."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision import (
    abstention_threshold,
    calibration_error,
    coverage_range,
    first_places,
    fit_set_threshold,
    molecules_needed,
    prediction_sets,
    risk_coverage,
)
from mzseek.evaluation.posteriors import Calibrated
from mzseek.metrics import Interval, bootstrap
from mzseek.ragged import Ragged

COVERAGES = (0.8, 0.9, 0.95)
ERROR_RATES = (0.5, 0.3, 0.1)


@dataclass(frozen=True)
class SetResult:
    """Prediction sets that were to contain the truth with a stated probability.

    Attributes
    ----------
    stated : float
    covered : Interval
        Share of the sets that do, averaged within molecules; the interval is over molecules.
    threshold : float
    mean_size, median_size : float
        Distinct answers in a set.
    mean_list : float
        Distinct answers in a list.
    fitted_on : int
        Molecules of the validation fold that the threshold was fitted on.
    """

    stated: float
    covered: Interval
    threshold: float
    mean_size: float
    median_size: float
    mean_list: float
    fitted_on: int

    @property
    def falls_short(self) -> bool:
        """Whether the promise is broken: all of the interval lies below it."""
        return self.covered.high < self.stated

    @property
    def everything(self) -> bool:
        """Whether every candidate is in, for want of molecules to fit on."""
        return self.fitted_on < molecules_needed(self.stated)

    @property
    def by_chance(self) -> tuple[float, float]:
        """What a fit on so many molecules may cover where the promise holds, in 19 of 20 fits."""
        return coverage_range(self.fitted_on, self.stated)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "stated": self.stated,
            "covered": self.covered.mean,
            "interval": [self.covered.low, self.covered.high],
            "falls_short": self.falls_short,
            "fitted_on_molecules": self.fitted_on,
            "range_by_chance": list(self.by_chance),
            "everything_in": self.everything,
            "threshold": self.threshold,
            "mean_size": self.mean_size,
            "median_size": self.median_size,
            "mean_list": self.mean_list,
        }


@dataclass(frozen=True)
class Abstention:
    """Answering only above a confidence that was chosen on validation for a wanted error rate.

    Attributes
    ----------
    wanted : float
        Share of wrong answers that was to be accepted.
    threshold : float
        Infinite where no confidence promises it.
    answered, wrong : float
        Share of the spectra answered, and of the answers that are wrong (NaN if there are none).
    low, high : float
        95 % interval of ``wrong`` over molecules (NaN if there are none).
    """

    wanted: float
    threshold: float
    answered: float
    wrong: float
    low: float = float("nan")
    high: float = float("nan")

    @property
    def falls_short(self) -> bool:
        """Whether more answers are wrong than was wanted: all of the interval lies above it."""
        return self.low > self.wanted

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where there is no number, since JSON knows neither NaN nor infinity."""
        found = {name: value if np.isfinite(value) else None for name, value in vars(self).items()}
        low, high = found.pop("low"), found.pop("high")
        interval = None if low is None else [low, high]
        return {**found, "interval": interval, "falls_short": self.falls_short}


def set_results(found: Calibrated, coverages: Sequence[float] = COVERAGES) -> list[SetResult]:
    """Prediction sets fitted on validation, measured on the other fold."""
    val, test = found.val.answers(), found.asked.answers()
    p, counts, labels = test
    lists = Ragged(counts)
    fitted_on = len(np.unique(found.val.molecule))
    results = []
    for stated in coverages:
        threshold = fit_set_threshold(*val, stated, groups=found.val.molecule)
        inside = prediction_sets(p, counts, threshold)
        hit = lists.any(inside & labels)
        sizes = lists.sum(inside.astype(np.int64))
        results.append(
            SetResult(
                stated,
                bootstrap(by_molecule(hit, found.asked.molecule)),
                threshold,
                float(sizes.mean()),
                float(np.median(sizes)),
                float(counts.mean()),
                fitted_on,
            )
        )
    return results


def calibration_errors(found: Calibrated) -> dict[str, float]:
    """Expected calibration error of the first answer, before and after calibration."""
    return {
        "before": calibration_error(*found.uncalibrated.answers()),
        "after": calibration_error(*found.asked.answers()),
    }


def abstentions(found: Calibrated, wanted: Sequence[float] = ERROR_RATES) -> list[Abstention]:
    """Thresholds of confidence chosen on validation, measured on the other fold."""
    sure, right = first_places(*found.val.answers())
    test_sure, test_right = first_places(*found.asked.answers())
    results = []
    for rate in wanted:
        threshold = abstention_threshold(sure, right, rate, found.val.molecule)
        answered = test_sure >= threshold
        if not answered.any():
            results.append(Abstention(rate, threshold, 0.0, float("nan")))
            continue
        wrong = bootstrap(1 - test_right[answered], found.asked.molecule[answered])
        share = float(answered.mean())
        results.append(Abstention(rate, threshold, share, wrong.mean, wrong.low, wrong.high))
    return results


def risk_area(found: Calibrated) -> float:
    """Area under risk over coverage on the fold: the mean error over all shares answered."""
    return risk_coverage(*first_places(*found.asked.answers())).area


def by_molecule(
    values: npt.NDArray[np.generic], molecule: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """Means within molecules, one value for each molecule."""
    _, place = np.unique(molecule, return_inverse=True)
    sums = np.bincount(place, weights=values.astype(np.float64))
    return np.asarray(sums / np.bincount(place), np.float64)
