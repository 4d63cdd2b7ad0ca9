"""Information gain of a run, and of each channel, over the prior, in bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.text import Table, Tabular
from mzseek.datasets.prepared import Prepared
from mzseek.decision import fit_combination, fit_temperature, posterior
from mzseek.evaluation.posteriors import (
    CalibrationLists,
    PooledCalibration,
    calibration_lists,
)
from mzseek.evaluation.scored import Floats, Ints, Scoring, labels_of, scored_lists
from mzseek.io import StrPath
from mzseek.metrics import Interval, bootstrap, expected_rank
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

_GROUPS = 5  # of molecules that validation is split into where it is measured itself
_MIN_PROBABILITY = 1e-300  # of the truth, so that bits are finite
_FITTED_STEP = 0  # the only one that a fitted run has


@dataclass(frozen=True)
class TruthProbabilities:
    """Rank and probabilities of the truth in each list of a fold.

    Attributes
    ----------
    queries, molecule : int arrays, shape (n,)
        The first spectrum of each list, and its molecule.
    spectra, candidates : int64 arrays, shape (n,)
        Spectra that were pooled, and candidates.
    rank : float64 array, shape (n,)
        Of the truth; the mean where scores are equal.
    uniform, prior, run, both : float64 arrays, shape (n,)
        Probability of the truth by the list alone, by the prior, by the run, and by the run and the
        prior combined.
    weights : float64 array, shape (n, 2)
        Weights of run and prior in ``both``, by a fit without the list.
    """

    queries: Ints
    molecule: npt.NDArray[np.int32]
    spectra: Ints
    candidates: Ints
    rank: Floats
    uniform: Floats
    prior: Floats
    run: Floats
    both: Floats
    weights: Floats


@dataclass(frozen=True)
class InformationGain(Tabular):
    """Bits of information about the truth that a run gives.

    Attributes
    ----------
    folder, over : Path
        Of the run and of the prior; None for a uniform prior.
    how : Scoring
    pooled : bool
        Whether spectra of a molecule were pooled.
    truth : TruthProbabilities
    """

    folder: Path
    over: Path | None
    how: Scoring
    pooled: bool
    truth: TruthProbabilities

    @property
    def to_be_had(self) -> Floats:
        """Bits that each list leaves: ``log2`` of its length, less where several are the truth."""
        return np.asarray(-np.log2(self.truth.uniform))

    @property
    def of_prior(self) -> Floats:
        """Bits of each list that the prior gives, over a uniform one."""
        return np.asarray(np.log2(self.truth.prior) - np.log2(self.truth.uniform))

    @property
    def of_run(self) -> Floats:
        """Bits of each list that the run alone gives beyond the prior."""
        return np.asarray(np.log2(self.truth.run) - np.log2(self.truth.prior))

    @property
    def given_prior(self) -> Floats:
        """Bits of each list that the run adds to the prior: both combined, over the prior."""
        return np.asarray(np.log2(self.truth.both) - np.log2(self.truth.prior))

    def intervals(self) -> dict[str, Interval]:
        """Return means with intervals over molecules."""
        values = {"to_be_had": self.to_be_had, "run": self.of_run}
        if self.over is not None:
            values |= {"prior": self.of_prior, "given_prior": self.given_prior}
        return {
            name: bootstrap(bits, self.truth.molecule, bounds=None) for name, bits in values.items()
        }

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of run and prior combined, on average over lists; 1 is in full."""
        run, prior = self.truth.weights.mean(axis=0)
        return float(run), float(prior)

    def to_table(self) -> Table:
        """Return one row for each kind of bits, with its interval over molecules."""
        intervals = self.intervals()
        over = self.over.name if self.over else "uniform"
        words = {
            "to_be_had": "to be had",
            "run": f"{self.folder.name} over {over}",
            "prior": f"{over} over uniform",
            "given_prior": f"{self.folder.name} added to the prior",
        }
        columns: dict[str, list[Any]] = {"bits": [words[name] for name in intervals]}
        for end in ("mean", "low", "high"):
            columns[end] = [getattr(interval, end) for interval in intervals.values()]
        title = f"{self.folder.name}: {self.how.fold} fold, {self.how.candidates} candidates"
        return Table(columns, title)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: means, with intervals over molecules, in bits."""
        values: dict[str, Any] = {
            name: {"mean": i.mean, "low": i.low, "high": i.high}
            for name, i in self.intervals().items()
        }
        if self.over is not None:
            values["weights"] = dict(zip(("run", "prior"), self.weights, strict=True))
        return {
            "over": "uniform" if self.over is None else str(self.over),
            "together": "molecule" if self.pooled else None,
            **values,
            "lists": len(self.truth.queries),
            "molecules": len(np.unique(self.truth.molecule)),
        }

    def to_tsv(self, prepared: Prepared) -> str:
        """Return a table with a line for each list, in the order of spectra, and a header."""
        import pandas as pd  # takes a third of a second to load

        truth = self.truth
        columns: dict[str, Any] = {
            "identifier": [prepared.identifiers[query] for query in truth.queries.tolist()],
            "molecule": [prepared.smiles[molecule] for molecule in truth.molecule.tolist()],
            "spectra": truth.spectra,
            "candidates": truth.candidates,
            "rank": map("{:g}".format, truth.rank),
            "p_truth": map("{:.6g}".format, truth.run),
            "p_prior": map("{:.6g}".format, truth.prior),
            "bits": map("{:.4f}".format, self.of_run),
        }
        if self.over is not None:
            columns["p_both"] = map("{:.6g}".format, truth.both)
            columns["bits_given_prior"] = map("{:.4f}".format, self.given_prior)
        return str(pd.DataFrame(columns).to_csv(sep="\t", index=False, lineterminator="\n"))


def information_gain(
    run: Run,
    prior: Run | None = None,
    how: Scoring | None = None,
    *,
    pooled: bool = False,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> InformationGain:
    """Measure how many bits a run gives about the truth.

    Parameters
    ----------
    run : Run
    prior : Run, optional
        A run on the same data that never sees the spectrum. By default all candidates of a list
        are equally probable.
    how : Scoring
        Fold, candidates, similarity and identity.
    pooled : bool
        Pool all spectra of a molecule, in the run and in the prior.
    data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.

    Raises
    ------
    RunError
        The fold is train, of which a run has seen the truths; there is no validation fold to
        calibrate on; or the prior was scored on other lists.
    """
    how = how or Scoring(candidates=run.measured_on)
    if how.fold == "train":
        raise RunError(
            "bits are measured on molecules that the run was not trained on: --fold val or test"
        )
    sides = [calibration_lists(run, how, data=data, progress=progress)]
    if prior is not None:
        fair = how if prior.description.reports_fingerprint else replace(how, similarity=None)
        sides.append(calibration_lists(prior, fair, data=data, progress=progress))
        for first, second in zip(*([side.val, side.evaluated] for side in sides), strict=True):
            same = np.array_equal(first.queries, second.queries)
            if not (same and np.array_equal(first.candidates, second.candidates)):
                raise RunError(f"{prior.folder}: was scored on other lists than {run.folder}")
    parts = [_measure(fit, held, how, pooled) for fit, held in _splits(sides)]
    names = [field.name for field in fields(TruthProbabilities)]
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.argsort(joined["queries"], kind="stable")
    truth = TruthProbabilities(**{name: values[order] for name, values in joined.items()})
    over = None if prior is None else prior.folder.resolve()
    return InformationGain(run.folder.resolve(), over, how, pooled, truth)


Lists = list[ListScores]  # the same lists, scored by the run, and by the prior if there is one


def _splits(sides: list[CalibrationLists]) -> Iterator[tuple[Lists, Lists]]:
    """Yield lists to fit on, and lists of other molecules to measure."""
    evaluated = [side.evaluated for side in sides]
    if sides[0].how.fold != "val":
        yield [side.val for side in sides], evaluated
        return
    molecules, index = np.unique(evaluated[0].molecule, return_inverse=True)
    if len(molecules) < 2:
        raise RunError("one molecule in val: nothing is left to calibrate on; take --fold test")
    group = np.random.default_rng(0).permutation(len(molecules)) % _GROUPS
    for number in range(min(_GROUPS, len(molecules))):
        held = group[index] == number
        yield [side.select(~held) for side in evaluated], [side.select(held) for side in evaluated]


def _measure(fit: Lists, held: Lists, how: Scoring, pooled: bool) -> TruthProbabilities:
    """Compute probabilities of the truths of held-out lists, by calibrations fitted on others."""
    calibrations = [PooledCalibration.fit(lists, how, pooled=pooled) for lists in fit]

    def posteriors_of(sides: Lists) -> tuple[ListScores, Ints, list[Floats]]:
        """Pooled lists, the spectra of each, and their posteriors by the run and the prior."""
        judged = [fitted.pool(lists) for fitted, lists in zip(calibrations, sides, strict=True)]
        posteriors = [
            fitted.calibration.posterior(lists.scores, lists.counts)
            for fitted, (lists, _) in zip(calibrations, judged, strict=True)
        ]
        return *judged[0], posteriors

    lists, spectra, posteriors = posteriors_of(held)
    labels, ragged = labels_of(lists, how.identity), Ragged(lists.counts)

    def of_truth(p: Floats) -> Floats:
        return np.asarray(np.maximum(ragged.sum(np.where(labels, p, 0)), _MIN_PROBABILITY))

    even = np.asarray(1 / ragged.repeat_per_list(lists.counts.astype(np.float64)))
    prior, both, weights = even, posteriors[0], (1.0, 1.0)
    if len(posteriors) == 2:
        fitted, _, fitted_posteriors = posteriors_of(fit)
        combination = fit_combination(
            fitted_posteriors, fitted.counts, labels_of(fitted, how.identity), fitted.molecule
        )
        prior, both = posteriors[1], combination.posterior(posteriors, lists.counts)
        weights = combination.weights[0], combination.weights[1]
    return TruthProbabilities(
        queries=lists.queries,
        molecule=np.asarray(lists.molecule),
        spectra=spectra,
        candidates=lists.counts,
        rank=expected_rank(lists.scores, lists.counts, labels),
        uniform=of_truth(even),
        prior=of_truth(prior),
        run=of_truth(posteriors[0]),
        both=of_truth(both),
        weights=np.tile(weights, (len(lists.counts), 1)),
    )


@dataclass(frozen=True)
class Contributions(Tabular):
    """Bits of information about the truth that channels give.

    Attributes
    ----------
    how : Scoring
    molecule : int array, shape (spectra,)
    all_of_it : float64 array, shape (spectra,)
        Bits that all channels give together, over a uniform posterior.
    alone, added : dict of str to float64 array, shape (spectra,)
        By channel: bits that it gives alone, and bits that go if it is left out.
    """

    how: Scoring
    molecule: npt.NDArray[np.int32]
    all_of_it: Floats
    alone: dict[str, Floats]
    added: dict[str, Floats]

    def mean(self, bits: Floats) -> Interval:
        """Return a mean over spectra, with its interval over molecules."""
        return bootstrap(bits, self.molecule, bounds=None)

    def to_table(self) -> Table:
        """Return a row for each channel, and one for all."""
        whole = self.mean(self.all_of_it).mean
        columns: dict[str, Sequence[Any]] = {
            "channel": [*self.alone, "all"],
            "bits alone": [*(self.mean(bits).mean for bits in self.alone.values()), whole],
            "bits added": [*(self.mean(bits).mean for bits in self.added.values()), whole],
        }
        return Table(columns, f"bits on {self.how.fold}, {self.how.candidates} candidates")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: means with their intervals."""

        def ends(bits: Floats) -> list[float]:
            interval = self.mean(bits)
            return [interval.mean, interval.low, interval.high]

        return {
            "all": ends(self.all_of_it),
            "alone": {name: ends(bits) for name, bits in self.alone.items()},
            "added": {name: ends(bits) for name, bits in self.added.items()},
        }


def contributions_of(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Contributions:
    """Measure the bits that each channel of a fitted run adds on a fold.

    Probabilities are softmax(sum of the contributions / T), the temperature fitted on validation
    for each choice of channels, every molecule counting once. RunError if the run was trained.
    """
    how = how or Scoring(candidates=run.measured_on)
    how.check()
    fitted = run.description.fitted
    if fitted is None:
        raise RunError(f"{run.folder}: was trained ({run.description.name}), and has no channels")
    prepared = run.open_data(data)
    prepared.candidates(how.candidates)

    def with_truth(fold: str) -> ListScores:
        lists = scored_lists(run, prepared, replace(how, fold=fold), _FITTED_STEP, progress)
        return lists.select(Ragged(lists.counts).any(labels_of(lists, how.identity)))

    val, evaluated = with_truth("val"), with_truth(how.fold)
    if val.parts is None or evaluated.parts is None:
        raise RunError("the saved predictions have no parts of channels; run `mzseek fit` again")

    def log_truth(channels: Sequence[int]) -> Floats:
        """log2 of the probability that some of the channels give to the truth of each spectrum."""
        fit, held = (
            np.asarray(lists.parts)[:, channels].sum(1, dtype=np.float64)
            for lists in (val, evaluated)
        )
        temperature = fit_temperature(fit, val.counts, labels_of(val, how.identity), val.molecule)
        p = posterior(held, evaluated.counts, temperature)
        p_truth = Ragged(evaluated.counts).sum(np.where(labels_of(evaluated, how.identity), p, 0))
        return np.asarray(np.log2(np.maximum(p_truth, _MIN_PROBABILITY)))

    every = range(len(fitted.labels))
    whole, uniform = log_truth(list(every)), log_truth([])
    return Contributions(
        how,
        evaluated.molecule,
        whole - uniform,
        {label: log_truth([n]) - uniform for n, label in enumerate(fitted.labels)},
        {
            label: whole - log_truth([other for other in every if other != n])
            for n, label in enumerate(fitted.labels)
        },
    )
