"""What a fitted run says about folds of its data, kept as the predictions of any run are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.evidence.asked import lists_from, spectra_from, with_lists
from mzseek.evidence.fitted import score_of
from mzseek.evidence.fitting.crossfit import Groups, Taught
from mzseek.evidence.fitting.swapped import swapped
from mzseek.evidence.known import Blocks
from mzseek.evidence.lists import Lists
from mzseek.evidence.ranker import Ranker
from mzseek.metrics import hit_rate
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import gather, pointers, spans
from mzseek.runs.predictions import ListScores, Predictions
from mzseek.work.progress import Progress, silent

Parts = npt.NDArray[np.float32]
HITS = (1, 5, 20)
CROSSFITTED = "val"
_CANDIDATES = 40_000  # whose pieces are held at a time


@dataclass(frozen=True, eq=False)
class Predictor:
    """Channels and rankers, to be asked about folds.

    Attributes
    ----------
    prepared : Prepared
    taught : sequence of Taught
    groups : Groups
        Of the molecules of train and val.
    rankers : mapping of int or None to Ranker
        Fitted without each group; None: fitted on all.
    spectra : str
        ``own``, or ``swapped`` for the control.
    jobs : int or None
    """

    prepared: Prepared
    taught: Sequence[Taught]
    groups: Groups
    rankers: Mapping[int | None, Ranker]
    spectra: str = "own"
    jobs: int | None = None

    def fold(self, fold: str, progress: Progress = silent) -> Predictions:
        """Scores of all candidates of a fold, of all lists that models are measured on.

        What is said of validation is cross-fitted, channels and ranker: both may have seen it.
        """
        prepared = self.prepared
        queries = prepared.in_fold(fold)
        read = swapped(prepared, queries) if self.spectra == "swapped" else queries
        lists = {}
        for setting in prepared.measured_settings:
            usable = _with_any(prepared, queries, setting)
            parts = self._parts(usable, read[np.isin(queries, usable)], setting, fold, progress)
            lists[setting] = _scored(prepared, usable, setting, parts)
        return Predictions(queries, np.asarray(prepared.molecule[queries]), None, lists)

    def _parts(
        self,
        queries: npt.NDArray[np.int64],
        read: npt.NDArray[np.int64],
        setting: str,
        fold: str,
        progress: Progress,
    ) -> Parts:
        """What channels add to the scores of the spectra's candidates, some molecules at a time."""
        sizes = _sizes(self.prepared, queries, setting)
        ends = pointers(sizes)
        found = np.zeros((int(ends[-1]), len(self.taught)), np.float32)
        done = 0
        for own in _by_molecule(self.prepared.molecule[queries], sizes):
            spectra = spectra_from(self.prepared, read[own])
            lists, _ = lists_from(
                self.prepared, queries[own], setting, spectra=spectra, jobs=self.jobs
            )
            blocks = self.prepared.blocks[self.prepared.molecule[queries[own]]]
            rows = spans(ends[own], ends[own + 1])[1]
            found[rows] = self._said(lists, blocks, fold)
            done += len(own)
            progress(f"{setting} lists of {fold}", done, len(queries))
        return found

    def _said(self, lists: Lists, blocks: Blocks, fold: str) -> Parts:
        if fold != CROSSFITTED:
            features = [each.channel.features(each.whole, lists) for each in self.taught]
            return self.rankers[None].parts(features, lists.modes, lists.counts)
        features = [each.features(lists, blocks, to_fit=False) for each in self.taught]
        group = self.groups.group[self.groups.places(blocks)]
        found = np.zeros((lists.ragged.total, len(self.taught)), np.float32)
        for each in np.unique(group).tolist():
            rows = lists.ragged.spread(group == each)
            own = [values[rows] for values in features]
            of_group = group == each
            found[rows] = self.rankers[each].parts(
                own, lists.modes[of_group], lists.counts[of_group]
            )
        return found


def validation_means(said: Predictions) -> dict[str, float]:
    """Hit rates of a validation, by the names that runs have for them."""
    means = {}
    for setting, lists in said.lists.items():
        labels = (np.asarray(lists.identity) & IDENTITIES["fingerprint"]) > 0
        usable = np.add.reduceat(labels, pointers(lists.counts)[:-1]) > 0
        rows = np.repeat(usable, lists.counts)
        for k in HITS:
            rates = hit_rate(lists.scores[rows], lists.counts[usable], labels[rows], k)
            means[f"hit_rate@{k}/{setting}"] = float(rates.mean())
    return means


def _with_any(
    prepared: Prepared, queries: npt.NDArray[np.int64], setting: str
) -> npt.NDArray[np.int64]:
    """Spectra that have a list with the truth in it, in whichever sense."""
    return np.unique(
        np.concatenate([with_lists(prepared, queries, setting, sense) for sense in IDENTITIES])
    )


def _sizes(
    prepared: Prepared, queries: npt.NDArray[np.int64], setting: str
) -> npt.NDArray[np.int64]:
    lists = prepared.candidates(setting)
    return np.asarray(lists.sizes[lists.list_of[prepared.molecule[queries]]], np.int64)


def _by_molecule(
    molecule: npt.NDArray[np.integer], sizes: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.int64]]:
    """Spectra in parts, all of a molecule together: their list is one."""
    order = np.argsort(molecule, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(molecule[order]) != 0]) if len(order) else order
    load = np.cumsum(sizes[order][first]) // _CANDIDATES
    borders = first[1:][np.diff(load) > 0]
    return [part for part in np.split(order, borders) if len(part)]


def _scored(
    prepared: Prepared, queries: npt.NDArray[np.int64], setting: str, parts: Parts
) -> ListScores:
    lists = prepared.candidates(setting)
    molecule = np.asarray(prepared.molecule[queries])
    numbers = np.asarray(lists.list_of)[molecule]
    ends, (candidates, identity) = gather(lists.indptr, (lists.molecules, lists.identity), numbers)
    return ListScores(
        queries=queries,
        molecule=molecule,
        counts=np.diff(ends).astype(np.int64),
        candidates=np.asarray(candidates),
        identity=np.asarray(identity),
        scores=score_of(parts),
        parts=parts,
    )
