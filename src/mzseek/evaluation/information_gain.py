"""Information gain of a run, and of each channel, over the prior."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.tables import Table, Tabular
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import fit_combination, fit_temperature, posterior
from mzseek.evaluation.pooled import Reading
from mzseek.evaluation.posteriors import ChosenLists, chosen_lists, labels_of
from mzseek.evaluation.scored import Scoring, predicts_fingerprint, scored_lists
from mzseek.io import StrPath
from mzseek.metrics import Interval, bootstrap, expected_rank
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Groups of molecules that validation is cut into where it is measured itself.
_PARTS = 5
# What the truth has at least, so that bits are numbers.
_LEAST = 1e-300


@dataclass(frozen=True)
class InformationGain:
    """Each list of a fold: where the truth stands in it, and how probable it is to whom.

    Attributes
    ----------
    queries, molecule : int arrays, shape (n,)
        The first spectrum of each list, and its molecule.
    spectra, candidates : int64 arrays, shape (n,)
        Spectra that were scored together, and candidates.
    rank : float64 array, shape (n,)
        Of the truth; the mean where scores are equal.
    uniform, prior, run, both : float64 arrays, shape (n,)
        Probability of the truth for one who knows the list alone, for the prior, for the run, and
        for the run and the prior together.
    weights : float64 array, shape (n, 2)
        What run and prior count in ``both``, by the fit that the list had no part in.
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
class Bits(Tabular):
    """Bits that a run tells about the truth.

    Attributes
    ----------
    folder, over : Path
        Of the run and of the prior; None for a uniform prior.
    how : Scoring
    together : bool
        Whether spectra of a molecule were scored together.
    told : InformationGain
    """

    folder: Path
    over: Path | None
    how: Scoring
    together: bool
    told: InformationGain

    @property
    def to_be_had(self) -> Floats:
        """Bits that each list leaves: ``log2`` of its length, less where several are the truth."""
        return np.asarray(-np.log2(self.told.uniform))

    @property
    def of_prior(self) -> Floats:
        """Bits of each list that the prior tells, over a uniform one."""
        return self._gained(self.told.prior, self.told.uniform)

    @property
    def of_run(self) -> Floats:
        """Bits of each list that the run tells over the prior, in whose place it stands."""
        return self._gained(self.told.run, self.told.prior)

    @property
    def given_prior(self) -> Floats:
        """Bits of each list that the run adds to the prior: both together, over the prior."""
        return self._gained(self.told.both, self.told.prior)

    def intervals(self, level: float = 0.95) -> dict[str, Interval]:
        """Means with intervals over molecules."""
        values = {"to_be_had": self.to_be_had, "run": self.of_run}
        if self.over is not None:
            values |= {"prior": self.of_prior, "given_prior": self.given_prior}
        molecule = self.told.molecule
        return {
            name: bootstrap(each, molecule, level=level, bounds=None)
            for name, each in values.items()
        }

    @property
    def weights(self) -> tuple[float, float]:
        """What run and prior count together, on average over lists; 1 is in full."""
        run, prior = self.told.weights.mean(axis=0)
        return float(run), float(prior)

    def to_table(self) -> Table:
        """One row for each kind of bits, with its interval over molecules."""
        intervals = self.intervals()
        words = {
            "to_be_had": "to be had",
            "run": f"{self.folder.name} over {self.over.name if self.over else 'uniform'}",
            "prior": f"{self.over.name if self.over else 'uniform'} over uniform",
            "given_prior": f"{self.folder.name} added to the prior",
        }
        return Table(
            {
                "bits": [words[name] for name in intervals],
                "mean": [interval.mean for interval in intervals.values()],
                "low": [interval.low for interval in intervals.values()],
                "high": [interval.high for interval in intervals.values()],
            },
            f"{self.folder.name}: {self.how.fold} fold, {self.how.candidates} candidates",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: means, with intervals over molecules, in bits."""
        facts: dict[str, Any] = {
            name: {"mean": i.mean, "low": i.low, "high": i.high}
            for name, i in self.intervals().items()
        }
        if self.over is not None:
            facts["weights"] = dict(zip(("run", "prior"), self.weights, strict=True))
        return {
            "over": "uniform" if self.over is None else str(self.over),
            "together": "molecule" if self.together else None,
            **facts,
            "lists": len(self.told.queries),
            "molecules": len(np.unique(self.told.molecule)),
        }

    def rows(self, prepared: Prepared) -> Iterator[dict[str, str]]:
        """A line for each list, in the order of spectra: what was asked, and what was told."""
        told = self.told
        for at, query in enumerate(told.queries):
            row = {
                "identifier": prepared.identifiers[int(query)],
                "molecule": prepared.smiles[int(told.molecule[at])],
                "spectra": str(told.spectra[at]),
                "candidates": str(told.candidates[at]),
                "rank": f"{told.rank[at]:g}",
                "p_truth": f"{told.run[at]:.6g}",
                "p_prior": f"{told.prior[at]:.6g}",
                "bits": f"{self.of_run[at]:.4f}",
            }
            if self.over is not None:
                row |= {
                    "p_both": f"{told.both[at]:.6g}",
                    "bits_given_prior": f"{self.given_prior[at]:.4f}",
                }
            yield row

    def to_tsv(self, prepared: Prepared) -> str:
        """All `rows` with a header, between tabs."""
        rows = list(self.rows(prepared))
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    @staticmethod
    def _gained(after: Floats, before: Floats) -> Floats:
        return np.asarray(np.log2(after) - np.log2(before))


def bits_of(
    run: Run,
    prior: Run | None = None,
    how: Scoring | None = None,
    *,
    together: bool = False,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Bits:
    """How many bits a run tells about the truth.

    Parameters
    ----------
    run : Run
    prior : Run, optional
        A run on the same data whose word counts as known: one that never sees the spectrum. By
        default all candidates of a list are equally probable.
    how : Scoring
        Fold, candidates, similarity and identity.
    together : bool
        Score all spectra of a molecule together, in the run and in the prior.
    data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.

    Returns
    -------
    Bits

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
    own = chosen_lists(run, how, data=data, progress=progress)
    other = None
    if prior is not None:
        fair = how if predicts_fingerprint(prior) else replace(how, similarity=None)
        other = chosen_lists(prior, fair, data=data, progress=progress)
        _check_same(own, other, run, prior)
    parts = [_told(*pair, how, together) for pair in _fitted_apart(own, other)]
    joined = InformationGain(
        **{
            f.name: np.concatenate([getattr(p, f.name) for p in parts])
            for f in fields(InformationGain)
        }
    )
    order = np.argsort(joined.queries, kind="stable")
    told = InformationGain(
        **{f.name: getattr(joined, f.name)[order] for f in fields(InformationGain)}
    )
    over = None if prior is None else prior.folder.resolve()
    return Bits(run.folder.resolve(), over, how, together, told)


@dataclass(frozen=True)
class _Pair:
    """The same lists with a run's scores, and with the prior's if there is one."""

    run: ListScores
    prior: ListScores | None


def _fitted_apart(own: ChosenLists, other: ChosenLists | None) -> Iterator[tuple[_Pair, _Pair]]:
    """Lists to fit on, and lists of other molecules to measure."""
    asked = _Pair(own.asked, other.asked if other else None)
    if own.how.fold != "val":
        yield _Pair(own.val, other.val if other else None), asked
        return
    molecules, place = np.unique(own.asked.molecule, return_inverse=True)
    if len(molecules) < 2:
        raise RunError("one molecule in val: nothing is left to calibrate on; take --fold test")
    part = np.random.default_rng(0).permutation(len(molecules)) % _PARTS
    for number in range(min(_PARTS, len(molecules))):
        held = part[place] == number
        yield _taken(asked, ~held), _taken(asked, held)


def _taken(pair: _Pair, which: npt.NDArray[np.bool_]) -> _Pair:
    return _Pair(
        some_lists(pair.run, which), None if pair.prior is None else some_lists(pair.prior, which)
    )


def some_lists(lists: ListScores, which: npt.NDArray[np.bool_]) -> ListScores:
    """Those lists that are marked."""
    inside = Ragged(lists.counts).repeat_per_list(which)
    return ListScores(
        queries=lists.queries[which],
        molecule=lists.molecule[which],
        counts=lists.counts[which],
        candidates=lists.candidates[inside],
        identity=lists.identity[inside],
        scores=lists.scores[inside],
    )


def _told(fit: _Pair, held: _Pair, how: Scoring, together: bool) -> InformationGain:
    """What is told of lists, by readings that were fitted on others."""
    run = Reading.fitted(fit.run, how, together=together)
    lists, spectra = run.lists(held.run)
    labels, ragged = labels_of(lists, how), Ragged(lists.counts)

    def of_truth(p: Floats) -> Floats:
        return np.asarray(np.maximum(ragged.sum(np.where(labels, p, 0)), _LEAST))

    even = np.asarray(1 / ragged.repeat_per_list(lists.counts.astype(np.float64)))
    posterior = run.calibration.posterior(lists.scores, lists.counts)
    known, both, weights = even, posterior, (1.0, 1.0)
    if fit.prior is not None and held.prior is not None:
        prior = Reading.fitted(fit.prior, how, together=together)
        known = _read(prior, held.prior)[0]
        of_run, fitted_lists = _read(run, fit.run)
        combination = fit_combination(
            (of_run, _read(prior, fit.prior)[0]),
            fitted_lists.counts,
            labels_of(fitted_lists, how),
            fitted_lists.molecule,
        )
        both = combination.posterior((posterior, known), lists.counts)
        weights = combination.weights[0], combination.weights[1]
    return InformationGain(
        queries=lists.queries,
        molecule=np.asarray(lists.molecule),
        spectra=spectra,
        candidates=lists.counts,
        rank=expected_rank(lists.scores, lists.counts, labels),
        uniform=of_truth(even),
        prior=of_truth(known),
        run=of_truth(posterior),
        both=of_truth(both),
        weights=np.tile(weights, (len(lists.counts), 1)),
    )


def _read(reading: Reading, lists: ListScores) -> tuple[Floats, ListScores]:
    """Probabilities of lists as they are judged, and those lists."""
    judged, _ = reading.lists(lists)
    return reading.calibration.posterior(judged.scores, judged.counts), judged


def _check_same(own: ChosenLists, other: ChosenLists, run: Run, prior: Run) -> None:
    for one, two in ((own.val, other.val), (own.asked, other.asked)):
        same = np.array_equal(one.queries, two.queries)
        if not (same and np.array_equal(one.candidates, two.candidates)):
            raise RunError(f"{prior.folder}: was scored on other lists than {run.folder}")


_LEAST = 1e-300
_STEP = 0  # the only one that a fitted run has


@dataclass(frozen=True)
class Contributions(Tabular):
    """What channels tell about the truth.

    Attributes
    ----------
    how : Scoring
    molecule : int array, shape (spectra,)
    all_of_it : float64 array, shape (spectra,)
        Bits that all channels tell together, over a uniform posterior.
    alone, added : dict of str to float64 array, shape (spectra,)
        By channel: bits that it tells alone, and bits that go if it is left out.
    """

    how: Scoring
    molecule: npt.NDArray[np.int32]
    all_of_it: Floats
    alone: dict[str, Floats]
    added: dict[str, Floats]

    def mean(self, bits: Floats) -> Interval:
        """Mean over spectra, with its interval over molecules."""
        return bootstrap(bits, self.molecule, bounds=None)

    def to_table(self) -> Table:
        """A row for each channel, and one for all."""
        rows = [*self.alone, "all"]
        alone = [self.mean(bits).mean for bits in self.alone.values()]
        added = [self.mean(bits).mean for bits in self.added.values()]
        whole = self.mean(self.all_of_it).mean
        columns: dict[str, Sequence[Any]] = {
            "channel": rows,
            "bits alone": [*alone, whole],
            "bits added": [*added, whole],
        }
        return Table(columns, f"bits on {self.how.fold}, {self.how.candidates} candidates")

    def to_dict(self) -> dict[str, Any]:
        """Plain data: means with their intervals."""

        def told(bits: Floats) -> list[float]:
            found = self.mean(bits)
            return [found.mean, found.low, found.high]

        return {
            "all": told(self.all_of_it),
            "alone": {name: told(bits) for name, bits in self.alone.items()},
            "added": {name: told(bits) for name, bits in self.added.items()},
        }


def contributions_of(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Contributions:
    """Bits that each channel of a fitted run brings on a fold.

    Probabilities are softmax(sum of the parts / T), the temperature fitted on validation for each
    choice of channels, every molecule counting once.

    Raises
    ------
    RunError
        It was trained, and has no channels.
    """
    how = how or Scoring(candidates=run.measured_on)
    how.check()
    fitted = run.made.fitted
    if fitted is None:
        raise RunError(f"{run.folder}: was trained ({run.made.name}), and has no channels")
    prepared = run.open_data(data)
    prepared.candidates(how.candidates)
    val, asked = (
        scored_lists(run, prepared, replace(how, fold=fold), _STEP, progress)
        for fold in ("val", how.fold)
    )
    labels = fitted.labels
    every = range(len(labels))
    whole = _truth(val, asked, list(every), how)
    uniform = _truth(val, asked, [], how)
    return Contributions(
        how,
        asked.molecule[_usable(asked, how)],
        whole - uniform,
        {label: _truth(val, asked, [n], how) - uniform for n, label in enumerate(labels)},
        {
            label: whole - _truth(val, asked, [other for other in every if other != n], how)
            for n, label in enumerate(labels)
        },
    )


def _labels(lists: ListScores, how: Scoring) -> npt.NDArray[np.bool_]:
    return np.asarray((np.asarray(lists.identity) & IDENTITY_BITS[how.identity]) > 0)


def _usable(lists: ListScores, how: Scoring) -> npt.NDArray[np.bool_]:
    return Ragged(np.asarray(lists.counts)).any(_labels(lists, how))


def _truth(val: ListScores, asked: ListScores, channels: Sequence[int], how: Scoring) -> Floats:
    """log2 of the probability that some of the channels give to the truth of each spectrum."""
    fit, held = (_some(lists, channels, how) for lists in (val, asked))
    temperature = fit_temperature(*fit)
    scores, counts, labels, _ = held
    p = posterior(scores, counts, temperature)
    return np.asarray(np.log2(np.maximum(Ragged(counts).sum(np.where(labels, p, 0)), _LEAST)))


def _some(
    lists: ListScores, channels: Sequence[int], how: Scoring
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Scores by some channels, counts, labels and molecules of lists with the truth in them."""
    if lists.parts is None:
        raise RunError("the saved predictions have no parts of channels; run `mzseek fit` again")
    usable = _usable(lists, how)
    rows = np.repeat(usable, lists.counts)
    scores = np.asarray(lists.parts[rows][:, channels]).sum(1, dtype=np.float64)
    counts = np.asarray(lists.counts[usable])
    return scores, counts, _labels(lists, how)[rows], np.asarray(lists.molecule[usable])
