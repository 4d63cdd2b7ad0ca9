"""Scores of a run on a fold, from its predictions."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.text import Table, Tabular
from mzseek.evaluation.scored import (
    HITS,
    Floats,
    Ints,
    Scoring,
    best_metric,
    best_step,
    fingerprint_metrics,
    hit_metric,
    hit_rates,
    measurable,
    pool_lists,
    predictions_of,
    ranking,
    ranks_by,
    scored_lists,
    usable_lists,
    why_no_fingerprint,
)
from mzseek.io import StrPath
from mzseek.metrics import METRICS, Interval, bootstrap, bootstrap_difference, mces_at_1
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

_MAX_TIED = 5


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
    spectra : int64 array, shape (n,), or None
        Where the spectra of a molecule were pooled: how many each value is of. There is then one
        value for each molecule (for each of its lists, if its spectra have several).
    """

    folder: Path
    how: Scoring
    values: dict[str, Floats]
    molecule: dict[str, npt.NDArray[np.int32]]
    steps: dict[str, int]
    random_order: dict[str, float]
    without_list: int = 0
    chosen_by: dict[str, str] = field(default_factory=dict)
    no_fingerprint: str | None = None
    ranking: str | None = None
    spectra: Ints | None = None

    @property
    def own_checkpoints(self) -> bool:
        """Whether the checkpoints of hit rates were the best by the similarity that ranks here."""
        return all(
            ranks_by(chosen_by) == self.ranking
            for name, chosen_by in self.chosen_by.items()
            if name.startswith("hit_rate")
        )

    def intervals(self) -> dict[str, Interval]:
        """Return means with intervals over molecules."""
        return {
            name: bootstrap(values, self.molecule[name]) for name, values in self.values.items()
        }

    def gain_over(self, control: "Evaluation") -> dict[str, Interval]:
        """Return differences to another evaluation, paired by spectrum or molecule."""
        shared = [name for name in self.values if name in control.values]
        if control.how != replace(self.how, similarity=control.how.similarity):
            raise RunError("the control was scored in another way")
        compared: list[tuple[Any, Any]] = [(self.spectra, control.spectra)]
        compared += [(self.molecule[name], control.molecule[name]) for name in shared]
        if not all(np.array_equal(np.asarray(here), np.asarray(there)) for here, there in compared):
            raise RunError("the control was scored on other spectra")
        return {
            name: bootstrap_difference(self.values[name], control.values[name], self.molecule[name])
            for name in shared
        }

    def to_table(self) -> Table:
        """Return one row for each metric, with its interval and what chance reaches."""
        intervals = self.intervals()
        columns: dict[str, list[Any]] = {
            "metric": [METRICS[name].label for name in intervals],
            "value": [interval.mean for interval in intervals.values()],
            "low": [interval.low for interval in intervals.values()],
            "high": [interval.high for interval in intervals.values()],
            "random": [self.random_order.get(name) for name in intervals],
        }
        if self.spectra is None:
            columns["spectra"] = [len(values) for values in self.values.values()]
            columns["molecules"] = [interval.groups for interval in intervals.values()]
            what = "95 % intervals over molecules"
        else:
            what = f"{len(self.spectra):,} molecules, all spectra of each together"
        how = self.how
        title = f"{self.folder.name}: {how.fold} fold, {how.candidates} candidates, {what}"
        return Table(columns, title, frozenset({"value", "low", "high", "random"}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: means by metric, and all that is needed to read them."""
        intervals = self.intervals()
        measured = {
            **{name: interval.mean for name, interval in intervals.items()},
            "intervals": {name: [i.low, i.high] for name, i in intervals.items()},
            "random": self.random_order,
            "steps": self.steps,
        }
        if self.spectra is not None:
            return {
                "by": "molecule",
                **measured,
                "lists": len(self.spectra),
                "molecules": intervals["hit_rate@1"].groups,
                "spectra": int(self.spectra.sum()),
                "median_spectra": float(np.median(self.spectra)),
            }
        return {
            "run": str(self.folder),
            **measured,
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
    pooled: bool = False,
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
    pooled : bool
        Hit rates over molecules, by the sum of each candidate's scores over a molecule's spectra.
        The order of sums is that of the probabilities too, so that nothing has to be fitted here.
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
    def lists_at(step: int) -> tuple[ListScores, Ints | None]:
        lists = scored_lists(run, prepared, how, step, progress)
        return pool_lists(usable_lists(lists, prepared, how)) if pooled else (lists, None)

    @cache
    def rates_at(step: int) -> tuple[dict[str, Floats], npt.NDArray[np.int32]]:
        return hit_rates(lists_at(step)[0], how.ties, how.identity)

    chosen_by = {
        f"hit_rate@{k}": best_metric(run, hit_metric(k, how.candidates, ranking(run, how)))
        for k in HITS
    }
    steps = {name: int(run.best[metric]["step"]) for name, metric in chosen_by.items()}
    values = {name: rates_at(step)[0][name] for name, step in steps.items()}
    molecule = {name: rates_at(step)[1] for name, step in steps.items()}
    if not len(molecule["hit_rate@1"]):
        raise RunError(
            f"{prepared.folder}: no {how.fold} spectrum has its molecule among its "
            f"{how.candidates} candidates in the sense of {how.identity}"
        )
    lists, spectra = lists_at(steps["hit_rate@1"])
    even, _ = hit_rates(replace(lists, scores=np.zeros_like(lists.scores)), identity=how.identity)
    no_fingerprint = why_no_fingerprint(run)
    if no_fingerprint is None and not pooled:
        step = best_step(run, "tanimoto")
        predictions = predictions_of(run, prepared, step, how.fold, progress)
        for name, of_metric in fingerprint_metrics(predictions, prepared).items():
            values[name], molecule[name] = of_metric, np.asarray(predictions.molecule)
            steps[name], chosen_by[name] = step, "tanimoto"
    return Evaluation(
        run.folder.resolve(),
        how,
        values,
        molecule,
        steps,
        {name: float(rates.mean()) for name, rates in even.items()},
        0 if pooled else len(prepared.in_fold(how.fold)) - len(values["hit_rate@1"]),
        chosen_by,
        no_fingerprint,
        ranking(run, how),
        spectra,
    )


def mces_of_best(
    run: Run,
    how: Scoring | None = None,
    *,
    molecules: int,
    data: StrPath | None = None,
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """MCES distance of the best-scored candidate to the truth, for one spectrum for each molecule.

    An exact distance takes a solver seconds, so it is measured for at most so many ``molecules``,
    evenly spaced. Of candidates that share the first place, the mean (of the first five by SMILES).
    Distances beyond 15 are lower bounds.

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
    lists = scored_lists(run, prepared, how, step)
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
    )
    return tied_lists.sum(np.asarray(distances, np.float64)) / tied_lists.counts, truth
