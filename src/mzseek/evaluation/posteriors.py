"""Calibrated posteriors of a run, prediction sets and abstention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.datasets.prepared import Prepared
from mzseek.decision import (
    Calibration,
    Pooling,
    abstention_threshold,
    coverage_range,
    first_places,
    fit_calibration,
    fit_pooling,
    fit_set_threshold,
    fit_temperature,
    molecules_needed,
    posterior,
    prediction_sets,
)
from mzseek.decision.calibration import merge_equal
from mzseek.decision.distributions import row_keys
from mzseek.evaluation.scored import (
    Floats,
    Ints,
    Scoring,
    checkpoint_steps,
    labels_of,
    measurable,
    molecule_groups,
    pool_lists,
    scored_lists,
    usable_lists,
)
from mzseek.io import StrPath
from mzseek.metrics import Interval, bootstrap
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import CROSSFITTED_TRAIN, ListScores, Predictions, label_of
from mzseek.runs.run import Run

COVERAGES = (0.8, 0.9, 0.95)
ERROR_RATES = (0.5, 0.3, 0.1)
# Numbers of spectra that are shown separately: from each of these to the next.
_NUMBERS = (1, 2, 5, 10, 20)


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
    identity : array
        Equal for candidates that are the same molecule in that sense.
    calibration : Calibration or None
        How the scores became probabilities; None for a uniform posterior.
    step : int
        The checkpoint that it comes from.
    how : Scoring
    """

    queries: Ints
    molecule: npt.NDArray[np.int32]
    counts: Ints
    candidates: npt.NDArray[np.int32]
    labels: npt.NDArray[np.bool_]
    probabilities: Floats
    identity: npt.NDArray[np.generic]
    calibration: Calibration | None
    step: int
    how: Scoring

    def uniform(self) -> "Posterior":
        """Return the posterior without the spectrum: all candidates are equally probable."""
        even = 1 / Ragged(self.counts).repeat_per_list(self.counts).astype(np.float64)
        return replace(self, probabilities=even, calibration=None)

    def merged(self) -> tuple[Floats, Ints, npt.NDArray[np.bool_]]:
        """Probabilities, counts and labels of distinct molecules: twins are one."""
        return merge_equal(self.probabilities, self.counts, self.identity, self.labels)


@dataclass(frozen=True)
class Calibrated:
    """A run's posteriors on validation and on another fold, by one calibration.

    Attributes
    ----------
    val, evaluated : Posterior
        Of validation, and of the fold that is evaluated.
    uncalibrated : Posterior
        Of that fold, with the scores as they were trained: divided by the loss's own temperature.
    pooling : Pooling or None
        How spectra of a molecule were pooled; None where each is judged alone.
    spectra : int64 array or None
        Spectra behind each list of ``evaluated``, where they were pooled.
    """

    val: Posterior
    evaluated: Posterior
    uncalibrated: Posterior
    pooling: Pooling | None = None
    spectra: Ints | None = None


@dataclass(frozen=True)
class CalibrationLists:
    """Scores of validation and of another fold, at the checkpoint that is best for probabilities.

    Attributes
    ----------
    val, evaluated : ListScores
        Lists that have the truth in them, in an order that is independent of it.
    fit : ListScores
        What a calibration is fitted on: validation, and in a fitted run molecules of train, too.
    step : int
        The checkpoint.
    how : Scoring
        Of ``evaluated``.
    """

    val: ListScores
    evaluated: ListScores
    fit: ListScores
    step: int
    how: Scoring


@dataclass(frozen=True)
class PooledCalibration:
    """The calibration of single spectra, and how spectra of a molecule are pooled (None: not)."""

    calibration: Calibration
    pooling: Pooling | None = None

    @classmethod
    def fit(cls, lists: ListScores, how: Scoring, *, pooled: bool) -> "PooledCalibration":
        """Fit on lists, each molecule counting once."""
        scored = lists.scores, lists.counts, labels_of(lists, how.identity)
        calibration = fit_calibration(*scored, lists.molecule)
        if not pooled:
            return cls(calibration)
        return cls(calibration, fit_pooling(*scored, molecule_groups(lists), calibration))

    def pool(self, lists: ListScores) -> tuple[ListScores, Ints]:
        """Pool lists, and count the spectra of each."""
        if self.pooling is None:
            return lists, np.ones(len(lists.counts), np.int64)
        return pool_lists(lists, self.pooling)


def calibrate(
    run: Run,
    how: Scoring | None = None,
    *,
    pooled: bool = False,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Calibrated:
    """Turn a run's scores into probabilities, with a calibration fitted on validation.

    That of a fitted run is fitted on molecules of train, too, if it has saved their cross-fitted
    scores. In the fit each molecule counts once. The checkpoint is that of `calibration_lists`.
    Ties do not matter here; parameters are those of `mzseek.evaluation.evaluate.evaluate`.

    With ``pooled``, probabilities are given all spectra of a molecule: the calibration is that of
    single spectra, and how far several are dependent is fitted on validation, over molecules. The
    result has ``pooling`` and ``spectra``; its ``uncalibrated`` counts every spectrum in full.

    Raises
    ------
    RunError
        There are no validation spectra to calibrate on.
    """
    lists = calibration_lists(run, how, data=data, progress=progress)
    prepared, how = run.open_data(data), lists.how
    fitted = PooledCalibration.fit(lists.fit, how, pooled=pooled)
    val, _ = fitted.pool(lists.val)
    evaluated, spectra = fitted.pool(lists.evaluated)
    in_full = pool_lists(lists.evaluated)[0] if pooled else lists.evaluated
    of_loss = Calibration(run.description.temperature)

    def of(scores: ListScores, fold: str, calibration: Calibration) -> Posterior:
        return posterior_of(scores, prepared, replace(how, fold=fold), calibration, lists.step)

    return Calibrated(
        val=of(val, "val", fitted.calibration),
        evaluated=of(evaluated, how.fold, fitted.calibration),
        uncalibrated=of(in_full, how.fold, of_loss),
        pooling=fitted.pooling,
        spectra=spectra if pooled else None,
    )


def calibration_lists(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> CalibrationLists:
    """Return the scores that probabilities are made of.

    Of the run's checkpoints, the one under which the truth is most probable on validation (at its
    best temperature, on average over spectra) is taken. Parameters and errors are those of
    `calibrate`.
    """
    how = how or Scoring(candidates=run.measured_on)
    prepared = measurable(run, how, data)
    if not len(prepared.in_fold("val")):
        raise RunError(f"{prepared.folder}: has no val spectra to calibrate on")

    def usable(fold: str, step: int) -> ListScores:
        of_fold = replace(how, fold=fold)
        lists = scored_lists(run, prepared, of_fold, step, progress)
        return usable_lists(lists, prepared, of_fold)

    best: tuple[float, int, ListScores] | None = None
    for step in checkpoint_steps(run, how):
        lists = usable("val", step)
        labels = labels_of(lists, how.identity)
        temperature = fit_temperature(lists.scores, lists.counts, labels, lists.molecule)
        p = posterior(lists.scores, lists.counts, temperature)
        p_truth = Ragged(lists.counts).sum(np.where(labels, p, 0))
        loss = float(-np.log(np.maximum(p_truth, 1e-300)).mean())
        if best is None or loss < best[0]:
            best = loss, step, lists
    assert best is not None  # a run that can be measured has a checkpoint
    _, step, val = best
    fit = _lists_to_fit(run, prepared, how, step, val)
    return CalibrationLists(val, usable(how.fold, step), fit, step, how)


def _lists_to_fit(
    run: Run, prepared: Prepared, how: Scoring, step: int, val: ListScores
) -> ListScores:
    """Validation, and the cross-fitted scores of train that a fitted run has saved."""
    folder = run.predictions(step, CROSSFITTED_TRAIN)
    if run.description.fitted is None or how.similarity or not folder.is_dir():
        return val
    saved = Predictions.open(folder, label_of(run, step, CROSSFITTED_TRAIN))
    saved.check_against(prepared, CROSSFITTED_TRAIN, folder)
    if not saved.has_lists(prepared, how.candidates):
        return val
    lists = saved.lists[how.candidates]
    if not labels_of(lists, how.identity).any():
        return val
    train = usable_lists(lists, prepared, how)
    return ListScores(
        *(
            np.concatenate([getattr(val, name), getattr(train, name)])
            for name in ("queries", "molecule", "counts", "candidates", "identity", "scores")
        )
    )


def posterior_of(
    lists: ListScores, prepared: Prepared, how: Scoring, calibration: Calibration, step: int
) -> Posterior:
    """Turn scores into probabilities by a calibration."""
    identity: npt.NDArray[np.generic]
    if how.identity == "inchikey":
        identity = np.asarray(prepared.inchikey14[lists.candidates])
    else:
        molecules, index = np.unique(lists.candidates, return_inverse=True)
        rows = prepared.fingerprint_rows(molecules)
        keys = row_keys(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.shape[1])
        identity = keys[index]
    return Posterior(
        queries=lists.queries,
        molecule=np.asarray(lists.molecule),
        counts=lists.counts,
        candidates=lists.candidates,
        labels=labels_of(lists, how.identity),
        probabilities=calibration.posterior(lists.scores, lists.counts),
        identity=identity,
        calibration=calibration,
        step=step,
        how=how,
    )


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
        """Whether all of the interval lies below the stated coverage."""
        return self.covered.high < self.stated

    @property
    def everything(self) -> bool:
        """Whether every candidate is in, for want of molecules to fit on."""
        return self.fitted_on < molecules_needed(self.stated)

    @property
    def by_chance(self) -> tuple[float, float]:
        """Range of coverage in 19 of 20 fits on as many molecules, where the promise holds."""
        return coverage_range(self.fitted_on, self.stated)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
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
        """Return plain data for JSON; None for NaN and infinity, which JSON lacks."""
        values = {name: value if np.isfinite(value) else None for name, value in vars(self).items()}
        low, high = values.pop("low"), values.pop("high")
        interval = None if low is None else [low, high]
        return {**values, "interval": interval, "falls_short": self.falls_short}


def set_results(calibrated: Calibrated, coverages: Sequence[float] = COVERAGES) -> list[SetResult]:
    """Prediction sets fitted on validation, measured on the other fold."""
    val, (p, counts, labels) = calibrated.val.merged(), calibrated.evaluated.merged()
    lists = Ragged(counts)
    results = []
    for stated in coverages:
        threshold = fit_set_threshold(*val, stated, groups=calibrated.val.molecule)
        inside = prediction_sets(p, counts, threshold)
        covered = by_molecule(lists.any(inside & labels), calibrated.evaluated.molecule)
        sizes = lists.sum(inside.astype(np.int64))
        results.append(
            SetResult(
                stated,
                bootstrap(covered),
                threshold,
                float(sizes.mean()),
                float(np.median(sizes)),
                float(counts.mean()),
                fitted_on=len(np.unique(calibrated.val.molecule)),
            )
        )
    return results


def abstentions(
    calibrated: Calibrated, error_rates: Sequence[float] = ERROR_RATES
) -> list[Abstention]:
    """Choose thresholds of confidence on validation, and measure them on the other fold."""
    val_confidence, val_right = first_places(*calibrated.val.merged())
    confidence, right = first_places(*calibrated.evaluated.merged())
    results = []
    for rate in error_rates:
        threshold = abstention_threshold(val_confidence, val_right, rate, calibrated.val.molecule)
        answered = confidence >= threshold
        if not answered.any():
            results.append(Abstention(rate, threshold, 0.0, float("nan")))
            continue
        wrong = bootstrap(1 - right[answered], calibrated.evaluated.molecule[answered])
        share = float(answered.mean())
        results.append(Abstention(rate, threshold, share, wrong.mean, wrong.low, wrong.high))
    return results


def by_molecule(
    values: npt.NDArray[np.generic], molecule: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """Return means within molecules, one value for each molecule."""
    _, index = np.unique(molecule, return_inverse=True)
    sums = np.bincount(index, weights=values.astype(np.float64))
    return np.asarray(sums / np.bincount(index), np.float64)


@dataclass(frozen=True)
class SpectrumCountBin:
    """Molecules of ``least`` to ``most`` spectra (None: any number), and how right they are.

    ``confidence`` and ``accuracy`` are those of the most probable candidate.
    """

    least: int
    most: int | None
    lists: int
    confidence: float
    accuracy: float


def by_spectrum_count(calibrated: Calibrated) -> list[SpectrumCountBin]:
    """Whether probabilities hold for one spectrum and for many; numbers that none has are out."""
    if calibrated.spectra is None:
        raise RunError("these probabilities are of spectra alone, not of several together")
    confidence, accuracy = first_places(*calibrated.evaluated.merged())
    bins = np.searchsorted(_NUMBERS, calibrated.spectra, side="right") - 1
    results = []
    for number in np.unique(bins):
        inside = bins == number
        most = _NUMBERS[number + 1] - 1 if number + 1 < len(_NUMBERS) else None
        means = float(confidence[inside].mean()), float(accuracy[inside].mean())
        results.append(SpectrumCountBin(_NUMBERS[number], most, int(inside.sum()), *means))
    return results
