"""Fit channels by cross-fitting and the ranker on top, and predict."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError, RunError
from mzseek.core.ragged import Ragged, gather, pointers, ranges
from mzseek.core.registry import FOLDS, IDENTITIES, check_name, check_ranges, option
from mzseek.datasets.build import assign_folds, join_clusters, structure_clusters
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.channel import (
    FOLDER,
    Channel,
    ChannelState,
    Features,
    read_once,
    save_states,
)
from mzseek.evidence.fitted import Fitted, score_of
from mzseek.evidence.queries import (
    Blocks,
    Ints,
    LabelledQueries,
    Lists,
    TrainingSet,
    chance,
    few_of_each,
    lessons_from,
    molecules_from,
    questions_from,
    some_molecules,
    spectra_from,
    with_lists,
)
from mzseek.evidence.ranker import Ranker, fit_ranker
from mzseek.io import StrPath, atomic_directory, sole_writer
from mzseek.metrics import hit_rate
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.runs.predictions import CROSSFITTED_TRAIN, ListScores, Predictions, label_of
from mzseek.runs.run import Description, Run
from mzseek.spectra import Spectrum

ALIKE = 0.6


@dataclass(frozen=True, eq=False)
class Groups:
    """Known molecules by cluster and group.

    Attributes
    ----------
    blocks : bytes array, rising
        First InChIKey blocks, each once.
    cluster, group : int64 arrays
        Of each.
    """

    blocks: Blocks
    cluster: Ints
    group: Ints

    @classmethod
    def of(cls, blocks: Blocks, rows: csr_array, number: int, alike: float = ALIKE) -> "Groups":
        """Deal molecules into groups, whole clusters at a time.

        Parameters
        ----------
        blocks : bytes array, shape (molecules,)
            May repeat: molecules of one block are in one cluster.
        rows : CSR of 0/1, shape (molecules, bits)
        number : int
            Groups to make.
        alike : float
            Tanimoto similarity from which on two molecules are in one cluster.
        """
        order = np.argsort(blocks, kind="stable")  # no order of molecules shows
        distinct, skeleton = np.unique(blocks[order], return_inverse=True)
        clusters = join_clusters(structure_clusters(rows[order], alike), skeleton)
        _, first = np.unique(skeleton, return_index=True)
        own = clusters[first]
        dealt = assign_folds(own, {str(each): 1 / number for each in range(number)})
        return cls(distinct, own, np.array(dealt, np.int64))

    def __len__(self) -> int:
        return len(self.blocks)

    def places(self, blocks: Blocks) -> Ints:
        """Places of molecules, which must all be known."""
        found = np.searchsorted(self.blocks, blocks)
        found = np.minimum(found, max(len(self) - 1, 0))
        if len(blocks) and (not len(self) or (self.blocks[found] != blocks).any()):
            raise EvidenceError("a molecule is in no group, expected one of those that were dealt")
        return np.asarray(found, np.int64)

    def seen(self, learned: ChannelState, blocks: Blocks) -> npt.NDArray[np.bool_]:
        """Whether what was learned is about each of the molecules, or about one of its cluster."""
        about = self.cluster[np.isin(self.blocks, learned.blocks)]
        return np.isin(blocks, learned.blocks) | np.isin(self.cluster[self.places(blocks)], about)


def check_unseen(channel: Channel, learned: ChannelState, blocks: Blocks, groups: Groups) -> None:
    """Refuse features of molecules that a channel learned from, or from their like.

    Raises
    ------
    EvidenceError
        One of them was seen.
    """
    seen = groups.seen(learned, blocks)
    if seen.any():
        molecules = len(np.unique(blocks[seen]))
        raise EvidenceError(
            f"{channel.label} has learned from {molecules:,} of the molecules that the ranker "
            "would be fitted on, or from their like; fit on molecules that it has not seen "
            "(--fit-on val)"
        )


class CrossFittedChannel:
    """A channel with what it learned: from all lessons, and without each group where needed.

    Parameters
    ----------
    channel : Channel
    lessons : TrainingSet
    groups : Groups
        Of all molecules that features will be fitted on.
    progress : callable of (stage, done, total)

    Attributes
    ----------
    whole : ChannelState
        What new spectra are asked of.
    """

    def __init__(
        self, channel: Channel, lessons: TrainingSet, groups: Groups, progress: Progress = silent
    ) -> None:
        self.channel, self._lessons, self._groups = channel, lessons, groups
        self._progress = progress
        self.whole = channel.learn(lessons, progress)
        self._without: dict[int, ChannelState] = {}

    def features(self, lists: Lists, blocks: Blocks, *, to_fit: bool = True) -> Features:
        """Features of lists whose answers may have been among the lessons, cross-fitted.

        Parameters
        ----------
        lists : Lists
        blocks : bytes array, shape (spectra,)
            Of the true molecules.
        to_fit : bool
            Something will be fitted on them: none may come from what was learned from a molecule's
            like. Without it, a channel that has learned elsewhere may say what it says.

        Raises
        ------
        EvidenceError
            The channel has learned from one of them, and cannot do without.
        """
        found = np.zeros((lists.ragged.total, len(self.channel.feature_names)), np.float32)
        group = self._groups.group[self._groups.places(blocks)]
        # Where nothing alike was learned from, what is said is what is said of new spectra.
        needed = self._groups.seen(self.whole, blocks) & self.channel.learns
        for each in (None, *np.unique(group[needed]).tolist()):
            own = np.flatnonzero(~needed if each is None else needed & (group == each))
            if not len(own):
                continue
            learned = self.whole if each is None else self._state(each)
            if to_fit or self.channel.learns:
                check_unseen(self.channel, learned, blocks[own], self._groups)
            found[np.isin(lists.ragged.list_index, own)] = self.channel.features(
                learned, lists.only(own)
            )
        return found

    def _state(self, group: int) -> ChannelState:
        """What is learned without a group."""
        if group not in self._without:
            lessons = self._lessons.without(self._groups.blocks[self._groups.group == group])
            if not len(lessons.spectra):
                raise EvidenceError(
                    f"{self.channel.label} would have nothing to learn from: all molecules of the "
                    "train fold are alike; fit on molecules that it has not seen (--fit-on val)"
                )
            self._without[group] = self.channel.learn(lessons, self._progress)
        return self._without[group]


def fit_rankers(
    taught: Sequence[CrossFittedChannel],
    features: Sequence[Features],
    asked: LabelledQueries,
    groups: Groups,
    number: int,
    *,
    l2: float = 1e-3,
    by_molecule: bool = True,
) -> dict[int | None, Ranker]:
    """A ranker fitted on all questions, under None, and one without each group.

    Parameters
    ----------
    taught : sequence of CrossFittedChannel
        The channels.
    features : sequence of float32 arrays, shapes (rows, features of the channel)
        Of each, from `CrossFittedChannel.features`: states were not fitted to the molecules.
    asked : LabelledQueries
    groups : Groups
        Of all molecules that are asked about.
    number : int
        How many groups they were dealt into.
    l2, by_molecule
        As in `mzseek.evidence.ranker.fit_ranker`.

    Raises
    ------
    EvidenceError
        All molecules are of one group.
    """
    labels = [each.channel.label for each in taught]
    names = [each.channel.feature_names for each in taught]
    group = groups.group[groups.places(asked.blocks)]
    rankers: dict[int | None, Ranker] = {}
    for each in (None, *range(number)):
        own = np.flatnonzero(group != each) if each is not None else np.arange(len(asked))
        if not len(own):
            raise EvidenceError(
                "all molecules to fit on are alike: none are left to cross-fit with; fit on more"
            )
        rows = asked.rows(own)
        rankers[each] = fit_ranker(
            labels, names, [values[rows] for values in features], asked.only(own),
            l2=l2, by_molecule=by_molecule,
        )  # fmt: skip
    return rankers


@dataclass(frozen=True, eq=False)
class Joined:
    """Spectra with all candidates that any of their lists names, each once.

    What a channel says of a candidate depends on no other candidate, so that the rows of a
    setting's lists can be picked from those of all.

    Attributes
    ----------
    lists : Lists
    ends : mapping of str to int64 array, shape (lists + 1,)
        For each setting, where the candidates of each list begin …
    places : mapping of str to int64 array
        … and the place of each in the joined list.
    """

    lists: Lists
    ends: Mapping[str, Ints]
    places: Mapping[str, Ints]

    def rows(self, setting: str, spectra: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Rows of the candidates that some spectra have in a setting, and how many each has."""
        numbers = self.lists.list_of[spectra]
        ends, (places,) = gather(self.ends[setting], (self.places[setting],), numbers)
        counts = np.diff(ends)
        return np.repeat(self.lists.ragged.starts[spectra], counts) + places, counts


def joined_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    settings: Sequence[str],
    spectra: list[Spectrum],
    jobs: int | None = None,
) -> Joined:
    """Spectra of a prepared folder with their lists of some settings.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
    settings : sequence of str
        A spectrum without a list of one of them has no candidates there.
    spectra : list of Spectrum
        What is read of each query.
    jobs : int, optional
        Processes that read molecules.
    """
    asked, list_of = np.unique(prepared.molecule[queries], return_inverse=True)
    own = {setting: _candidates(prepared, setting, asked) for setting in settings}
    all_of = [np.unique(np.concatenate(each)) for each in zip(*own.values(), strict=True)]
    places = {
        setting: [np.searchsorted(all_of[n], each) for n, each in enumerate(lists)]
        for setting, lists in own.items()
    }
    table, members = np.unique(np.concatenate(all_of), return_inverse=True)
    return Joined(
        Lists(
            spectra, np.asarray(list_of, np.int64), pointers([len(each) for each in all_of]),
            members.astype(np.int64), molecules_from(prepared, table, jobs),
        ),
        {setting: pointers([len(each) for each in lists]) for setting, lists in own.items()},
        {setting: np.concatenate(each).astype(np.int64) for setting, each in places.items()},
    )  # fmt: skip


def _candidates(
    prepared: Prepared, setting: str, molecules: npt.NDArray[np.integer]
) -> list[npt.NDArray[np.int32]]:
    """Candidates of each molecule; none where it has no list."""
    lists = prepared.candidates(setting)
    nothing = np.empty(0, np.int32)
    return [
        np.asarray(lists.of_molecule(int(each))) if lists.list_of[each] >= 0 else nothing
        for each in molecules
    ]


_CLUSTERS = "morgan2"  # as data sets are split by


def groups_from(prepared: Prepared, molecules: npt.NDArray[np.integer], number: int) -> Groups:
    """Measured molecules by cluster of structure, dealt into groups."""
    rows = fingerprints([prepared.smiles[int(each)] for each in molecules], _CLUSTERS)
    return Groups.of(prepared.inchikey14[molecules], rows, number)


def swapped(prepared: Prepared, queries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each spectrum another: of the same adduct, nearest in mass, of a molecule not alike.

    What still points to the truth then is no evidence of the spectrum, but of what candidates
    look like. Molecules of one structure cluster would share much of their spectra, and are not
    taken for one another.

    Raises
    ------
    EvidenceError
        A spectrum has no other of its adduct.
    """
    molecules = np.unique(prepared.molecule[queries])
    groups = groups_from(prepared, molecules, 1)
    cluster = groups.cluster[groups.places(prepared.inchikey14[prepared.molecule[queries]])]
    adducts = np.array([prepared.adduct(int(each)) or "" for each in queries])
    names = [prepared.identifiers[int(each)].encode() for each in queries]
    mz = prepared.precursor_mz[queries]
    found = np.empty(len(queries), np.int64)
    for adduct in np.unique(adducts):
        own = np.flatnonzero(adducts == adduct)
        for each in own:
            other = own[cluster[own] != cluster[each]]
            if not len(other):
                raise EvidenceError(
                    f"{names[each].decode()}: there is no spectrum of {adduct or 'its adduct'} of "
                    "another molecule to take in its place"
                )
            # Spectra of one molecule are as near as each other: the lot decides, not the order.
            distance = np.abs(mz[other] - mz[each]).round(3)
            nearest = other[distance == distance.min()]
            found[each] = min(nearest, key=lambda one: chance(names[each], names[one]))
    return queries[found]


Parts = npt.NDArray[np.float32]
HITS = (1, 5, 20)
CROSSFITTED = ("train", "val")
_CANDIDATES = 80_000  # of all settings, whose fragments are held at a time


@dataclass(frozen=True, eq=False)
class Predictor:
    """Channels and rankers, to be asked about folds.

    Attributes
    ----------
    prepared : Prepared
    taught : sequence of CrossFittedChannel
    groups : Groups
        Of the molecules of train and val.
    rankers : mapping of int or None to Ranker
        Fitted without each group; None: fitted on all.
    spectra : str
        ``own``, or ``swapped`` for the control.
    jobs : int or None
    """

    prepared: Prepared
    taught: Sequence[CrossFittedChannel]
    groups: Groups
    rankers: Mapping[int | None, Ranker]
    spectra: str = "own"
    jobs: int | None = None

    def fold(
        self,
        fold: str,
        progress: Progress = silent,
        queries: npt.NDArray[np.int64] | None = None,
    ) -> Predictions:
        """Scores of all candidates of a fold, of all lists that models are measured on.

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
        lists = {
            setting: _scored(prepared, own, setting, parts[setting])
            for setting, own in usable.items()
        }
        return Predictions(queries, molecule, None, lists)

    def _parts(
        self,
        queries: npt.NDArray[np.int64],
        read: npt.NDArray[np.int64],
        usable: Mapping[str, npt.NDArray[np.int64]],
        fold: str,
        progress: Progress,
    ) -> dict[str, Parts]:
        """What channels add to the scores of candidates, by setting; some molecules at a time."""
        sizes = {setting: _sizes(self.prepared, own, setting) for setting, own in usable.items()}
        ends = {setting: pointers(own) for setting, own in sizes.items()}
        found = {
            setting: np.zeros((int(own[-1]), len(self.taught)), np.float32)
            for setting, own in ends.items()
        }
        load = np.zeros(len(queries), np.int64)
        for setting, own in usable.items():
            load[np.isin(queries, own)] += sizes[setting]
        kept = np.flatnonzero(load)
        done = 0
        for batch in _by_molecule(self.prepared.molecule[queries[kept]], load[kept]):
            own = kept[batch]
            spectra = spectra_from(self.prepared, read[own])
            joined = joined_from(self.prepared, queries[own], list(usable), spectra, self.jobs)
            blocks = self.prepared.inchikey14[self.prepared.molecule[queries[own]]]
            features = self._features(joined.lists, blocks, fold)
            for setting, wanted in usable.items():
                here = np.flatnonzero(np.isin(queries[own], wanted))
                at = np.searchsorted(wanted, queries[own][here])
                rows = ranges(ends[setting][at], ends[setting][at + 1])[1]
                found[setting][rows] = self._said(joined, setting, here, features, blocks, fold)
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
            return self.rankers[None].parts(own, modes, counts)
        group = self.groups.group[self.groups.places(blocks[spectra])]
        found = np.zeros((lists.total, len(features)), np.float32)
        for each in np.unique(group).tolist():
            of_group = lists.repeat_per_list(group == each)
            own = [values[rows[of_group]] for values in features]
            ranker, here = self.rankers[each], group == each
            found[of_group] = ranker.parts(own, modes[here], counts[here])
        return found


def validation_means(said: Predictions) -> dict[str, float]:
    """Hit rates of a validation, by the names that runs have for them."""
    means = {}
    for setting, lists in said.lists.items():
        labels = (np.asarray(lists.identity) & IDENTITY_BITS["fingerprint"]) > 0
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
        np.concatenate([with_lists(prepared, queries, setting, sense) for sense in IDENTITY_BITS])
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


LEARNED_ON, PREDICTED = "train", ("val", "test")
SPECTRA = ("own", "swapped")
STEP = 0  # the only one that a fitted run has


@dataclass(frozen=True)
class FitOptions:
    """How a ranker is fitted."""

    candidates: str = "mass"
    fit_on: tuple[str, ...] | None = None
    identity: str = "fingerprint"
    spectra: str = option("own", "whose spectra are predicted from", among=SPECTRA)
    groups: int = option(5, "groups of clusters to cross-fit by", least=2, most=100)
    spectra_each: int = option(5, "spectra of a molecule to fit on", least=1)
    most_candidates: int = option(32, "candidates of a list to fit on", least=2)
    l2: float = option(1e-3, "penalty on the squares of weights", least=0)
    by_molecule: bool = option(True, "every molecule counts once")
    calibrated_on: int = option(500, "molecules of train to calibrate with, beside val", least=0)
    seed: int = 0

    def check(self) -> None:
        """Refuse what is unknown or out of range."""
        check_ranges(self, EvidenceError)
        check_name(IDENTITIES, self.identity, "identity", EvidenceError)
        for fold in self.fit_on or ():
            check_name(FOLDS[:2], fold, "--fit-on", EvidenceError)


def fit(
    prepared: Prepared,
    channels: Sequence[Channel],
    out: StrPath,
    options: FitOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Run:
    """Let channels learn from the train fold, and fit a ranker that combines them.

    The ranker is fitted on train and val, every channel's features cross-fitted by structure
    cluster. With a channel that learned elsewhere (a trained run) it is fitted on val alone. What
    is said of val comes from rankers that were fitted without each molecule's group.

    Parameters
    ----------
    prepared : Prepared
    channels : sequence of Channel
    out : Path
        Run folder to make.
    options : FitOptions, optional
    jobs : int, optional
        Processes that find fragments of molecules; all cores by default.
    progress : callable of (stage, done, total)
    say : callable of str
        Gets a line for each step.

    Returns
    -------
    Run

    Raises
    ------
    EvidenceError, RunError, CacheError
        Channels or options that do not fit, an empty fold, or features that would be fitted on
        what a channel has learned from.
    BusyError, WriteError
        Another process is fitting this run, or the folder cannot be written.
    """
    options, out = options or FitOptions(), Path(out)
    options.check()
    _check_labels([channel.label for channel in channels])
    started = time.perf_counter()
    with sole_writer(out, "fitting evidence"):
        check_fit(prepared, options, out)
        prepared.verify()
        with atomic_directory(out) as partial:
            taught, chosen, groups = _learned(prepared, channels, options, jobs, progress, say)
            rankers = _rankers(taught, chosen, groups, options)
            run = _written(partial, rankers[None], taught, prepared, options)
            predictor = Predictor(prepared, taught, groups, rankers, options.spectra, jobs)
            _predict(run, prepared, predictor, options, progress)
            run.metadata |= {
                "status": "finished", "steps": STEP,
                "seconds": round(time.perf_counter() - started, 1),
            }  # fmt: skip
            run.save()
    return Run.open(out)


def _check_labels(labels: Sequence[str]) -> None:
    """Refuse channels that no table could tell apart."""
    if not labels:
        raise EvidenceError("no channels, expected one or more")
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise EvidenceError(f"two channels are called {twice}")


def check_fit(prepared: Prepared, options: FitOptions, out: Path) -> None:
    """Refuse what could not be fitted, before anything is made.

    Raises
    ------
    RunError, CacheError
        Something is there already, a fold is empty, or there are no such lists.
    """
    if out.is_file():
        raise RunError(f"{out}: is a file, expected a folder to make")
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out}: exists already; name another --out")
    for fold in FOLDS[:2]:
        if not len(prepared.in_fold(fold)):
            raise RunError(f"{prepared.folder}: has no {fold} spectra, expected some of each fold")
    prepared.candidates(options.candidates)
    if not prepared.measured_settings:
        raise RunError(f"{prepared.folder}: has no candidate lists to be measured on")


def _learned(
    prepared: Prepared,
    channels: Sequence[Channel],
    options: FitOptions,
    jobs: int | None,
    progress: Progress,
    say: Log,
) -> tuple[list[CrossFittedChannel], LabelledQueries, Groups]:
    """Channels that have learned, the questions to fit a ranker on, and molecules by group."""
    fit_on = _folds(channels, options)
    say(f"The ranker is fitted on {' and '.join(fit_on)}.")
    asked, fold = _asked(prepared, options, jobs)
    read_once(channels, asked.lists.molecules, progress)
    known = np.concatenate([prepared.in_fold(each) for each in FOLDS[:2]])
    groups = groups_from(prepared, np.unique(prepared.molecule[known]), options.groups)
    own = np.flatnonzero(fold == FOLDS.index(LEARNED_ON))
    lessons = lessons_from(prepared, prepared.in_fold(LEARNED_ON), asked.only(own))
    taught = [CrossFittedChannel(channel, lessons, groups, progress) for channel in channels]
    wanted = np.isin(fold, [FOLDS.index(each) for each in fit_on])
    chosen = asked.only(np.flatnonzero(wanted))
    # Where the user has chosen, what was seen is refused and not left out.
    return taught, chosen if options.fit_on else _unseen(chosen, taught, groups, say), groups


def _folds(channels: Sequence[Channel], options: FitOptions) -> tuple[str, ...]:
    """Folds that the ranker is fitted on: val alone where a channel has learned elsewhere."""
    if options.fit_on:
        return tuple(dict.fromkeys(options.fit_on))
    return FOLDS[:2] if all(channel.learns for channel in channels) else FOLDS[1:2]


def _asked(
    prepared: Prepared, options: FitOptions, jobs: int | None
) -> tuple[LabelledQueries, npt.NDArray[np.int8]]:
    """Some spectra of each molecule of train and val, with some of their candidates, and folds."""
    queries = []
    for fold in FOLDS[:2]:
        usable = with_lists(prepared, prepared.in_fold(fold), options.candidates, options.identity)
        if not len(usable):
            raise RunError(
                f"{prepared.folder}: no {fold} spectrum has a {options.candidates} list with its "
                "molecule in it"
            )
        queries.append(few_of_each(prepared, usable, options.spectra_each))
    chosen = np.concatenate(queries)
    asked = questions_from(
        prepared, chosen, options.candidates,
        identity=options.identity, most=options.most_candidates, jobs=jobs,
    )  # fmt: skip
    return asked, prepared.fold[chosen]


def _unseen(
    asked: LabelledQueries, taught: Sequence[CrossFittedChannel], groups: Groups, say: Log
) -> LabelledQueries:
    """Questions about molecules that nothing alike was learned from elsewhere; the rest is told."""
    for each in taught:
        seen = groups.seen(each.whole, asked.blocks)
        if each.channel.learns or not seen.any():
            continue
        say(
            f"{len(np.unique(asked.blocks[seen])):,} of {len(np.unique(asked.blocks)):,} molecules "
            f"are like those that {each.channel.label} was trained on: not fitted on"
        )
        asked = asked.only(np.flatnonzero(~seen))
    if not len(asked):
        raise EvidenceError("no molecules are left to fit on that the channels have not seen")
    return asked


def _rankers(
    taught: Sequence[CrossFittedChannel],
    asked: LabelledQueries,
    groups: Groups,
    options: FitOptions,
) -> dict[int | None, Ranker]:
    """Fit a ranker on all questions, and one without each group.

    Raises
    ------
    EvidenceError
        A channel has learned from a molecule that is asked about, or from its like.
    """
    features = [each.features(asked.lists, asked.blocks) for each in taught]
    return fit_rankers(
        taught, features, asked, groups, options.groups,
        l2=options.l2, by_molecule=options.by_molecule,
    )  # fmt: skip


def _written(
    partial: Path,
    ranker: Ranker,
    taught: Sequence[CrossFittedChannel],
    prepared: Prepared,
    options: FitOptions,
) -> Run:
    """The run folder, without predictions."""
    fitted = Fitted([each.channel for each in taught], [each.whole for each in taught], ranker)
    described = {"model": fitted.describe(), "options": asdict(options)}
    run = Run.create(partial, Description.from_dict(described), prepared)
    save_states(run.folder / FOLDER, fitted.channels, fitted.learned)
    return run


def _predict(
    run: Run,
    prepared: Prepared,
    predictor: Predictor,
    options: FitOptions,
    progress: Progress,
) -> None:
    """Predictions of validation, which say how good it is, of test, and of some of train."""
    _predict_taught(run, prepared, predictor, options, progress)
    for fold in PREDICTED:
        if not len(prepared.in_fold(fold)):
            continue
        said = predictor.fold(fold, progress)
        said.save(run.predictions(STEP, fold), label_of(run, STEP, fold))
        if fold == PREDICTED[0]:
            means = validation_means(said)
            run.metadata["best"] = {
                name: {"step": STEP, "value": value} for name, value in means.items()
            }
            run.write_history([{"step": STEP, "epoch": 0.0, **means}])


def _predict_taught(
    run: Run,
    prepared: Prepared,
    predictor: Predictor,
    options: FitOptions,
    progress: Progress,
) -> None:
    """Cross-fitted predictions of some molecules of the train fold, to calibrate with.

    A channel that has learned elsewhere has seen them, and cannot say what it would say of new
    ones: then there are none.
    """
    if not options.calibrated_on or not all(each.channel.learns for each in predictor.taught):
        return
    fold = prepared.in_fold(LEARNED_ON)
    some = some_molecules(prepared, fold, options.calibrated_on)
    queries = few_of_each(prepared, some, options.spectra_each)
    said = predictor.fold(LEARNED_ON, progress, queries)
    said.save(run.predictions(STEP, CROSSFITTED_TRAIN), label_of(run, STEP, CROSSFITTED_TRAIN))
