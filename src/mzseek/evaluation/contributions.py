"""Bits that each channel of a fitted run brings, from the parts of its scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision import fit_temperature, posterior
from mzseek.errors import RunError
from mzseek.evaluation.scored import Scoring, scored_lists
from mzseek.files import StrPath
from mzseek.metrics import Interval, bootstrap
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import Ragged
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run
from mzseek.tables import Table, Tabular
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
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
    how = how or Scoring(candidates=run.measured_on(data))
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
    return np.asarray((np.asarray(lists.identity) & IDENTITIES[how.identity]) > 0)


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
