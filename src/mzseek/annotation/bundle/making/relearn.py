"""Channels that learn once more, from all folds: what a shipped bundle says of new molecules."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mzseek.annotation.bundle.peaks import MOST_PEAKS, compact_spectrum
from mzseek.choices import FOLDS
from mzseek.evidence.asked import few_of_each, lessons_from, questions_from, with_lists
from mzseek.evidence.channel import Learned, read_once
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.fit import FitOptions
from mzseek.evidence.known import Lessons
from mzseek.prepared.reader import Prepared
from mzseek.work.progress import Progress, silent


def relearn(
    fitted: Fitted,
    prepared: Prepared,
    options: FitOptions,
    *,
    folds: Sequence[str] = FOLDS,
    most_peaks: int = MOST_PEAKS,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Fitted:
    """The same ranker over channels that have learned from these folds.

    A channel that has learned elsewhere stays as it is. Reference spectra are made compact before
    they are learned from, so that nothing is lost when they are packed.

    Parameters
    ----------
    fitted : Fitted
    prepared : Prepared
    options : FitOptions
        As the ranker was fitted with.
    folds : sequence of str
    most_peaks : int
        Of a reference spectrum.
    """
    lessons = lessons_of(prepared, options, folds, jobs=jobs)
    read_once(fitted.channels, lessons.questions.lists.molecules, progress)
    lessons = replace(lessons, spectra=[compact_spectrum(s, most_peaks) for s in lessons.spectra])
    learned: list[Learned] = [
        channel.learn(lessons, progress) if channel.learns else own
        for channel, own in zip(fitted.channels, fitted.learned, strict=True)
    ]
    return Fitted(fitted.channels, learned, fitted.ranker)


def lessons_of(
    prepared: Prepared, options: FitOptions, folds: Sequence[str], *, jobs: int | None = None
) -> Lessons:
    """What channels learn from folds: all their spectra, and questions about some of each molecule.

    Parameters
    ----------
    prepared : Prepared
    options : FitOptions
        How many spectra and candidates are drawn.
    folds : sequence of str
    jobs : int, optional
        Processes that find pieces, once somebody asks for them.
    """
    queries = reference_queries(prepared, folds)
    usable = with_lists(prepared, queries, options.candidates, options.identity)
    asked = questions_from(
        prepared, few_of_each(prepared, usable, options.spectra_each), options.candidates,
        identity=options.identity, most=options.most_candidates, jobs=jobs,
    )  # fmt: skip
    return lessons_from(prepared, queries, asked)


def reference_queries(prepared: Prepared, folds: Sequence[str]) -> npt.NDArray[np.int64]:
    """Spectra of folds, in the order of the folder."""
    return np.sort(np.concatenate([prepared.in_fold(fold) for fold in folds]))
