"""A run's candidates with their scores, from its predictions."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mzseek.choices import FOLDS, TIES, Ties
from mzseek.errors import BusyError, RunError, WriteError
from mzseek.evaluation.validation import ranks_by
from mzseek.files import StrPath, sole_writer
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.registry import check_name
from mzseek.runs.kept import kept_model
from mzseek.runs.predictions import ListScores, Predictions, label_of, predict_fold, random_fold
from mzseek.runs.run import Run
from mzseek.similarity.lists import LIST_SIMILARITIES, ranking_of


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


def sees_spectrum(run: Run) -> bool:
    """Whether a run's scores come from the spectrum; those of controls do not."""
    return run.made.sees_spectrum


def predicts_fingerprint(run: Run) -> bool:
    """Whether a run's model predicts what can be read as the molecule's fingerprint."""
    return run.made.reports_fingerprint


def why_no_fingerprint(run: Run) -> str:
    """The reason, for a run of which `predicts_fingerprint` is not true."""
    if run.made.predicts_fingerprint:
        return (
            f"the bits that {name_of(run)} predicts go into a network that scores candidates: "
            "nothing makes them the bits of the molecule"
        )
    return f"{name_of(run)} predicts none"


def name_of(run: Run) -> str:
    """What a message calls a run's model."""
    return run.made.name


def check_similarity(run: Run, how: Scoring) -> None:
    """Refuse a similarity where there is no predicted fingerprint to compare."""
    if how.similarity and not predicts_fingerprint(run):
        raise RunError(
            f"{run.folder}: --similarity needs a predicted fingerprint, and "
            f"{why_no_fingerprint(run)}; leave it out to score by the model itself"
        )


def measurable(run: Run, how: Scoring, data: StrPath | None) -> Prepared:
    """The data of a run that can be scored as asked; anything else is refused."""
    how.check()
    if not run.best:
        raise RunError(f"{run.folder}: has no checkpoint yet; train it first, or --resume it")
    prepared = run.open_data(data)
    prepared.candidates(how.candidates)  # says which there are, if not this
    check_similarity(run, how)
    return prepared


def ranking(run: Run, how: Scoring) -> str | None:
    """The similarity that ranks; None where the model's own score does, which may be the same."""
    kind = ranking_of(how.similarity) if how.similarity else None
    return None if kind == run.made.scores_by else kind


def best_metric(run: Run, wanted: str) -> str:
    """The validation metric whose checkpoint a metric is read from: itself, or the next to it.

    A setting that was not validated has the checkpoint of another one: of that which the run is
    measured on, if there is one. A run that has kept none for a ranking by a similarity has that of
    the model's own.
    """
    best, kind = run.best, wanted.partition("/")[0]
    usual = f"{kind}/{run.facts['data'].get('measured_on', run.candidates)}"
    alike = [name for name in best if name.partition("/")[0] == kind]
    alike.sort(key=lambda name: not f"{name}/".startswith(f"{usual}/"))
    own = "/".join(wanted.split("/")[:2])
    for name in (
        wanted,
        *(name for name in alike if ranks_by(name) == ranks_by(wanted)),
        own,
        *(name for name in alike if ranks_by(name) is None),
    ):
        if name in best:
            return name
    raise RunError(f"{run.folder}: has no checkpoint that was chosen by {wanted}")


def best_step(run: Run, wanted: str) -> int:
    """Step of the checkpoint to read a metric from: that of `best_metric`."""
    return int(run.best[best_metric(run, wanted)]["step"])


def kept_steps(run: Run, how: Scoring) -> list[int]:
    """Steps of the checkpoints that were kept for a ranking, or for the model's own if for none."""
    by_ranking: dict[str | None, set[int]] = {}
    for name, facts in run.best.items():
        by_ranking.setdefault(ranks_by(name), set()).add(int(facts["step"]))
    return sorted(by_ranking.get(ranking(run, how)) or by_ranking[None])


def predictions_of(
    run: Run,
    prepared: Prepared,
    step: int,
    fold: str,
    progress: Any,
    similarity: str | None = None,
    setting: str | None = None,
) -> Predictions:
    """Saved predictions of a checkpoint, or new ones, which are saved once the run has ended.

    With a ``similarity``, lists have its scores, computed in full precision by the model: from
    saved fingerprints, whose precision is half, near ties could come out the other way round. With
    a ``setting``, its lists are as the folder has them: where they were drawn after predictions
    were saved, these are made again.
    """
    folder = run.predictions(step, fold, similarity)
    label = label_of(run, step, fold, similarity)
    is_stale = folder.is_dir()
    if is_stale:
        saved = Predictions.open(folder, label)
        saved.check_against(prepared, fold, folder)
        if setting not in prepared.measured_settings or saved.has_lists(prepared, setting):
            return saved
    if not len(prepared.in_fold(fold)):
        raise RunError(f"{prepared.folder}: has no {fold} spectra")
    if run.made.fitted is not None and is_stale:
        raise RunError(
            f"{run.folder}: {setting} lists were drawn after it was fitted, so that it has "
            "predictions of others; run `mzseek fit` again"
        )
    if run.made.fitted is not None:
        raise RunError(
            f"{run.folder}: has no predictions of the {fold} fold; `mzseek fit` makes those of "
            "val and test, and only then"
        )
    if run.baseline is not None:
        made = random_fold(prepared, fold, run.seed)
    else:
        metric = next(name for name, facts in run.best.items() if facts["step"] == step)
        made = predict_fold(
            kept_model(run, metric, prepared), prepared, fold,
            lambda done, total: progress("predicting", done, total),
            (similarity,) if similarity else (),
        )  # fmt: skip
        made = made.ranked_by(similarity) if similarity else made
    if run.finished:
        _keep(made, folder, label, is_stale)
    return made


def _keep(made: Predictions, folder: Path, label: dict[str, Any], is_stale: bool) -> None:
    """Save predictions for the next time, unless another is just doing so, or nobody can."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(sole_writer(folder, "saving predictions"))
        except (BusyError, WriteError):  # it saves the same; or the run is on a disk to read from
            return
        if not folder.is_dir() or is_stale:
            made.save(folder, label)


def scored_lists(
    run: Run, prepared: Prepared, how: Scoring, step: int, progress: Any
) -> ListScores:
    """Candidates with the scores asked for, of the checkpoint of a step.

    Raises
    ------
    RunError
        The saved predictions are of other lists.
    """
    said = predictions_of(
        run, prepared, step, how.fold, progress, ranking(run, how), how.candidates
    )
    if how.candidates not in said.lists:
        raise RunError(f"the saved predictions have no candidates {how.candidates!r}")
    return said.lists[how.candidates]
