"""Cross-fit channels, fit the ranker, and write a run with its predictions."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError, RunError
from mzseek.core.ragged import Ragged, gather, gather_indices, pointers
from mzseek.core.registry import FOLDS, IDENTITIES
from mzseek.datasets.build import assign_folds, join_clusters, structure_clusters
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.evidence import check_labels
from mzseek.evidence.model import (
    FOLDER,
    Channel,
    ChannelState,
    EvidenceModel,
    Features,
    precompute,
    save_states,
    spread_out,
    total_scores,
)
from mzseek.evidence.options import FitOptions as FitOptions  # also for those who fit
from mzseek.evidence.prepared_queries import (
    labelled_queries,
    merged_queries,
    queries_with_truth,
    sample_molecules,
    sample_spectra,
    spectra_from,
    training_set_from,
)
from mzseek.evidence.queries import Flags, Ints, Keys, Queries, TrainingSet
from mzseek.evidence.ranker import Ranker, fit_ranker
from mzseek.io import StrPath, atomic_directory, sole_writer, stable_hash
from mzseek.metrics import hit_rate
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.runs.predictions import CROSSFITTED_TRAIN, ListScores, Predictions, label_of
from mzseek.runs.run import Description, Run
from mzseek.spectra.augmentation import Contaminants, Corruption

MIN_TANIMOTO = 0.6  # from which on two molecules are in one cluster
FITTED_ON, PREDICTED = "train", ("val", "test")  # folds of channels, and of predictions
STEP = 0  # the only one that a fitted run has
HITS = (1, 5, 20)
CORRUPTION_PROBABILITY = 0.5  # of each kind of corruption, in an augmented spectrum
_MAX_CANDIDATES = 80_000  # of all settings, whose fragments are held at a time


@dataclass(frozen=True, eq=False)
class StructureGroups:
    """Known molecules by structure cluster and cross-fitting group."""

    inchikey14: Keys  # first InChIKey blocks, each once, rising
    cluster: Ints  # of each molecule
    group: Ints  # of each molecule, made of whole clusters

    @classmethod
    def of(
        cls, inchikey14: Keys, rows: csr_array, groups: int, tanimoto: float = MIN_TANIMOTO
    ) -> "StructureGroups":
        """Distribute molecules over groups, whole clusters at a time, whatever their order.

        ``rows`` are their 0/1 fingerprints. Molecules of one block, and those of at least this
        Tanimoto similarity, are in one cluster.
        """
        order = np.argsort(inchikey14, kind="stable")
        distinct, skeleton = np.unique(inchikey14[order], return_inverse=True)
        clusters = join_clusters(structure_clusters(rows[order], tanimoto), skeleton)
        cluster = clusters[np.unique(skeleton, return_index=True)[1]]
        group = assign_folds(cluster, {str(number): 1 / groups for number in range(groups)})
        return cls(distinct, cluster, np.array(group, np.int64))

    def __len__(self) -> int:
        return len(self.inchikey14)

    def indices(self, inchikey14: Keys) -> Ints:
        """Indices of molecules, which must all be known."""
        index = np.searchsorted(self.inchikey14, inchikey14)
        index = np.minimum(index, max(len(self) - 1, 0))
        unknown = not len(self) or (self.inchikey14[index] != inchikey14).any()
        if len(inchikey14) and unknown:
            raise EvidenceError("a molecule is in no group, expected one of those that were dealt")
        return np.asarray(index, np.int64)

    def groups_of(self, inchikey14: Keys) -> Ints:
        """The group of each molecule."""
        return self.group[self.indices(inchikey14)]

    def seen(self, state: ChannelState, inchikey14: Keys) -> Flags:
        """Whether a state was fitted on each of the molecules, or on one of its cluster."""
        clusters = self.cluster[np.isin(self.inchikey14, state.inchikey14)]
        same_cluster = np.isin(self.cluster[self.indices(inchikey14)], clusters)
        return np.isin(inchikey14, state.inchikey14) | same_cluster


def structure_groups_from(
    prepared: Prepared, molecules: npt.NDArray[np.integer], groups: int
) -> StructureGroups:
    """Group molecules of a prepared folder by structure, as data sets are split."""
    rows = fingerprints([prepared.smiles[int(number)] for number in molecules], "morgan2")
    return StructureGroups.of(prepared.inchikey14[molecules], rows, groups)


@dataclass(eq=False)
class CrossFittedChannel:
    """A channel fitted on a training set, and without each group where that is needed."""

    channel: Channel
    training_set: TrainingSet
    groups: StructureGroups  # of all molecules that a ranker will be fitted on
    progress: Progress = silent
    state: ChannelState = field(init=False)  # fitted on the whole training set, for new spectra
    _without: dict[int, ChannelState] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.state = self.channel.fit(self.training_set, self.progress)

    def features(self, queries: Queries, *, to_fit: bool = True) -> Features:
        """Cross-fitted features of queries whose molecules may be in the training set.

        With `to_fit` something will be fitted on the features: none may come from a state fitted
        on a near-duplicate. Without it, a pretrained channel is applied as it is. Raises
        `EvidenceError` where the channel was fitted on one of the molecules, and cannot leave it
        out.
        """
        values = np.zeros((queries.ragged.total, len(self.channel.feature_names)), np.float32)
        group = self.groups.groups_of(queries.inchikey14)
        # Molecules unlike all of the training set are scored as new spectra are.
        seen = self.groups.seen(self.state, queries.inchikey14) & (not self.channel.pretrained)
        for number in (None, *np.unique(group[seen]).tolist()):
            inside = np.flatnonzero(~seen if number is None else seen & (group == number))
            if not len(inside):
                continue
            state = self.state if number is None else self._state_without(number)
            if to_fit or not self.channel.pretrained:
                self.check_unseen(state, queries.inchikey14[inside])
            part = queries.only(inside)
            values[queries.rows(inside)] = self.channel.features(state, part)
        return values

    def check_unseen(self, state: ChannelState, inchikey14: Keys) -> None:
        """Refuse molecules that a state was fitted on, or their near-duplicates."""
        seen = self.groups.seen(state, inchikey14)
        if seen.any():
            molecules = len(np.unique(inchikey14[seen]))
            raise EvidenceError(
                f"{self.channel.label} was trained on {molecules:,} of the molecules that the "
                "ranker would be fitted on, or on near-duplicates of them; fit on molecules that "
                "it has not seen (--fit-on val)"
            )

    def _state_without(self, group: int) -> ChannelState:
        if group not in self._without:
            group_keys = self.groups.inchikey14[self.groups.group == group]
            rest = self.training_set.without(group_keys)
            if not len(rest.spectra):
                raise EvidenceError(
                    f"{self.channel.label} would have nothing to learn from: all molecules of the "
                    "train fold are alike; fit on molecules that it has not seen (--fit-on val)"
                )
            self._without[group] = self.channel.fit(rest, self.progress)
        return self._without[group]


def fit_rankers(
    channels: Sequence[CrossFittedChannel],
    queries: Queries,
    groups: StructureGroups,
    number: int,
    *,
    l2: float = 1e-3,
    by_molecule: bool = True,
) -> dict[int | None, Ranker]:
    """Fit a ranker on all queries, under None, and one without each of ``number`` groups.

    Raises
    ------
    EvidenceError
        A channel was trained on a molecule of the queries, or all are of one group.
    """
    features = [channel.features(queries) for channel in channels]
    labels = [channel.channel.label for channel in channels]
    names = [channel.channel.feature_names for channel in channels]
    group = groups.groups_of(queries.inchikey14)
    rankers: dict[int | None, Ranker] = {}
    for left_out in (None, *range(number)):
        inside = np.arange(len(queries)) if left_out is None else np.flatnonzero(group != left_out)
        if not len(inside):
            raise EvidenceError(
                "all molecules to fit on are alike: none are left to cross-fit with; fit on more"
            )
        rows = queries.rows(inside)
        rankers[left_out] = fit_ranker(
            labels, names, [values[rows] for values in features], queries.only(inside),
            l2=l2, by_molecule=by_molecule,
            reranking=sum(channel.channel.reranks for channel in channels),
        )  # fmt: skip
    return rankers


def swapped(prepared: Prepared, spectra: Ints) -> Ints:
    """For each spectrum another: of the same adduct, nearest in mass, of another cluster.

    What still points to the truth then comes from the candidates, and not from the spectrum.
    Molecules of one structure cluster share much of their spectra, and are not swapped.

    Raises
    ------
    EvidenceError
        A spectrum has no other of its adduct.
    """
    groups = structure_groups_from(prepared, np.unique(prepared.molecule[spectra]), 1)
    cluster = groups.cluster[groups.indices(prepared.inchikey14[prepared.molecule[spectra]])]
    adducts = np.array([prepared.adduct(int(number)) or "" for number in spectra])
    names = [prepared.identifiers[int(number)].encode() for number in spectra]
    mz = prepared.precursor_mz[spectra]
    nearest_other = np.empty(len(spectra), np.int64)
    for adduct in np.unique(adducts):
        inside = np.flatnonzero(adducts == adduct)
        for spectrum in inside:
            others = inside[cluster[inside] != cluster[spectrum]]
            if not len(others):
                raise EvidenceError(
                    f"{names[spectrum].decode()}: there is no spectrum of "
                    f"{adduct or 'its adduct'} of another molecule to take in its place"
                )
            # Spectra of one molecule are equally near: a hash decides, not the order.
            distance = np.abs(mz[others] - mz[spectrum]).round(3)
            nearest = others[distance == distance.min()]
            nearest_other[spectrum] = min(
                nearest, key=lambda other: stable_hash(names[spectrum], names[other])
            )
    return spectra[nearest_other]


@dataclass(frozen=True, eq=False)
class Predictor:
    """Cross-fitted channels and rankers, to predict folds with."""

    prepared: Prepared
    channels: Sequence[CrossFittedChannel]
    groups: StructureGroups  # of the molecules of train and val
    rankers: Mapping[int | None, Ranker]  # fitted without each group; None: fitted on all
    swap: bool = False  # read other spectra than those of the queries, as a control
    jobs: int | None = None

    def fold(
        self, fold: str, progress: Progress = silent, spectra: Ints | None = None
    ) -> Predictions:
        """Score all candidates of a fold, of all lists that models are measured on.

        Train and val are scored by cross-fitted channels and rankers. With ``spectra``, only these
        spectra of the fold are predicted.
        """
        prepared = self.prepared
        spectra = prepared.in_fold(fold) if spectra is None else spectra
        read = swapped(prepared, spectra) if self.swap else spectra
        lists = {name: self._unscored(spectra, name) for name in prepared.measured_settings}
        parts = {
            name: np.zeros((len(unscored.candidates), len(self.channels)), np.float32)
            for name, unscored in lists.items()
        }
        load = np.zeros(len(spectra), np.int64)  # candidates of each spectrum
        for unscored in lists.values():
            load[np.isin(spectra, unscored.queries)] += unscored.counts
        usable = np.flatnonzero(load)
        done = 0
        for batch in _batches(prepared.molecule[spectra[usable]], load[usable]):
            here = usable[batch]
            queries, table = merged_queries(prepared, spectra[here], list(lists), self.jobs)
            if self.swap:
                queries = replace(queries, spectra=spectra_from(prepared, read[here]))
            features = self._features(queries, fold)
            for name, unscored in lists.items():
                inside = np.flatnonzero(np.isin(spectra[here], unscored.queries))
                at = np.searchsorted(unscored.queries, spectra[here][inside])
                rows = gather_indices(pointers(unscored.counts), at)[1]
                candidates = np.searchsorted(table, unscored.candidates[rows])
                merged = queries.find_rows(inside, unscored.counts[at], candidates)
                parts[name][rows] = self._contributions(
                    queries, inside, unscored.counts[at], features, merged, fold
                )
            done += len(here)
            progress(f"lists of {fold}", done, len(usable))
        scored = {
            name: replace(lists[name], scores=total_scores(parts[name]), parts=parts[name])
            for name in lists
        }
        return Predictions(spectra, np.asarray(prepared.molecule[spectra]), None, scored)

    def _unscored(self, spectra: Ints, setting: str) -> ListScores:
        """Lists of spectra that have the truth in any sense; their scores are still missing."""
        usable = np.unique(
            np.concatenate(
                [queries_with_truth(self.prepared, spectra, setting, name) for name in IDENTITIES]
            )
        )
        lists = self.prepared.candidates(setting)
        molecule = np.asarray(self.prepared.molecule[usable])
        numbers = np.asarray(lists.list_of)[molecule]
        ends, (candidates, identity) = gather(
            lists.indptr, (lists.molecules, lists.identity), numbers
        )
        counts = np.diff(ends).astype(np.int64)
        return ListScores(usable, molecule, counts, candidates, identity, np.empty(0, np.float32))

    def _features(self, queries: Queries, fold: str) -> list[Features]:
        """Features of the channels that score all candidates."""
        channels = [fitted for fitted in self.channels if not self._reranks(fitted)]
        precompute([fitted.channel for fitted in channels], queries.molecules)
        return [self._features_of(fitted, queries, fold) for fitted in channels]

    def _reranks(self, fitted: CrossFittedChannel) -> bool:
        first = self.rankers[None].first
        return first is not None and fitted.channel.label not in first.features

    def _features_of(self, fitted: CrossFittedChannel, queries: Queries, fold: str) -> Features:
        if fold in FOLDS[:2]:
            return fitted.features(queries, to_fit=False)
        return fitted.channel.features(fitted.state, queries)

    def _contributions(
        self,
        queries: Queries,
        spectra: Ints,
        counts: Ints,
        features: Sequence[Features],
        rows: Ints,
        fold: str,
    ) -> Features:
        """Contributions of channels to candidates (`rows` of the queries) of some spectra."""
        modes, lists = queries.modes[spectra], Ragged(counts)
        selected = [values[rows] for values in features]
        if fold in FOLDS[:2]:
            group = self.groups.groups_of(queries.inchikey14[spectra])
            parts = [(self.rankers[number], group == number) for number in np.unique(group)]
        else:
            parts = [(self.rankers[None], np.ones(len(spectra), np.bool_))]
        if len(selected) < len(self.channels):
            inside = np.zeros(queries.ragged.total, np.bool_)
            for ranker, of_part in parts:
                here = lists.repeat_per_list(of_part)
                inside[rows[here]] = ranker.shortlist(
                    [values[here] for values in selected], modes[of_part], counts[of_part]
                )
            short = queries.keep(inside)
            for fitted in filter(self._reranks, self.channels):
                columns = spread_out(self._features_of(fitted, short, fold), inside)
                selected.append(columns[rows])
        contributions = np.zeros((lists.total, len(selected)), np.float32)
        for ranker, of_part in parts:
            here = lists.repeat_per_list(of_part)
            contributions[here] = ranker.contributions(
                [values[here] for values in selected], modes[of_part], counts[of_part]
            )
        return contributions


def _batches(molecule: npt.NDArray[np.integer], sizes: Ints) -> list[Ints]:
    """Batches of spectra, all of a molecule together: they share a list."""
    order = np.argsort(molecule, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(molecule[order]) != 0]) if len(order) else order
    load = np.cumsum(sizes[order][first]) // _MAX_CANDIDATES
    borders = first[1:][np.diff(load) > 0]
    return [batch for batch in np.split(order, borders) if len(batch)]


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
    """Fit channels on the train fold, and a ranker that combines them.

    The ranker is fitted on train and val, every channel's features cross-fitted by structure
    cluster; with a pretrained channel (a trained run) on val alone. Val is predicted by rankers
    that were fitted without each molecule's group.

    Parameters
    ----------
    prepared : Prepared
    channels : sequence of Channel
    out : path
        Run folder to make.
    options : FitOptions, optional
    jobs : int, optional
        Processes that enumerate fragments; all cores by default.
    progress : callable of (stage, done, total)
    say : callable of str
        Gets a line for each step.

    Raises
    ------
    EvidenceError, RunError, CacheError
        Channels or options that do not fit, an empty fold, or features that would be fitted on
        molecules that a channel was trained on.
    BusyError, WriteError
        Another process is fitting this run, or the folder cannot be written.
    """
    options, out = options or FitOptions(), Path(out)
    options.check()
    channels = sorted(channels, key=lambda channel: channel.reranks)  # those that re-rank are last
    check_labels([channel.label for channel in channels])
    started = time.perf_counter()
    with sole_writer(out, "fitting evidence"):
        _check(prepared, options, out)
        prepared.verify()
        with atomic_directory(out) as partial:
            fitted, queries, groups = _fit_channels(
                prepared, channels, options, jobs, progress, say
            )
            rankers = fit_rankers(
                fitted, queries, groups, options.groups,
                l2=options.l2, by_molecule=options.by_molecule,
            )  # fmt: skip
            model = EvidenceModel(channels, [channel.state for channel in fitted], rankers[None])
            described = {"model": model.describe(), "options": asdict(options)}
            run = Run.create(partial, Description.from_dict(described), prepared)
            save_states(run.folder / FOLDER, model.channels, model.states)
            swap = options.spectra == "swapped"
            predictor = Predictor(prepared, fitted, groups, rankers, swap, jobs)
            _predict(run, predictor, options, progress)
            seconds = round(time.perf_counter() - started, 1)
            run.metadata |= {"status": "finished", "steps": STEP, "seconds": seconds}
            run.save()
    return Run.open(out)


def _check(prepared: Prepared, options: FitOptions, out: Path) -> None:
    """Refuse what could not be fitted, before anything is made."""
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


def _fit_channels(
    prepared: Prepared,
    channels: Sequence[Channel],
    options: FitOptions,
    jobs: int | None,
    progress: Progress,
    say: Log,
) -> tuple[list[CrossFittedChannel], Queries, StructureGroups]:
    """Fitted channels, the queries to fit a ranker on, and molecules by group."""
    fit_on = tuple(dict.fromkeys(options.fit_on or ())) or (
        FOLDS[1:2] if any(channel.pretrained for channel in channels) else FOLDS[:2]
    )
    say(f"The ranker is fitted on {' and '.join(fit_on)}.")
    drawn = []
    for fold in FOLDS[:2]:
        usable = queries_with_truth(
            prepared, prepared.in_fold(fold), options.candidates, options.identity
        )
        if not len(usable):
            raise RunError(
                f"{prepared.folder}: no {fold} spectrum has a {options.candidates} list with its "
                "molecule in it"
            )
        drawn.append(sample_spectra(prepared, usable, options.spectra_each))
    spectra = np.concatenate(drawn)
    queries = queries_of(prepared, spectra, options, jobs)
    precompute(channels, queries.molecules, progress)
    known = np.concatenate([prepared.in_fold(fold) for fold in FOLDS[:2]])
    groups = structure_groups_from(prepared, np.unique(prepared.molecule[known]), options.groups)
    folds = prepared.fold[spectra]
    if options.augment:
        pool = len(FOLDS) * groups.groups_of(queries.inchikey14) + folds
        queries = with_corrupted(queries, pool, options.augment)
        folds = np.tile(folds, 1 + options.augment)
    training_queries = queries.only(np.flatnonzero(folds == FOLDS.index(FITTED_ON)))
    training_set = training_set_from(prepared, prepared.in_fold(FITTED_ON), training_queries)
    fitted = [CrossFittedChannel(channel, training_set, groups, progress) for channel in channels]
    inside = np.isin(folds, [FOLDS.index(fold) for fold in fit_on])
    queries = queries.only(np.flatnonzero(inside))
    if not options.fit_on:  # where the user has chosen, seen molecules are refused, not dropped
        queries = _drop_seen(queries, fitted, groups, say)
    return fitted, queries, groups


def queries_of(
    prepared: Prepared, spectra: Ints, options: FitOptions, jobs: int | None = None
) -> Queries:
    """Labelled queries with as many candidates as the options allow."""
    return labelled_queries(
        prepared, spectra, options.candidates,
        identity=options.identity, max_candidates=options.most_candidates, jobs=jobs,
    )  # fmt: skip


def with_corrupted(queries: Queries, pool: Ints, copies: int) -> Queries:
    """Add corrupted copies of each spectrum, with its candidates and labels.

    A spectrum's contaminants are spectra of other molecules of its pool: what is fitted without
    another pool has seen none of its peaks.
    """
    again = np.tile(np.arange(len(queries)), 1 + copies)
    spectra = list(queries.spectra) * (1 + copies)
    for number in np.unique(pool):
        inside = np.flatnonzero(pool == number).tolist()
        molecules = queries.inchikey14[inside].tolist()
        contaminants = Contaminants([queries.spectra[n] for n in inside], molecules)
        for copy in range(copies):
            corrupt = Corruption(
                contaminants=contaminants, probability=CORRUPTION_PROBABILITY, seed=copy
            )
            for index, molecule in zip(inside, molecules, strict=True):
                spectra[(1 + copy) * len(queries) + index] = corrupt(
                    queries.spectra[index], molecule
                )
    return replace(queries.only(again), spectra=spectra)


def _drop_seen(
    queries: Queries, channels: Sequence[CrossFittedChannel], groups: StructureGroups, say: Log
) -> Queries:
    """Drop queries about molecules like those that a pretrained channel was trained on."""
    for fitted in channels:
        seen = groups.seen(fitted.state, queries.inchikey14)
        if fitted.channel.pretrained and seen.any():
            dropped = len(np.unique(queries.inchikey14[seen]))
            say(
                f"{dropped:,} of {len(np.unique(queries.inchikey14)):,} molecules are like those "
                f"that {fitted.channel.label} was trained on: not fitted on"
            )
            queries = queries.only(np.flatnonzero(~seen))
    if not len(queries):
        raise EvidenceError("no molecules are left to fit on that the channels have not seen")
    return queries


def _predict(run: Run, predictor: Predictor, options: FitOptions, progress: Progress) -> None:
    """Predict val, which is measured, test, and some molecules of train to calibrate with.

    A pretrained channel has seen the train fold: with one, train is not predicted.
    """
    prepared = predictor.prepared
    if options.calibrated_on and not any(
        fitted.channel.pretrained for fitted in predictor.channels
    ):
        fold = prepared.in_fold(FITTED_ON)
        some = sample_molecules(prepared, fold, options.calibrated_on)
        spectra = sample_spectra(prepared, some, options.spectra_each)
        predictions = predictor.fold(FITTED_ON, progress, spectra)
        predictions.save(
            run.predictions(STEP, CROSSFITTED_TRAIN), label_of(run, STEP, CROSSFITTED_TRAIN)
        )
    for fold_name in PREDICTED:
        if not len(prepared.in_fold(fold_name)):
            continue
        predictions = predictor.fold(fold_name, progress)
        predictions.save(run.predictions(STEP, fold_name), label_of(run, STEP, fold_name))
        if fold_name == PREDICTED[0]:
            means = _hit_rates(predictions)
            run.metadata["best"] = {
                name: {"step": STEP, "value": value} for name, value in means.items()
            }
            run.write_history([{"step": STEP, "epoch": 0.0, **means}])


def _hit_rates(predictions: Predictions) -> dict[str, float]:
    """Mean hit rates by the names of validation metrics."""
    means = {}
    for setting, lists in predictions.lists.items():
        labels = (np.asarray(lists.identity) & IDENTITY_BITS["fingerprint"]) > 0
        usable = Ragged(lists.counts).any(labels)
        rows = np.repeat(usable, lists.counts)
        for k in HITS:
            rates = hit_rate(lists.scores[rows], lists.counts[usable], labels[rows], k)
            means[f"hit_rate@{k}/{setting}"] = float(rates.mean())
    return means
