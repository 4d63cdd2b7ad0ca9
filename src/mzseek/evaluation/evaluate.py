"""Scores of a run on a fold, from its predictions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.text import Table, Tabular
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import (
    HITS,
    Scoring,
    best_metric,
    best_step,
    hit_metric,
    hit_rates,
    measurable,
    predictions_of,
    ranking,
    ranks_by,
    scored_lists,
    why_no_fingerprint,
)
from mzseek.io import StrPath
from mzseek.metrics import (
    METRICS,
    Interval,
    binarise,
    bit_accuracy,
    bootstrap,
    bootstrap_difference,
    cosine,
    mces_at_1,
    soft_tanimoto,
    tanimoto,
)
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

_ROWS = 512
_Values = npt.NDArray[np.float64]
_MAX_TIED = 5
FINGERPRINT_METRICS = ("tanimoto", "soft_tanimoto", "cosine", "bit_accuracy")


@dataclass(frozen=True)
class Evaluation(Tabular):
    """A run's scores.

    Attributes
    ----------
    folder : Path
        The run's, resolved: which run these are the numbers of.
    how : Scoring
    values : dict of str to float64 array
        One value for each spectrum for each metric.
    molecule : dict of str to int array
        The molecule of each.
    steps : dict of str to int
        The checkpoint that each metric was taken from: the best by it on validation.
    random_order : dict of str to float
        Expected hit rates of an order at random.
    without_list : int
        Spectra of the fold that are not in the hit rates, having no list with the truth in it.
    chosen_by : dict of str to str
        The validation metric that chose the checkpoint of each metric.
    no_fingerprint : str or None
        Why there are no metrics of a predicted fingerprint, where there are none.
    ranking : str or None
        The similarity that ranked; None where the model's own score did.
    """

    folder: Path
    how: Scoring
    values: dict[str, _Values]
    molecule: dict[str, npt.NDArray[np.int32]]
    steps: dict[str, int]
    random_order: dict[str, float]
    without_list: int = 0
    chosen_by: dict[str, str] = field(default_factory=dict)
    no_fingerprint: str | None = None
    ranking: str | None = None

    @property
    def own_checkpoints(self) -> bool:
        """Whether the checkpoints of hit rates were the best by the similarity that ranks here."""
        return all(
            ranks_by(self.chosen_by[name]) == self.ranking
            for name in self.chosen_by
            if name.startswith("hit_rate")
        )

    def intervals(self, level: float = 0.95) -> dict[str, Interval]:
        """Means with intervals over molecules."""
        return {
            name: bootstrap(values, self.molecule[name], level=level)
            for name, values in self.values.items()
        }

    def gain_over(self, control: "Evaluation", level: float = 0.95) -> dict[str, Interval]:
        """Differences to another evaluation of the same spectra, paired by spectrum."""
        if control.how != replace(self.how, similarity=control.how.similarity):
            raise RunError("the control was scored in another way")
        shared = [name for name in self.values if name in control.values]
        if not all(np.array_equal(self.molecule[name], control.molecule[name]) for name in shared):
            raise RunError("the control was scored on other spectra")
        return {
            name: bootstrap_difference(
                self.values[name], control.values[name], self.molecule[name], level=level
            )
            for name in shared
        }

    def to_table(self) -> Table:
        """One row for each metric, with its interval over molecules and what chance reaches."""
        intervals = self.intervals()
        how = self.how
        return Table(
            {
                "metric": [METRICS[name].label for name in intervals],
                "value": [interval.mean for interval in intervals.values()],
                "low": [interval.low for interval in intervals.values()],
                "high": [interval.high for interval in intervals.values()],
                "random": [self.random_order.get(name) for name in intervals],
                "spectra": [len(self.values[name]) for name in intervals],
                "molecules": [interval.groups for interval in intervals.values()],
            },
            f"{self.folder.name}: {how.fold} fold, {how.candidates} candidates, 95 % intervals "
            "over molecules",
            frozenset({"value", "low", "high", "random"}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: means by metric, and all that is needed to read them."""
        intervals = self.intervals()
        return {
            "run": str(self.folder),
            **{name: interval.mean for name, interval in intervals.items()},
            "intervals": {name: [i.low, i.high] for name, i in intervals.items()},
            "random": self.random_order,
            "steps": self.steps,
            "chosen_by": self.chosen_by,
            "without_list": self.without_list,
            "no_fingerprint": self.no_fingerprint,
            **vars(self.how),
            "spectra": {name: len(values) for name, values in self.values.items()},
            "molecules": {name: i.groups for name, i in intervals.items()},
        }


def evaluate(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Score a run, from its saved predictions where there are any.

    Each metric is taken from the checkpoint that was best by it on validation; hit rates by a
    similarity from the one that was best where it ranked; other fingerprint metrics from the one
    that was best by Tanimoto.

    Parameters
    ----------
    run : Run
    how : Scoring
    data : Path, optional
        The prepared folder, if it is no longer where it was.
    progress : callable of (stage, done, total)

    Raises
    ------
    RunError
        The run has no checkpoint yet, the data have changed, or the model has no fingerprint to
        compare.
    """
    how = how or Scoring(candidates=run.measured_on)
    prepared = measurable(run, how, data)

    @cache
    def at(step: int) -> ListScores:
        return scored_lists(run, prepared, how, step, progress)

    measured = measured_hits(run, prepared, how, at)
    random_order = chance_of(at(measured["hit_rate@1"].step), how.identity)
    without = len(prepared.in_fold(how.fold)) - len(measured["hit_rate@1"].values)
    no_fingerprint = why_no_fingerprint(run)
    if no_fingerprint is None:
        measured |= _fingerprint_metrics(run, prepared, how, progress)
    return Evaluation(
        run.folder.resolve(),
        how,
        {name: metric.values for name, metric in measured.items()},
        {name: metric.molecule for name, metric in measured.items()},
        {name: metric.step for name, metric in measured.items()},
        random_order,
        without,
        chosen_by={name: metric.chosen_by for name, metric in measured.items()},
        ranking=ranking(run, how),
        no_fingerprint=no_fingerprint,
    )


@dataclass(frozen=True)
class Measured:
    """A metric of each spectrum, the molecule of each, and the checkpoint that it is of."""

    values: _Values
    molecule: npt.NDArray[np.int32]
    step: int
    chosen_by: str


def measured_hits(
    run: Run, prepared: Prepared, how: Scoring, at: Callable[[int], ListScores]
) -> dict[str, Measured]:
    """Each hit rate, at the checkpoint that was best by it; there must be a list to rank."""

    @cache
    def rated(step: int) -> tuple[dict[str, _Values], npt.NDArray[np.int32]]:
        return hit_rates(at(step), how.ties, how.identity)

    measured = {}
    for k in HITS:
        name = f"hit_rate@{k}"
        chosen_by = best_metric(run, hit_metric(k, how.candidates, ranking(run, how)))
        step = int(run.best[chosen_by]["step"])
        rates, molecule = rated(step)
        measured[name] = Measured(rates[name], molecule, step, chosen_by)
    if not len(measured["hit_rate@1"].molecule):
        raise RunError(
            f"{prepared.folder}: no {how.fold} spectrum has its molecule among its "
            f"{how.candidates} candidates in the sense of {how.identity}"
        )
    return measured


def chance_of(lists: ListScores, identity: str) -> dict[str, float]:
    """Hit rates of an order at random: all candidates share the first place."""
    even, _ = hit_rates(replace(lists, scores=np.zeros_like(lists.scores)), "expected", identity)
    return {name: float(rates.mean()) for name, rates in even.items()}


def mces_of_best(
    run: Run,
    how: Scoring | None = None,
    *,
    molecules: int,
    data: StrPath | None = None,
    threshold: int = 15,
) -> tuple[_Values, npt.NDArray[np.int32]]:
    """MCES distance of the best-scored candidate to the truth, for one spectrum for each molecule.

    An exact distance takes a solver seconds, so it is measured for at most so many ``molecules``,
    evenly spaced. Of candidates that share the first place, the mean (of the first five by SMILES).
    Distances beyond ``threshold`` are lower bounds.

    Returns
    -------
    distances : float64 array
    molecule : int array
        The true molecule of each.
    """
    how = how or Scoring(candidates=run.measured_on)
    how.check()
    prepared = run.open_data(data)
    step = best_step(run, hit_metric(1, how.candidates, ranking(run, how)))
    lists = scored_lists(run, prepared, how, step, silent)
    _, first = np.unique(lists.molecule, return_index=True)
    chosen = first[np.unique(np.linspace(0, len(first) - 1, molecules).astype(int))]
    starts = Ragged(lists.counts).starts
    first_places = []
    for start, count in zip(starts[chosen], lists.counts[chosen], strict=True):
        scores = lists.scores[start : start + count]
        tied = lists.candidates[start : start + count][scores == scores.max()]
        # In the order of their SMILES, since that of the list may put the truth first.
        first_places.append(sorted(prepared.smiles[int(c)] for c in tied)[:_MAX_TIED])
    truth = np.asarray(lists.molecule[chosen])
    tied_lists = Ragged(np.array([len(tied) for tied in first_places], np.int64))
    distances = mces_at_1(
        [smiles for tied in first_places for smiles in tied],
        [prepared.smiles[int(m)] for m in tied_lists.repeat_per_list(truth)],
        threshold=threshold,
    )
    return tied_lists.sum(np.asarray(distances, np.float64)) / tied_lists.counts, truth


def _fingerprint_metrics(
    run: Run, prepared: Prepared, how: Scoring, progress: Progress
) -> dict[str, Measured]:
    """Metrics of predicted fingerprints, at the checkpoint that was best by Tanimoto."""
    step = best_step(run, "tanimoto")
    predictions = predictions_of(run, prepared, step, how.fold, progress)
    values: dict[str, list[_Values]] = {name: [] for name in FINGERPRINT_METRICS}
    assert predictions.fingerprints is not None
    for start in range(0, len(predictions.queries), _ROWS):
        rows = slice(start, start + _ROWS)
        soft = predictions.fingerprints[rows].astype(np.float32)
        bits = csr_array(binarise(soft))
        truth = prepared.fingerprint_rows(predictions.molecule[rows])
        values["tanimoto"].append(tanimoto(bits, truth))
        values["soft_tanimoto"].append(soft_tanimoto(soft, truth))
        values["cosine"].append(cosine(soft, truth))
        values["bit_accuracy"].append(bit_accuracy(bits, truth))
    molecule = np.asarray(predictions.molecule)
    return {
        name: Measured(np.concatenate(parts), molecule, step, "tanimoto")
        for name, parts in values.items()
    }
