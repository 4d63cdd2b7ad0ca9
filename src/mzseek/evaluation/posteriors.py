"""Calibrated probabilities of a run's candidates."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mzseek.decision import Calibration, Pooling, fit_calibration, fit_temperature, posterior
from mzseek.decision.confidence.lists import merge_answers
from mzseek.decision.distributions import row_keys
from mzseek.errors import RunError
from mzseek.evaluation.scored import Scoring, kept_steps, measurable, scored_lists
from mzseek.files import StrPath
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import Ragged
from mzseek.runs.predictions import CROSSFITTED_TRAIN, ListScores, Predictions, label_of
from mzseek.runs.run import Run
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """Probabilities of the candidates of every spectrum of a fold that has the truth in its list.

    Attributes
    ----------
    queries, molecule : int arrays, shape (n,)
        Spectra, and their true molecules.
    counts : int64 array, shape (n,)
        Candidates of each.
    candidates : int32 array
        Molecules, all lists concatenated, in an order that knows nothing of the truth.
    labels : bool array
        Candidates that are the truth, in the sense of ``how.identity``.
    probabilities : float64 array
    answer : array
        Equal for candidates that are the same answer in that sense.
    calibration : Calibration or None
        How the scores became probabilities; None for a uniform posterior.
    step : int
        The checkpoint that it comes from.
    how : Scoring
    """

    queries: npt.NDArray[np.int64]
    molecule: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int32]
    labels: npt.NDArray[np.bool_]
    probabilities: Floats
    answer: npt.NDArray[np.generic]
    calibration: Calibration | None
    step: int
    how: Scoring

    def uniform(self) -> "Posterior":
        """The posterior of one who has not seen the spectrum: all candidates alike."""
        even = 1 / Ragged(self.counts).spread(self.counts).astype(np.float64)
        return replace(self, probabilities=even, calibration=None)

    def answers(self) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Probabilities, counts and labels of distinct answers: twins are one."""
        return merge_answers(self.probabilities, self.counts, self.answer, self.labels)


@dataclass(frozen=True)
class Calibrated:
    """A run's posteriors on validation and on another fold, by one calibration.

    Attributes
    ----------
    val, asked : Posterior
        Of validation, and of the fold asked for.
    uncalibrated : Posterior
        The same fold with the scores as they were trained: divided by the loss's own temperature.
    pooling : Pooling or None
        How spectra of a molecule were added up; None where each spectrum is judged alone.
    spectra : int64 array or None
        Spectra behind each list of ``asked``, where they were added up.
    """

    val: Posterior
    asked: Posterior
    uncalibrated: Posterior
    pooling: Pooling | None = None
    spectra: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class ChosenLists:
    """Scores of validation and of another fold, at the checkpoint that is best for probabilities.

    Attributes
    ----------
    val, asked : ListScores
        Lists that have the truth in them, in an order that knows nothing of it.
    fit : ListScores
        What a calibration is fitted on: validation, and in a fitted run molecules of train, too.
    step : int
        The checkpoint.
    how : Scoring
        Of ``asked``.
    plain : Calibration
        The loss's own temperature.
    """

    val: ListScores
    asked: ListScores
    fit: ListScores
    step: int
    how: Scoring
    plain: Calibration


def calibrate(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Calibrated:
    """Turn a run's scores into probabilities, with a calibration fitted on validation.

    That of a fitted run is fitted on molecules of train, too, if it has kept what channels and
    rankers say of them that learned without them. In the fit each molecule counts once. The
    checkpoint is that of `chosen_lists`.

    Parameters
    ----------
    run : Run
    how : Scoring
        Fold, candidates, similarity and identity; ties do not matter here.
    data : Path, optional
        The prepared folder, if it is no longer where it was.
    progress : callable of (stage, done, total)

    Returns
    -------
    Calibrated

    Raises
    ------
    RunError
        There are no validation spectra to calibrate on.
    """
    lists = chosen_lists(run, how, data=data, progress=progress)
    prepared = run.open_data(data)
    fitted = fitted_on(lists.fit, lists.how)
    return Calibrated(
        val=posterior_of(lists.val, prepared, replace(lists.how, fold="val"), fitted, lists.step),
        asked=posterior_of(lists.asked, prepared, lists.how, fitted, lists.step),
        uncalibrated=posterior_of(lists.asked, prepared, lists.how, lists.plain, lists.step),
    )


def fitted_on(lists: ListScores, how: Scoring) -> Calibration:
    """The calibration of these lists, each molecule counting once."""
    return fit_calibration(lists.scores, lists.counts, labels_of(lists, how), lists.molecule)


def chosen_lists(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> ChosenLists:
    """Scores to make probabilities of.

    Of the checkpoints that the run has kept, the one under which the truth is most probable on
    validation (at its best temperature, on average over spectra) is taken. Parameters and errors
    are those of `calibrate`.
    """
    how = how or Scoring(candidates=run.measured_on(data))
    prepared = measurable(run, how, data)
    if not len(prepared.in_fold("val")):
        raise RunError(f"{prepared.folder}: has no val spectra to calibrate on")
    steps = kept_steps(run, how)
    found = [_on_validation(run, prepared, how, step, progress) for step in steps]
    _, step, val = min(found, key=lambda each: each[0])
    return ChosenLists(
        val=val,
        asked=scores_at(run, prepared, how, step, progress),
        fit=_to_fit_on(run, prepared, how, step, val),
        step=step,
        how=how,
        plain=Calibration(run.made.temperature),
    )


def _on_validation(
    run: Run, prepared: Prepared, how: Scoring, step: int, progress: Progress
) -> tuple[float, int, ListScores]:
    """Log-loss on validation at the best temperature, the step, and the scores."""
    lists = scores_at(run, prepared, replace(how, fold="val"), step, progress)
    labels = labels_of(lists, how)
    temperature = fit_temperature(lists.scores, lists.counts, labels, lists.molecule)
    p = posterior(lists.scores, lists.counts, temperature)
    of_truth = Ragged(lists.counts).sum(np.where(labels, p, 0))
    return float(-np.log(np.maximum(of_truth, 1e-300)).mean()), step, lists


def scores_at(
    run: Run, prepared: Prepared, how: Scoring, step: int, progress: Progress = silent
) -> ListScores:
    """Lists that have the truth in them, in an order that knows nothing of it."""
    lists = scored_lists(run, prepared, how, step, progress)
    return _usable(lists, prepared, how)


def _to_fit_on(
    run: Run, prepared: Prepared, how: Scoring, step: int, val: ListScores
) -> ListScores:
    """Validation, and what a fitted run has kept of train by what learned without it."""
    folder = run.predictions(step, CROSSFITTED_TRAIN)
    if run.made.fitted is None or how.similarity or not folder.is_dir():
        return val
    saved = Predictions.open(folder, label_of(run, step, CROSSFITTED_TRAIN))
    saved.check_against(prepared, CROSSFITTED_TRAIN, folder)
    if not saved.has_lists(prepared, how.candidates):
        return val
    own = saved.lists[how.candidates]
    if not labels_of(own, how).any():
        return val
    train = _usable(own, prepared, how)
    return ListScores(
        *(
            np.concatenate([getattr(each, name) for each in (val, train)])
            for name in ("queries", "molecule", "counts", "candidates", "identity", "scores")
        )
    )


def _usable(lists: ListScores, prepared: Prepared, how: Scoring) -> ListScores:
    ragged = Ragged(lists.counts)
    usable = ragged.any(labels_of(lists, how))
    if not usable.any():
        raise RunError(
            f"{prepared.folder}: no {how.fold} spectrum has its molecule among its "
            f"{how.candidates} candidates in the sense of {how.identity}"
        )
    # A list may have the truth first, and equal probabilities would then be decided for it.
    # What was added later stands anywhere among the others, and changes nothing in their order.
    own, added = prepared.own_molecules, len(prepared.masses) - prepared.own_molecules
    shuffled = np.random.default_rng(0).permutation(own) / own
    shuffled = np.append(shuffled, np.random.default_rng(1).random(added))
    order = np.lexsort((shuffled[lists.candidates], ragged.owner))
    order = order[usable[ragged.owner]]
    return ListScores(
        queries=lists.queries[usable],
        molecule=lists.molecule[usable],
        counts=lists.counts[usable],
        candidates=lists.candidates[order],
        identity=lists.identity[order],
        scores=np.asarray(lists.scores)[order],
    )


def labels_of(lists: ListScores, how: Scoring) -> npt.NDArray[np.bool_]:
    """Candidates that are the truth, in the sense of ``how.identity``."""
    found: npt.NDArray[np.bool_] = (np.asarray(lists.identity) & IDENTITIES[how.identity]) > 0
    return found


def posterior_of(
    lists: ListScores, prepared: Prepared, how: Scoring, calibration: Calibration, step: int
) -> Posterior:
    """Probabilities that a calibration makes of scores."""
    return Posterior(
        queries=lists.queries,
        molecule=np.asarray(lists.molecule),
        counts=lists.counts,
        candidates=lists.candidates,
        labels=labels_of(lists, how),
        probabilities=calibration.posterior(lists.scores, lists.counts),
        answer=_answers(lists, prepared, how),
        calibration=calibration,
        step=step,
        how=how,
    )


def _answers(lists: ListScores, prepared: Prepared, how: Scoring) -> npt.NDArray[np.generic]:
    if how.identity == "inchikey":
        return np.asarray(prepared.blocks[lists.candidates])
    molecules, place = np.unique(lists.candidates, return_inverse=True)
    rows = prepared.fingerprint_rows(molecules)
    keys = row_keys(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.shape[1])
    return keys[place]
