"""Fitting a ranker over channels: from a prepared folder to a run like any other."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
from mzseek.evidence.fitting.predicting import Predictor, validation_means
from mzseek.evidence.fitting.swapped import groups_from
from mzseek.evidence.known import Questions
from mzseek.evidence.ranker import Ranker, fit_ranker
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
    options, out = options or FitOptions(), Path(out)
    options.check()
    started = time.perf_counter()
    with sole_writer(out, "fitting evidence"):
        check_fit(prepared, options, out)
        prepared.verify()
        with atomic_directory(out) as partial:
            taught, chosen, groups = _learned(prepared, channels, options, jobs, progress, say)
            rankers = fit_rankers(taught, chosen, groups, options)
            fitted = Fitted(channels, [each.whole for each in taught], rankers[None])
            run = _written(partial, fitted, prepared, options)
            predictor = Predictor(prepared, taught, groups, rankers, options.spectra, jobs)
            _predict(run, prepared, predictor, options, progress)
            run.facts |= {
                "status": "finished", "steps": STEP,
                "seconds": round(time.perf_counter() - started, 1),
            }  # fmt: skip
            run.save()
    return Run.open(out)


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


def fit_rankers(
    taught: Sequence[Taught], asked: Questions, groups: Groups, options: FitOptions
) -> dict[int | None, Ranker]:
    """A ranker fitted on all questions, under None, and one without each group.

    Raises
    ------
    EvidenceError
        A channel has learned from a molecule that is asked about, or from its like.
    """
    features = [each.features(asked.lists, asked.blocks) for each in taught]
    labels = [each.channel.label for each in taught]
    names = [each.channel.feature_names for each in taught]
    group = groups.group[groups.places(asked.blocks)]
    rankers: dict[int | None, Ranker] = {}
    for each in (None, *range(options.groups)):
        own = np.flatnonzero(group != each) if each is not None else np.arange(len(asked))
        if not len(own):
            raise EvidenceError(
                "all molecules to fit on are alike: none are left to cross-fit with; fit on more"
            )
        rows = asked.rows(own)
        rankers[each] = fit_ranker(
            labels, names, [values[rows] for values in features], asked.only(own),
            l2=options.l2, by_molecule=options.by_molecule,
        )  # fmt: skip
    return rankers


def _written(partial: Path, fitted: Fitted, prepared: Prepared, options: FitOptions) -> Run:
    """The run folder, without predictions."""
    described = {"model": fitted.describe(), "options": asdict(options)}
    run = Run.create(partial, Description.of_fitted(described), prepared)
    save_states(run.folder / FOLDER, fitted.channels, fitted.learned)
    return run


def _predict(
    run: Run, prepared: Prepared, predictor: Predictor, options: FitOptions, progress: Progress
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
            run.facts["best"] = {
                name: {"step": STEP, "value": value} for name, value in means.items()
            }
            run.write_history([{"step": STEP, "epoch": 0.0, **means}])


def _predict_taught(
    run: Run, prepared: Prepared, predictor: Predictor, options: FitOptions, progress: Progress
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
    folder = run.predictions(STEP, CROSSFITTED_TRAIN)
    said.save(folder, label_of(run, STEP, CROSSFITTED_TRAIN))
