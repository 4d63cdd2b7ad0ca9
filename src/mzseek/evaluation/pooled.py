"""Metrics where the scores of a molecule's spectra are pooled."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.text import Table
from mzseek.decision import Calibration, Pooling, first_places, fit_pooling, pool_scores
from mzseek.evaluation.evaluate import Evaluation, chance_of, measured_hits
from mzseek.evaluation.posteriors import (
    Calibrated,
    calibration_lists,
    fitted_on,
    posterior_of,
    scores_at,
)
from mzseek.evaluation.scored import Scoring, labels_of, measurable
from mzseek.io import StrPath
from mzseek.metrics import Interval
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Numbers of spectra that are shown separately: from each of these to the next.
_NUMBERS = (1, 2, 5, 10, 20)


@dataclass(frozen=True)
class PooledEvaluation(Evaluation):
    """Hit rates of a run where the spectra of a molecule are pooled.

    There is one value for each molecule (for each of its lists, if its spectra have several), and
    ``spectra``, shape (n,), is the number of spectra of each.
    """

    spectra: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def gain_over(self, control: Evaluation, level: float = 0.95) -> dict[str, Interval]:
        """Differences to another run on the same spectra, paired by molecule."""
        same = isinstance(control, PooledEvaluation) and np.array_equal(
            self.spectra, control.spectra
        )
        if not same:
            raise RunError("the control was scored on other spectra")
        return super().gain_over(control, level)

    def to_table(self) -> Table:
        """One row for each metric, with its interval over molecules and what chance reaches."""
        table = super().to_table()
        columns = {
            name: values
            for name, values in table.columns.items()
            if name not in ("spectra", "molecules")
        }
        title = (
            f"{self.folder.name}: {self.how.fold} fold, {self.how.candidates} candidates, "
            f"{len(self.spectra):,} molecules, all spectra of each together"
        )
        return replace(table, columns=columns, title=title)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        names = (*self.values, "intervals", "random", "steps")
        values = super().to_dict()
        return {
            "by": "molecule",
            **{name: values[name] for name in names},
            "lists": len(self.spectra),
            "molecules": values["molecules"]["hit_rate@1"],
            "spectra": int(self.spectra.sum()),
            "median_spectra": float(np.median(self.spectra)),
        }


def evaluate_pooled(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> PooledEvaluation:
    """Hit rates over molecules, by the sum of each candidate's scores over a molecule's spectra.

    The order of sums is that of the probabilities too, so that nothing has to be fitted here.
    Parameters and errors are those of `mzseek.evaluation.evaluate.evaluate`.
    """
    how = how or Scoring(candidates=run.measured_on)
    prepared = measurable(run, how, data)

    @cache
    def at(step: int) -> tuple[ListScores, Ints]:
        return pool_lists(scores_at(run, prepared, how, step, progress))

    measured = measured_hits(run, prepared, how, lambda step: at(step)[0])
    lists, spectra = at(measured["hit_rate@1"].step)
    return PooledEvaluation(
        run.folder.resolve(),
        how,
        {name: metric.values for name, metric in measured.items()},
        {name: metric.molecule for name, metric in measured.items()},
        {name: metric.step for name, metric in measured.items()},
        chance_of(lists, how.identity),
        spectra=spectra,
    )


def calibrate_pooled(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Calibrated:
    """Probabilities of candidates given all spectra of a molecule.

    The calibration is that of single spectra (`mzseek.evaluation.posteriors.calibrate`); how far
    several are dependent is fitted on validation, over molecules. The result has ``pooling`` and
    ``spectra``; its ``uncalibrated`` counts every spectrum in full.
    """
    lists = calibration_lists(run, how, data=data, progress=progress)
    prepared, how, step = run.open_data(data), lists.how, lists.step
    fitted = PooledCalibration.fit(lists.fit, how, pooled=True)
    val, _ = fitted.pool(lists.val)
    evaluated, spectra = fitted.pool(lists.evaluated)
    in_full, _ = pool_lists(lists.evaluated)
    return Calibrated(
        val=posterior_of(val, prepared, replace(how, fold="val"), fitted.calibration, step),
        evaluated=posterior_of(evaluated, prepared, how, fitted.calibration, step),
        uncalibrated=posterior_of(in_full, prepared, how, lists.uncalibrated, step),
        pooling=fitted.pooling,
        spectra=spectra,
    )


@dataclass(frozen=True)
class PooledCalibration:
    """The calibration of single spectra, and how spectra of a molecule are pooled (None: not)."""

    calibration: Calibration
    pooling: Pooling | None = None

    @classmethod
    def fit(cls, lists: ListScores, how: Scoring, *, pooled: bool) -> "PooledCalibration":
        """Fit on lists, each molecule counting once."""
        calibration = fitted_on(lists, how)
        if not pooled:
            return cls(calibration)
        labels = labels_of(lists, how.identity)
        return cls(
            calibration,
            fit_pooling(lists.scores, lists.counts, labels, molecule_groups(lists), calibration),
        )

    def pool(self, lists: ListScores) -> tuple[ListScores, Ints]:
        """Pool lists, and count the spectra of each."""
        if self.pooling is None:
            return lists, np.ones(len(lists.counts), np.int64)
        return pool_lists(lists, self.pooling)

    def posterior(self, lists: ListScores) -> Floats:
        """Probabilities of the candidates of pooled lists."""
        return self.calibration.posterior(lists.scores, lists.counts)


def molecule_groups(lists: ListScores) -> Ints:
    """A number for each spectrum, equal for those of one molecule that share a candidate list.

    Numbers rise with the first spectrum of each.
    """
    candidates = np.ascontiguousarray(lists.candidates)
    numbers: dict[tuple[int, bytes], int] = {}
    groups = np.empty(len(lists.counts), np.int64)
    starts = Ragged(lists.counts).starts
    for index, (start, count) in enumerate(zip(starts, lists.counts, strict=True)):
        key = int(lists.molecule[index]), candidates[start : start + count].tobytes()
        groups[index] = numbers.setdefault(key, len(numbers))
    return groups


def pool_lists(lists: ListScores, pooling: Pooling | None = None) -> tuple[ListScores, Ints]:
    """One list for each group of spectra, scores added up, and how many spectra each has.

    The query of a group is its first spectrum.
    """
    sums = pool_scores(lists.scores, lists.counts, molecule_groups(lists), pooling)
    first = np.zeros(len(lists.counts), bool)  # in the order of groups, whose numbers rise
    first[sums.first] = True
    return replace(lists.select(first), scores=sums.scores, parts=None), sums.spectra


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
    ends = [*(number - 1 for number in _NUMBERS[1:]), None]
    return [
        SpectrumCountBin(
            least, most, int(inside.sum()),
            float(confidence[inside].mean()), float(accuracy[inside].mean()),
        )
        for number, (least, most) in enumerate(zip(_NUMBERS, ends, strict=True))
        if (inside := bins == number).any()
    ]  # fmt: skip
