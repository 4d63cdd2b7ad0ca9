"""What a fitted run says about folds of its data, kept as the predictions of any run are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.evidence.asked import spectra_from, with_lists
from mzseek.evidence.channel import Features, read_once
from mzseek.evidence.fitted import score_of
from mzseek.evidence.fitting.crossfit import Groups, Taught
from mzseek.evidence.fitting.joined import Joined, joined_from
from mzseek.evidence.fitting.swapped import swapped
from mzseek.evidence.known import Blocks
from mzseek.evidence.lists import Lists
from mzseek.evidence.ranker import Ranker
from mzseek.metrics import hit_rate
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import Ragged, gather, pointers, spans
from mzseek.runs.predictions import ListScores, Predictions
from mzseek.work.progress import Progress, silent

Parts = npt.NDArray[np.float32]
HITS = (1, 5, 20)
CROSSFITTED = ("train", "val")
_CANDIDATES = 80_000  # of all settings, whose pieces are held at a time


@dataclass(frozen=True, eq=False)
class Combined:
    """Some of the channels, and the rankers that combine them.

    Attributes
    ----------
    places : tuple of int
        Channels, by their places among those of the predictor.
    rankers : mapping of int or None to Ranker
        Fitted without each group; None: fitted on all.
    """

    places: tuple[int, ...]
    rankers: Mapping[int | None, Ranker]


@dataclass(frozen=True, eq=False)
class Predictor:
    """Channels and rankers, to be asked about folds.

    Attributes
    ----------
    prepared : Prepared
    taught : sequence of Taught
    groups : Groups
        Of the molecules of train and val.
    combined : sequence of Combined
        What predictions are wanted of.
    spectra : str
        ``own``, or ``swapped`` for the control.
    jobs : int or None
    """

    prepared: Prepared
    taught: Sequence[Taught]
    groups: Groups
    combined: Sequence[Combined]
    spectra: str = "own"
    jobs: int | None = None

    def fold(
        self,
        fold: str,
        progress: Progress = silent,
        queries: npt.NDArray[np.int64] | None = None,
    ) -> list[Predictions]:
        """Scores of all candidates of a fold, of all lists that models are measured on.

        One for each of ``combined``; channels are asked once.

        What is said of train and validation is cross-fitted, channels and ranker: both may have
        seen it. With ``queries``, only these spectra of the fold are predicted.
        """
        prepared = self.prepared
        queries = prepared.in_fold(fold) if queries is None else queries
        read = swapped(prepared, queries) if self.spectra == "swapped" else queries
        usable = {
            setting: _with_any(prepared, queries, setting) for setting in prepared.measured_settings
        }
        parts = self._parts(queries, read, usable, fold, progress)
        molecule = np.asarray(prepared.molecule[queries])
        return [
            Predictions(
                queries, molecule, None,
                {
                    setting: _scored(prepared, own, setting, of_one[setting])
                    for setting, own in usable.items()
                },
            )
            for of_one in parts
        ]  # fmt: skip

    def _parts(
        self,
        queries: npt.NDArray[np.int64],
        read: npt.NDArray[np.int64],
        usable: Mapping[str, npt.NDArray[np.int64]],
        fold: str,
        progress: Progress,
    ) -> list[dict[str, Parts]]:
        """What channels add to the scores of candidates, some molecules at a time.

        For each of ``combined``, by setting.
        """
        sizes = {setting: _sizes(self.prepared, own, setting) for setting, own in usable.items()}
        ends = {setting: pointers(own) for setting, own in sizes.items()}
        found = [
            {
                setting: np.zeros((int(own[-1]), len(each.places)), np.float32)
                for setting, own in ends.items()
            }
            for each in self.combined
        ]
        load = np.zeros(len(queries), np.int64)
        for setting, own in usable.items():
            load[np.isin(queries, own)] += sizes[setting]
        kept = np.flatnonzero(load)
        done = 0
        for batch in _by_molecule(self.prepared.molecule[queries[kept]], load[kept]):
            own = kept[batch]
            spectra = spectra_from(self.prepared, read[own])
            joined = joined_from(self.prepared, queries[own], list(usable), spectra, self.jobs)
            blocks = self.prepared.blocks[self.prepared.molecule[queries[own]]]
            features = self._features(joined.lists, blocks, fold)
            for setting, wanted in usable.items():
                here = np.flatnonzero(np.isin(queries[own], wanted))
                at = np.searchsorted(wanted, queries[own][here])
                rows = spans(ends[setting][at], ends[setting][at + 1])[1]
                for each, parts in zip(self.combined, found, strict=True):
                    said = [features[place] for place in each.places]
                    parts[setting][rows] = self._said(
                        each.rankers, joined, setting, here, said, blocks, fold
                    )
            done += len(own)
            progress(f"lists of {fold}", done, len(kept))
        return found

    def _features(self, lists: Lists, blocks: Blocks, fold: str) -> list[Features]:
        read_once([each.channel for each in self.taught], lists.molecules)
        if fold not in CROSSFITTED:
            return [each.channel.features(each.whole, lists) for each in self.taught]
        return [each.features(lists, blocks, to_fit=False) for each in self.taught]

    def _said(
        self,
        rankers: Mapping[int | None, Ranker],
        joined: Joined,
        setting: str,
        spectra: npt.NDArray[np.int64],
        features: Sequence[Features],
        blocks: Blocks,
        fold: str,
    ) -> Parts:
        """Parts of the candidates that some spectra have in a setting."""
        rows, counts = joined.rows(setting, spectra)
        modes, lists = joined.lists.modes[spectra], Ragged(counts)
        if fold not in CROSSFITTED:
            own = [values[rows] for values in features]
            return rankers[None].parts(own, modes, counts)
        group = self.groups.group[self.groups.places(blocks[spectra])]
        found = np.zeros((lists.total, len(features)), np.float32)
        for each in np.unique(group).tolist():
            of_group = lists.spread(group == each)
            own = [values[rows[of_group]] for values in features]
            found[of_group] = rankers[each].parts(own, modes[group == each], counts[group == each])
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
