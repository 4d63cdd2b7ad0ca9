"""Fitting rankers over channels: from a prepared folder to runs like any other."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.choices import FOLDS, IDENTITIES
from mzseek.errors import EvidenceError, RunError
from mzseek.evidence.asked import (
    few_of_each,
    lessons_from,
    questions_from,
    some_molecules,
    with_lists,
)
from mzseek.evidence.channel import Channel, read_once
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.crossfit import Groups, Taught
from mzseek.evidence.fitting.predicting import Combined, Predictor, validation_means
from mzseek.evidence.fitting.rankers import fit_rankers
from mzseek.evidence.fitting.swapped import groups_from
from mzseek.evidence.known import Questions
from mzseek.evidence.ranker import Ranker
from mzseek.evidence.states import FOLDER, save_states
from mzseek.files import StrPath, atomic_directory, sole_writer
from mzseek.prepared.reader import Prepared
from mzseek.registry import check_name, check_ranges, option
from mzseek.runs.description import Description
from mzseek.runs.predictions import CROSSFITTED_TRAIN, label_of
from mzseek.runs.run import Run
from mzseek.work.progress import Progress, Say, silent, unheard

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
    say: Say = unheard,
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
        Processes that find pieces of molecules; all cores by default.
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
    options = options or FitOptions()
    options.check()
    all_of_them = Combination(Path(out), tuple(range(len(channels))), options.spectra)
    [run] = fit_several(
        prepared, channels, [all_of_them], options, jobs=jobs, progress=progress, say=say
    )
    return run


@dataclass(frozen=True)
class Combination:
    """Some of the channels, to be made a run of.

    Attributes
    ----------
    out : Path
        Run folder to make.
    places : tuple of int
        Channels, by their places among all.
    spectra : str
        Whose spectra are predicted from, as in `FitOptions`.
    """

    out: Path
    places: tuple[int, ...]
    spectra: str = SPECTRA[0]


def fit_several(
    prepared: Prepared,
    channels: Sequence[Channel],
    combinations: Sequence[Combination],
    options: FitOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Say = unheard,
) -> list[Run]:
    """Runs of several combinations of channels, each as `fit` would make it, for little more work.

    Channels learn once, and say once what they have to say of each candidate. Every ranker is
    fitted on the same molecules: with a trained run among all channels, on val alone.

    Parameters
    ----------
    prepared : Prepared
    channels : sequence of Channel
        Of which two may have one name, if no combination has both.
    combinations : sequence of Combination
        Their ``spectra`` stand in the place of that of the options.
    options, jobs, progress, say
        As in `fit`, and so are errors.

    Returns
    -------
    list of Run
        In the order of the combinations.
    """
    options = options or FitOptions()
    started = time.perf_counter()
    with ExitStack() as held:
        for each in combinations:
            replace(options, spectra=each.spectra).check()
            _check_labels([channels[place].label for place in each.places])
            held.enter_context(sole_writer(each.out, "fitting evidence"))
            check_fit(prepared, options, each.out)
        prepared.verify()
        partial = [held.enter_context(atomic_directory(each.out)) for each in combinations]
        taught, chosen, groups = _learned(prepared, channels, options, jobs, progress, say)
        rankers = _rankers(combinations, taught, chosen, groups, options)
        runs = [
            _written(folder, each, rankers[each.places][None], taught, prepared, options)
            for folder, each in zip(partial, combinations, strict=True)
        ]
        for spectra in dict.fromkeys(each.spectra for each in combinations):
            own = [n for n, each in enumerate(combinations) if each.spectra == spectra]
            places = [combinations[n].places for n in own]
            combined = [Combined(each, rankers[each]) for each in places]
            predictor = Predictor(prepared, taught, groups, combined, spectra, jobs)
            _predict([runs[n] for n in own], prepared, predictor, options, progress)
        for run in runs:
            run.facts |= {
                "status": "finished", "steps": STEP,
                "seconds": round(time.perf_counter() - started, 1),
            }  # fmt: skip
            run.save()
    return [Run.open(each.out) for each in combinations]


def _check_labels(labels: Sequence[str]) -> None:
    """Refuse channels that no table could tell apart."""
    if not labels:
        raise EvidenceError("no channels, expected one or more in each combination")
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise EvidenceError(f"two channels of a combination are called {twice}")


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
    say: Say,
) -> tuple[list[Taught], Questions, Groups]:
    """Channels that have learned, the questions to fit a ranker on, and molecules by group."""
    fit_on = _folds(channels, options)
    say(f"The ranker is fitted on {' and '.join(fit_on)}.")
    asked, fold = _asked(prepared, options, jobs)
    read_once(channels, asked.lists.molecules, progress)
    known = np.concatenate([prepared.in_fold(each) for each in FOLDS[:2]])
    groups = groups_from(prepared, np.unique(prepared.molecule[known]), options.groups)
    own = np.flatnonzero(fold == FOLDS.index(LEARNED_ON))
    lessons = lessons_from(prepared, prepared.in_fold(LEARNED_ON), asked.only(own))
    taught = [Taught(channel, lessons, groups, progress) for channel in channels]
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
) -> tuple[Questions, npt.NDArray[np.int8]]:
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


def _unseen(asked: Questions, taught: Sequence[Taught], groups: Groups, say: Say) -> Questions:
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
    combinations: Sequence[Combination],
    taught: Sequence[Taught],
    asked: Questions,
    groups: Groups,
    options: FitOptions,
) -> dict[tuple[int, ...], dict[int | None, Ranker]]:
    """For each set of channels its rankers; channels are asked once.

    Raises
    ------
    EvidenceError
        A channel has learned from a molecule that is asked about, or from its like.
    """
    features = [each.features(asked.lists, asked.blocks) for each in taught]
    found = {}
    for places in dict.fromkeys(each.places for each in combinations):
        own = [taught[place] for place in places], [features[place] for place in places]
        found[places] = fit_rankers(
            *own, asked, groups, options.groups, l2=options.l2, by_molecule=options.by_molecule
        )
    return found


def _written(
    partial: Path,
    combination: Combination,
    ranker: Ranker,
    taught: Sequence[Taught],
    prepared: Prepared,
    options: FitOptions,
) -> Run:
    """The run folder of a combination, without predictions."""
    own = [taught[place] for place in combination.places]
    fitted = Fitted([each.channel for each in own], [each.whole for each in own], ranker)
    made = asdict(replace(options, spectra=combination.spectra))
    described = {"model": fitted.describe(), "options": made}
    run = Run.create(partial, Description.of_fitted(described), prepared)
    save_states(run.folder / FOLDER, fitted.channels, fitted.learned)
    return run


def _predict(
    runs: Sequence[Run],
    prepared: Prepared,
    predictor: Predictor,
    options: FitOptions,
    progress: Progress,
) -> None:
    """Predictions of validation, which say how good it is, of test, and of some of train."""
    _predict_taught(runs, prepared, predictor, options, progress)
    for fold in PREDICTED:
        if not len(prepared.in_fold(fold)):
            continue
        for run, said in zip(runs, predictor.fold(fold, progress), strict=True):
            said.save(run.predictions(STEP, fold), label_of(run, STEP, fold))
            if fold == PREDICTED[0]:
                means = validation_means(said)
                run.facts["best"] = {
                    name: {"step": STEP, "value": value} for name, value in means.items()
                }
                run.write_history([{"step": STEP, "epoch": 0.0, **means}])


def _predict_taught(
    runs: Sequence[Run],
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
    for run, said in zip(runs, predictor.fold(LEARNED_ON, progress, queries), strict=True):
        folder = run.predictions(STEP, CROSSFITTED_TRAIN)
        said.save(folder, label_of(run, STEP, CROSSFITTED_TRAIN))
