"""Calibrated posteriors of a run, prediction sets and abstention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import (
    Calibration,
    Pooling,
    abstention_threshold,
    calibration_error,
    coverage_range,
    first_places,
    fit_calibration,
    fit_set_threshold,
    fit_temperature,
    molecules_needed,
    posterior,
    prediction_sets,
    risk_coverage,
)
from mzseek.decision.calibration import merge_answers
from mzseek.decision.distributions import row_keys
from mzseek.evaluation.scored import Scoring, kept_steps, measurable, scored_lists
from mzseek.io import StrPath
from mzseek.metrics import Interval, bootstrap
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import CROSSFITTED_TRAIN, ListScores, Predictions, label_of
from mzseek.runs.run import Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """Probabilities of the candidates of every spectrum of a fold that has the truth in its list.

    Attributes
    ----------
    queries, molecule : int arrays, shape (n,)
        Spectra, and their true molecules.
    counts : int64 array, shape (n,)
        Candidates of each.
    candidates : int32 array
        Molecules, all lists concatenated, in an order that knows nothing of the truth.
    labels : bool array
        Candidates that are the truth, in the sense of ``how.identity``.
    probabilities : float64 array
    answer : array
        Equal for candidates that are the same answer in that sense.
    calibration : Calibration or None
        How the scores became probabilities; None for a uniform posterior.
    step : int
        The checkpoint that it comes from.
    how : Scoring
    """

    queries: npt.NDArray[np.int64]
    molecule: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int32]
    labels: npt.NDArray[np.bool_]
    probabilities: Floats
    answer: npt.NDArray[np.generic]
    calibration: Calibration | None
    step: int
    how: Scoring

    def uniform(self) -> "Posterior":
        """The posterior of one who has not seen the spectrum: all candidates alike."""
        even = 1 / Ragged(self.counts).repeat_per_list(self.counts).astype(np.float64)
        return replace(self, probabilities=even, calibration=None)

    def answers(self) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Probabilities, counts and labels of distinct answers: twins are one."""
        return merge_answers(self.probabilities, self.counts, self.answer, self.labels)


@dataclass(frozen=True)
class Calibrated:
    """A run's posteriors on validation and on another fold, by one calibration.

    Attributes
    ----------
    val, asked : Posterior
        Of validation, and of the fold asked for.
    uncalibrated : Posterior
        The same fold with the scores as they were trained: divided by the loss's own temperature.
    pooling : Pooling or None
        How spectra of a molecule were added up; None where each spectrum is judged alone.
    spectra : int64 array or None
        Spectra behind each list of ``asked``, where they were added up.
    """

    val: Posterior
    asked: Posterior
    uncalibrated: Posterior
    pooling: Pooling | None = None
    spectra: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class ChosenLists:
    """Scores of validation and of another fold, at the checkpoint that is best for probabilities.

    Attributes
    ----------
    val, asked : ListScores
        Lists that have the truth in them, in an order that knows nothing of it.
    fit : ListScores
        What a calibration is fitted on: validation, and in a fitted run molecules of train, too.
    step : int
        The checkpoint.
    how : Scoring
        Of ``asked``.
    plain : Calibration
        The loss's own temperature.
    """

    val: ListScores
    asked: ListScores
    fit: ListScores
    step: int
    how: Scoring
    plain: Calibration


def calibrate(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Calibrated:
    """Turn a run's scores into probabilities, with a calibration fitted on validation.

    That of a fitted run is fitted on molecules of train, too, if it has kept what channels and
    rankers say of them that learned without them. In the fit each molecule counts once. The
    checkpoint is that of `chosen_lists`.

    Parameters
    ----------
    run : Run
    how : Scoring
        Fold, candidates, similarity and identity; ties do not matter here.
    data : Path, optional
        The prepared folder, if it is no longer where it was.
    progress : callable of (stage, done, total)

    Returns
    -------
    Calibrated

    Raises
    ------
    RunError
        There are no validation spectra to calibrate on.
    """
    lists = chosen_lists(run, how, data=data, progress=progress)
    prepared = run.open_data(data)
    fitted = fitted_on(lists.fit, lists.how)
    return Calibrated(
        val=posterior_of(lists.val, prepared, replace(lists.how, fold="val"), fitted, lists.step),
        asked=posterior_of(lists.asked, prepared, lists.how, fitted, lists.step),
        uncalibrated=posterior_of(lists.asked, prepared, lists.how, lists.plain, lists.step),
    )


def fitted_on(lists: ListScores, how: Scoring) -> Calibration:
    """The calibration of these lists, each molecule counting once."""
    return fit_calibration(lists.scores, lists.counts, labels_of(lists, how), lists.molecule)


def chosen_lists(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> ChosenLists:
    """Scores to make probabilities of.

    Of the checkpoints that the run has kept, the one under which the truth is most probable on
    validation (at its best temperature, on average over spectra) is taken. Parameters and errors
    are those of `calibrate`.
    """
    how = how or Scoring(candidates=run.measured_on)
    prepared = measurable(run, how, data)
    if not len(prepared.in_fold("val")):
        raise RunError(f"{prepared.folder}: has no val spectra to calibrate on")
    steps = kept_steps(run, how)
    found = [_on_validation(run, prepared, how, step, progress) for step in steps]
    _, step, val = min(found, key=lambda each: each[0])
    return ChosenLists(
        val=val,
        asked=scores_at(run, prepared, how, step, progress),
        fit=_to_fit_on(run, prepared, how, step, val),
        step=step,
        how=how,
        plain=Calibration(run.made.temperature),
    )


def _on_validation(
    run: Run, prepared: Prepared, how: Scoring, step: int, progress: Progress
) -> tuple[float, int, ListScores]:
    """Log-loss on validation at the best temperature, the step, and the scores."""
    lists = scores_at(run, prepared, replace(how, fold="val"), step, progress)
    labels = labels_of(lists, how)
    temperature = fit_temperature(lists.scores, lists.counts, labels, lists.molecule)
    p = posterior(lists.scores, lists.counts, temperature)
    of_truth = Ragged(lists.counts).sum(np.where(labels, p, 0))
    return float(-np.log(np.maximum(of_truth, 1e-300)).mean()), step, lists


def scores_at(
    run: Run, prepared: Prepared, how: Scoring, step: int, progress: Progress = silent
) -> ListScores:
    """Lists that have the truth in them, in an order that knows nothing of it."""
    lists = scored_lists(run, prepared, how, step, progress)
    return _usable(lists, prepared, how)


def _to_fit_on(
    run: Run, prepared: Prepared, how: Scoring, step: int, val: ListScores
) -> ListScores:
    """Validation, and what a fitted run has kept of train by what learned without it."""
    folder = run.predictions(step, CROSSFITTED_TRAIN)
    if run.made.fitted is None or how.similarity or not folder.is_dir():
        return val
    saved = Predictions.open(folder, label_of(run, step, CROSSFITTED_TRAIN))
    saved.check_against(prepared, CROSSFITTED_TRAIN, folder)
    if not saved.has_lists(prepared, how.candidates):
        return val
    own = saved.lists[how.candidates]
    if not labels_of(own, how).any():
        return val
    train = _usable(own, prepared, how)
    return ListScores(
        *(
            np.concatenate([getattr(each, name) for each in (val, train)])
            for name in ("queries", "molecule", "counts", "candidates", "identity", "scores")
        )
    )


def _usable(lists: ListScores, prepared: Prepared, how: Scoring) -> ListScores:
    ragged = Ragged(lists.counts)
    usable = ragged.any(labels_of(lists, how))
    if not usable.any():
        raise RunError(
            f"{prepared.folder}: no {how.fold} spectrum has its molecule among its "
            f"{how.candidates} candidates in the sense of {how.identity}"
        )
    # A list may have the truth first, and equal probabilities would then be decided for it.
    # What was added later stands anywhere among the others, and changes nothing in their order.
    own, added = prepared.base_molecules, len(prepared.masses) - prepared.base_molecules
    shuffled = np.random.default_rng(0).permutation(own) / own
    shuffled = np.append(shuffled, np.random.default_rng(1).random(added))
    order = np.lexsort((shuffled[lists.candidates], ragged.list_index))
    order = order[usable[ragged.list_index]]
    return ListScores(
        queries=lists.queries[usable],
        molecule=lists.molecule[usable],
        counts=lists.counts[usable],
        candidates=lists.candidates[order],
        identity=lists.identity[order],
        scores=np.asarray(lists.scores)[order],
    )


def labels_of(lists: ListScores, how: Scoring) -> npt.NDArray[np.bool_]:
    """Candidates that are the truth, in the sense of ``how.identity``."""
    found: npt.NDArray[np.bool_] = (np.asarray(lists.identity) & IDENTITY_BITS[how.identity]) > 0
    return found


def posterior_of(
    lists: ListScores, prepared: Prepared, how: Scoring, calibration: Calibration, step: int
) -> Posterior:
    """Probabilities that a calibration makes of scores."""
    return Posterior(
        queries=lists.queries,
        molecule=np.asarray(lists.molecule),
        counts=lists.counts,
        candidates=lists.candidates,
        labels=labels_of(lists, how),
        probabilities=calibration.posterior(lists.scores, lists.counts),
        answer=_answers(lists, prepared, how),
        calibration=calibration,
        step=step,
        how=how,
    )


def _answers(lists: ListScores, prepared: Prepared, how: Scoring) -> npt.NDArray[np.generic]:
    if how.identity == "inchikey":
        return np.asarray(prepared.inchikey14[lists.candidates])
    molecules, place = np.unique(lists.candidates, return_inverse=True)
    rows = prepared.fingerprint_rows(molecules)
    keys = row_keys(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.shape[1])
    return keys[place]


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
