"""A run's candidates with their scores, from its predictions."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.choices import FOLDS, TIES, Ties
from mzseek.errors import BusyError, RunError, WriteError
from mzseek.files import sole_writer
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES, Slices
from mzseek.registry import check_name
from mzseek.runs.kept import kept_model
from mzseek.runs.predictions import ListScores, Predictions, label_of, predict_fold, random_fold
from mzseek.runs.run import Run
from mzseek.similarity.lists import LIST_SIMILARITIES, list_similarity

_ROWS = 512


@dataclass(frozen=True)
class Scoring:
    """How a run is to be scored.

    Attributes
    ----------
    fold : str
    candidates : str
        Retrieval setting; any that the data have, not only the one trained with.
    similarity : str or None
        Score candidates by this similarity of the predicted fingerprint; None takes the model's own
        score.
    ties, identity : str
        The rule for equal scores, and when a candidate is the truth.
    """

    fold: str = "test"
    candidates: str = "mass"
    similarity: str | None = None
    ties: Ties = "expected"
    identity: str = "fingerprint"

    def check(self) -> None:
        """Refuse what is unknown, with what is known."""
        check_name(FOLDS, self.fold, "fold", RunError)
        if self.similarity is not None:
            check_name(LIST_SIMILARITIES, self.similarity, "similarity", RunError)
        check_name(TIES, self.ties, "ties", RunError)
        check_name(IDENTITIES, self.identity, "identity", RunError)


def by_cosine(run: Run) -> bool:
    """Whether a model scores by the cosine of its predicted fingerprint."""
    return run.made.scores_by == "cosine"


def sees_spectrum(run: Run) -> bool:
    """Whether a run's scores come from the spectrum; those of controls do not."""
    return run.made.sees_spectrum


def predicts_fingerprint(run: Run) -> bool:
    """Whether a run's model predicts a fingerprint."""
    return run.made.predicts_fingerprint


def name_of(run: Run) -> str:
    """What a message calls a run's model."""
    return run.baseline or run.loss.name


def check_similarity(run: Run, how: Scoring) -> None:
    """Refuse a similarity where there is no predicted fingerprint to compare."""
    if how.similarity and not predicts_fingerprint(run):
        raise RunError(
            f"{run.folder}: --similarity needs a predicted fingerprint, and {name_of(run)} "
            "predicts none; leave it out to score by the model itself"
        )


def best_step(run: Run, wanted: str) -> int:
    """Step of the checkpoint to read a metric from; of another setting if this has none."""
    best = run.best
    kind = wanted.partition("/")[0]
    for name in (wanted, *(name for name in best if name.partition("/")[0] == kind)):
        if name in best:
            return int(best[name]["step"])
    raise RunError(f"{run.folder}: has no checkpoint that was chosen by {wanted}")


def predictions_of(
    run: Run, prepared: Prepared, step: int, fold: str, progress: Any
) -> Predictions:
    """Saved predictions of a checkpoint, or new ones, which are saved once the run has ended."""
    folder, label = run.predictions(step, fold), label_of(run, step, fold)
    if folder.is_dir():
        saved = Predictions.open(folder, label)
        saved.check_against(prepared, fold, folder)
        return saved
    if not len(prepared.in_fold(fold)):
        raise RunError(f"{prepared.folder}: has no {fold} spectra")
    if run.baseline is not None:
        made = random_fold(prepared, fold, run.seed)
    else:
        metric = next(name for name, facts in run.best.items() if facts["step"] == step)
        made = predict_fold(
            kept_model(run, metric, prepared), prepared, fold,
            lambda done, total: progress("predicting", done, total),
        )  # fmt: skip
    if run.finished:
        _keep(made, folder, label)
    return made


def _keep(made: Predictions, folder: Path, label: dict[str, Any]) -> None:
    """Save predictions for the next time, unless another is just doing so, or nobody can."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(sole_writer(folder, "saving predictions"))
        except (BusyError, WriteError):  # it saves the same; or the run is on a disk to read from
            return
        if not folder.is_dir():
            made.save(folder, label)


def scored_lists(
    predictions: Predictions, prepared: Prepared, how: Scoring, own_is_cosine: bool
) -> ListScores:
    """Candidates with the scores asked for."""
    if how.candidates not in predictions.lists:
        raise RunError(f"the saved predictions have no candidates {how.candidates!r}")
    lists = predictions.lists[how.candidates]
    if how.similarity is None or (how.similarity == "cosine" and own_is_cosine):
        return lists  # not from the saved fingerprints, whose half precision could flip near ties
    assert predictions.fingerprints is not None
    slices = Slices(prepared, (how.candidates,), lists.queries)
    rows = np.searchsorted(predictions.queries, lists.queries)
    found = [np.empty(0, np.float32)]
    for start in range(0, len(rows), _ROWS):
        here = slice(start, start + _ROWS)
        predicted = predictions.fingerprints[rows[here]].astype(np.float32)
        part = slices.lists(lists.queries[here], how.candidates)
        found.append(list_similarity(predicted, part.rows.csr(), part.counts, how.similarity))
    return replace(lists, scores=np.concatenate(found))
