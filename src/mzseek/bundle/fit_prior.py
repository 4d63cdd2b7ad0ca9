"""Fit the prior of a bundle, beside the ranker and confidence, which do not use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.annotation.confidence import MODES, Confidence, PolarityCalibration
from mzseek.bundle.bundle import BundledPrior
from mzseek.bundle.fit_confidence import CALIBRATED_ON, modes_of, usable_lists
from mzseek.bundle.refit import MEASURED_ON, calibration_of, hit_rates, training_set_of
from mzseek.core.ragged import Ragged
from mzseek.datasets.prepared import Prepared
from mzseek.decision import posterior
from mzseek.evidence.fitting import FITTED_ON, CrossFittedChannel, FitOptions, structure_groups_from
from mzseek.evidence.prepared_queries import queries_from
from mzseek.evidence.prior import Prior
from mzseek.evidence.queries import Queries
from mzseek.evidence.ranker import truth_slope
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

Floats = npt.NDArray[np.float64]
_MAX_WEIGHT = 10.0  # where few and clear lists set no bound
_MIN_PROBABILITY = 1e-300


@dataclass(frozen=True, eq=False)
class FittedPrior:
    """A prior, and its performance for the card.

    Attributes
    ----------
    prior : BundledPrior
    measured : mapping of str to mapping
        For each ion mode of the test fold: hit rates, calibration error and sets with the prior.
    """

    prior: BundledPrior
    measured: Mapping[str, Any]


def fit_prior(
    run: Run,
    prepared: Prepared,
    confidence: Confidence,
    options: FitOptions,
    folds: Sequence[str],
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> FittedPrior | None:
    """Fit a prior on the train fold, and its weights on predictions of validation, cross-fitted.

    Parameters
    ----------
    run : Run
    prepared : Prepared
    confidence : Confidence
        With the calibration of scores.
    options : FitOptions
        That the ranker was fitted with.
    folds : sequence of str
        That the prior in the bundle is fitted on, once its weights are fitted.

    Returns
    -------
    FittedPrior or None
        None where the ranker has the prior among its channels: it must not count twice.
    """
    description = run.description.fitted
    if description is not None and any(part["name"] == Prior.name for part in description.channels):
        return None
    channel = Prior()
    known = np.concatenate([prepared.in_fold(part) for part in (FITTED_ON, CALIBRATED_ON)])
    groups = structure_groups_from(prepared, np.unique(prepared.molecule[known]), options.groups)
    crossfitted = CrossFittedChannel(
        channel, training_set_of(prepared, options, [FITTED_ON], jobs=jobs), groups
    )
    progress("prior", 1, 3)
    lists = usable_lists(run, prepared, CALIBRATED_ON, options.candidates)
    odds = crossfitted.features(_queries(prepared, lists, options))[:, 0]
    weights = _weights(lists, odds, modes_of(prepared, lists.queries), confidence)
    progress("prior", 2, 3)
    fitted = BundledPrior(channel, crossfitted.state, weights)
    performance = _measured(run, prepared, confidence, fitted, options)
    if tuple(folds) != (FITTED_ON,):
        training_set = training_set_of(prepared, options, folds, jobs=jobs)
        fitted = replace(fitted, state=channel.fit(training_set))
    progress("prior", 3, 3)
    return FittedPrior(fitted, performance)


def fit_weight(
    log_p: npt.ArrayLike,
    odds: npt.ArrayLike,
    counts: npt.ArrayLike,
    truth: npt.NDArray[np.bool_],
    molecule: npt.NDArray[np.integer],
) -> float:
    """Fit the weight of a prior's log-odds: truths most probable, every molecule counting once.

    Parameters
    ----------
    log_p : array, shape (candidates of all lists,)
        Calibrated log-probabilities without the prior.
    odds : array, shape (candidates of all lists,)
        Of lists that the prior was not fitted on.
    counts : int array, shape (lists,)
    truth : bool array, shape (candidates of all lists,)
    molecule : int array, shape (lists,)

    Returns
    -------
    float
        0 or more.

    Examples
    --------
    >>> truth = np.array([1, 0] * 3 + [0, 1], bool)  # the first of two in 3 of 4 lists
    >>> round(fit_weight(np.zeros(8), [1.0, 0.0] * 4, [2] * 4, truth, np.arange(4)), 3)  # log 3
    1.099
    """
    start, values = np.asarray(log_p, np.float64), np.asarray(odds, np.float64)
    lists = Ragged(np.asarray(counts, np.int64))
    _, index, number = np.unique(molecule, return_inverse=True, return_counts=True)
    share = 1.0 / number[index]
    share /= share.sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        slope, log_truth = truth_slope(start + at[0] * values, lists, truth)
        return float(-share @ log_truth), np.array(
            [(lists.repeat_per_list(share) * slope) @ values]
        )

    options = {"ftol": 1e-12, "gtol": 1e-8}
    solution = minimize(
        loss, np.zeros(1), jac=True, method="L-BFGS-B", bounds=[(0, _MAX_WEIGHT)], options=options
    )
    return float(solution.x[0])


def _weights(
    lists: ListScores,
    odds: npt.NDArray[np.floating],
    modes: npt.NDArray[np.int8],
    confidence: Confidence,
) -> dict[str, float]:
    """A weight for each ion mode; one that has too few molecules of its own has that of both."""
    weights = {}
    for mode, sign in MODES.items():
        numbers = confidence.of(sign)
        inside = modes == sign if numbers.own else np.ones(len(modes), np.bool_)
        inside_lists = lists.select(inside)
        log_odds = _centred(odds[np.repeat(inside, lists.counts)], inside_lists.counts)
        truth = np.asarray(inside_lists.identity) > 0
        weights[mode] = fit_weight(
            _log_p(inside_lists, numbers),
            log_odds,
            inside_lists.counts,
            truth,
            inside_lists.molecule,
        )
    return weights


def _measured(
    run: Run, prepared: Prepared, confidence: Confidence, prior: BundledPrior, options: FitOptions
) -> dict[str, Any]:
    """Performance on the test fold with the prior applied, for each ion mode."""
    if not len(prepared.in_fold(MEASURED_ON)):
        return {}
    lists = usable_lists(run, prepared, MEASURED_ON, options.candidates)
    odds = prior.channel.features(prior.state, _queries(prepared, lists, options))[:, 0]
    modes = modes_of(prepared, lists.queries)
    by_mode = {}
    for mode, sign in MODES.items():
        inside = modes == sign
        if inside.any():
            inside_lists = lists.select(inside)
            log_odds = _centred(odds[np.repeat(inside, lists.counts)], inside_lists.counts)
            numbers = confidence.of(sign)
            values = _log_p(inside_lists, numbers) + prior.weights[mode] * log_odds
            by_mode[mode] = {
                "hit_rates": hit_rates(inside_lists, values),
                **calibration_of(
                    inside_lists, posterior(values, inside_lists.counts), prepared, numbers
                ),
            }
    return by_mode


def _queries(prepared: Prepared, lists: ListScores, options: FitOptions) -> Queries:
    """The same spectra and candidates, in the same order, as queries."""
    queries = queries_from(prepared, lists.queries, options.candidates)[0]
    return replace(queries, inchikey14=prepared.inchikey14[lists.molecule])


def _log_p(lists: ListScores, numbers: PolarityCalibration) -> Floats:
    p = numbers.calibration.posterior(lists.scores, lists.counts)
    return np.log(np.maximum(p, _MIN_PROBABILITY))


def _centred(values: npt.NDArray[np.floating], counts: npt.NDArray[np.integer]) -> Floats:
    """Values less the mean of their list."""
    lists, double = Ragged(np.asarray(counts, np.int64)), np.asarray(values, np.float64)
    return np.asarray(double - lists.repeat_per_list(lists.sum(double) / lists.counts))
