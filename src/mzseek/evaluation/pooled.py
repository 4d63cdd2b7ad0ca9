"""Metrics when the spectra of a molecule are scored together."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.tables import Table, Tabular
from mzseek.decision import Calibration, Pooling, first_places, fit_pooling, pool_scores
from mzseek.evaluation.evaluate import chance_of, measured_hits
from mzseek.evaluation.posteriors import (
    Calibrated,
    chosen_lists,
    fitted_on,
    labels_of,
    posterior_of,
    scores_at,
)
from mzseek.evaluation.scored import Scoring, measurable
from mzseek.io import StrPath
from mzseek.metrics import METRICS, Interval, bootstrap, bootstrap_difference
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Numbers of spectra that are shown apart: from each of these to the next.
_NUMBERS = (1, 2, 5, 10, 20)


@dataclass(frozen=True)
class PooledReport(Tabular):
    """Hit rates of a run where the spectra of a molecule are scored together.

    Attributes
    ----------
    folder : Path
        The run's, resolved.
    how : Scoring
    values : dict of str to float64 array, shape (n,)
        One value for each molecule (for each of its lists, if its spectra have several).
    molecule : int array, shape (n,)
    spectra : int64 array, shape (n,)
        How many were added up.
    steps : dict of str to int
        The checkpoint that each metric was taken from, as where spectra are judged alone.
    chance : dict of str to float
        Expected hit rates of an order at random.
    """

    folder: Path
    how: Scoring
    values: dict[str, Floats]
    molecule: npt.NDArray[np.int32]
    spectra: Ints
    steps: dict[str, int]
    chance: dict[str, float]

    def intervals(self, level: float = 0.95) -> dict[str, Interval]:
        """Means over molecules with their intervals."""
        return {
            name: bootstrap(values, self.molecule, level=level)
            for name, values in self.values.items()
        }

    def gain_over(self, control: "PooledReport", level: float = 0.95) -> dict[str, Interval]:
        """Differences to another run on the same spectra, paired by molecule."""
        same = np.array_equal(self.molecule, control.molecule)
        if not (same and np.array_equal(self.spectra, control.spectra)):
            raise RunError("the control was scored on other spectra")
        return {
            name: bootstrap_difference(values, control.values[name], self.molecule, level=level)
            for name, values in self.values.items()
        }

    def to_table(self) -> Table:
        """One row for each metric, with its interval over molecules and what chance reaches."""
        intervals = self.intervals()
        return Table(
            {
                "metric": [METRICS[name].label for name in intervals],
                "value": [interval.mean for interval in intervals.values()],
                "low": [interval.low for interval in intervals.values()],
                "high": [interval.high for interval in intervals.values()],
                "random": [self.chance[name] for name in intervals],
            },
            f"{self.folder.name}: {self.how.fold} fold, {self.how.candidates} candidates, "
            f"{len(self.molecule):,} molecules, all spectra of each together",
            frozenset({"value", "low", "high", "random"}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        intervals = self.intervals()
        return {
            "by": "molecule",
            **{name: interval.mean for name, interval in intervals.items()},
            "intervals": {name: [i.low, i.high] for name, i in intervals.items()},
            "random": self.chance,
            "steps": self.steps,
            "lists": len(self.molecule),
            "molecules": len(np.unique(self.molecule)),
            "spectra": int(self.spectra.sum()),
            "median_spectra": float(np.median(self.spectra)),
        }


def evaluate_together(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> PooledReport:
    """Hit rates over molecules, by the sum of each candidate's scores over a molecule's spectra.

    The order of sums is that of the probabilities too, so that nothing has to be fitted here.
    Parameters and errors are those of `mzseek.evaluation.evaluate.evaluate`.
    """
    how = how or Scoring(candidates=run.measured_on)
    prepared = measurable(run, how, data)

    @cache
    def at(step: int) -> tuple[ListScores, Ints]:
        return pooled_lists(scores_at(run, prepared, how, step, progress))

    measured = measured_hits(run, prepared, how, lambda step: at(step)[0])
    first = measured["hit_rate@1"]
    lists, spectra = at(first.step)
    return PooledReport(
        run.folder.resolve(),
        how,
        {name: metric.values for name, metric in measured.items()},
        first.molecule,
        spectra,
        {name: metric.step for name, metric in measured.items()},
        chance_of(lists, how.identity),
    )


def calibrate_together(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Calibrated:
    """Probabilities of candidates given all spectra of a molecule.

    The calibration is that of single spectra (`mzseek.evaluation.posteriors.calibrate`); how far
    several are dependent is fitted on validation, over molecules. Parameters and errors are the
    same.

    Returns
    -------
    Calibrated
        With ``pooling`` and ``spectra``. ``uncalibrated`` counts every spectrum in full.
    """
    lists = chosen_lists(run, how, data=data, progress=progress)
    prepared, how = run.open_data(data), lists.how
    reading = Reading.fitted(lists.fit, how, together=True)
    val, _ = reading.lists(lists.val)
    asked, spectra = reading.lists(lists.asked)
    in_full, _ = pooled_lists(lists.asked)
    return Calibrated(
        val=posterior_of(val, prepared, replace(how, fold="val"), reading.calibration, lists.step),
        asked=posterior_of(asked, prepared, how, reading.calibration, lists.step),
        uncalibrated=posterior_of(in_full, prepared, how, lists.plain, lists.step),
        pooling=reading.pooling,
        spectra=spectra,
    )


@dataclass(frozen=True)
class Reading:
    """How scores of spectra are read: as probabilities, of each alone or of several together.

    Attributes
    ----------
    calibration : Calibration
        Of single spectra.
    pooling : Pooling or None
        How spectra of a molecule are added up; None where each is judged alone.
    """

    calibration: Calibration
    pooling: Pooling | None = None

    @classmethod
    def fitted(cls, lists: ListScores, how: Scoring, *, together: bool) -> "Reading":
        """Fitted on lists, each molecule counting once."""
        calibration = fitted_on(lists, how)
        if not together:
            return cls(calibration)
        labels = labels_of(lists, how)
        return cls(
            calibration,
            fit_pooling(lists.scores, lists.counts, labels, groups_of(lists), calibration),
        )

    def lists(self, lists: ListScores) -> tuple[ListScores, Ints]:
        """Lists as they are judged, and the spectra behind each."""
        if self.pooling is None:
            return lists, np.ones(len(lists.counts), np.int64)
        return pooled_lists(lists, self.pooling)


def groups_of(lists: ListScores) -> Ints:
    """A number for each spectrum, equal for those of one molecule that share a candidate list.

    Numbers rise with the first spectrum of each.
    """
    starts = Ragged(lists.counts).starts
    candidates = np.ascontiguousarray(lists.candidates)
    known: dict[tuple[int, bytes], int] = {}
    found = np.empty(len(lists.counts), np.int64)
    for place, (start, count) in enumerate(zip(starts, lists.counts, strict=True)):
        key = int(lists.molecule[place]), candidates[start : start + count].tobytes()
        found[place] = known.setdefault(key, len(known))
    return found


def pooled_lists(lists: ListScores, pooling: Pooling | None = None) -> tuple[ListScores, Ints]:
    """One list for each group of spectra, scores added up, and how many spectra each has.

    The query of a group is its first spectrum.
    """
    sums = pool_scores(lists.scores, lists.counts, groups_of(lists), pooling)
    starts = Ragged(lists.counts).starts[sums.first]
    whole = Ragged(sums.counts)
    inside = np.arange(whole.total) + whole.repeat_per_list(starts - whole.starts)
    pooled = ListScores(
        queries=lists.queries[sums.first],
        molecule=np.asarray(lists.molecule[sums.first]),
        counts=sums.counts,
        candidates=lists.candidates[inside],
        identity=lists.identity[inside],
        scores=sums.scores,
    )
    return pooled, sums.spectra


@dataclass(frozen=True)
class OfNumber:
    """Molecules of so many spectra: how sure the posterior is of its first answer, and how right.

    Attributes
    ----------
    least, most : int
        From so many spectra to so many; None: any number.
    lists : int
    confidence, accuracy : float
    """

    least: int
    most: int | None
    lists: int
    confidence: float
    accuracy: float


def by_number(found: Calibrated) -> list[OfNumber]:
    """Whether probabilities hold for one spectrum and for many; numbers that none has are out."""
    if found.spectra is None:
        raise RunError("these probabilities are of spectra alone, not of several together")
    sure, right = first_places(*found.asked.answers())
    place = np.searchsorted(_NUMBERS, found.spectra, side="right") - 1
    ends = [*(number - 1 for number in _NUMBERS[1:]), None]
    return [
        OfNumber(least, most, int(here.sum()), float(sure[here].mean()), float(right[here].mean()))
        for at, (least, most) in enumerate(zip(_NUMBERS, ends, strict=True))
        if (here := place == at).any()
    ]
