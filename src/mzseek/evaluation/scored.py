"""Scored candidate lists of a run, and validation metrics."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import BusyError, RunError, WriteError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import FOLDS, TIES, Ties, check_name
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.io import StrPath, sole_writer
from mzseek.metrics import binarise, hit_rate_from_counts, rank_counts, tanimoto
from mzseek.runs.checkpoints import kept_model
from mzseek.runs.predictions import ListScores, Predictions, label_of, predict_fold, random_fold
from mzseek.runs.run import Description, Run
from mzseek.similarity.lists import LIST_SIMILARITIES, ranking_of

HITS = (1, 5, 20)
_ROWS = 1024


def hit_metric(k: int, setting: str, similarity: str | None = None) -> str:
    """What a hit rate is called in a run: by its lists, and by what ranks them if not the model.

    Examples
    --------
    >>> hit_metric(20, "mass"), hit_metric(1, "formula", "tanimoto")
    ('hit_rate@20/mass', 'hit_rate@1/formula/tanimoto')
    """
    name = f"hit_rate@{k}/{setting}"
    return f"{name}/{similarity}" if similarity else name


def ranks_by(metric: str) -> str | None:
    """The similarity in the name of a validation metric; None where the model's own score ranks.

    Examples
    --------
    >>> ranks_by("hit_rate@1/mass/tanimoto"), ranks_by("hit_rate@1/mass"), ranks_by("tanimoto")
    ('tanimoto', None, None)
    """
    return metric.partition("/")[2].partition("/")[2] or None


def other_rankings(made: Description) -> tuple[str, ...]:
    """Similarities of its predicted fingerprint by which a run can rank, beside its own score."""
    if not made.reports_fingerprint:
        return ()
    names = dict.fromkeys(ranking_of(name) for name in LIST_SIMILARITIES)
    return tuple(name for name in names if name != made.scores_by)


def hit_rates(
    lists: ListScores, ties: Ties = "expected", identity: str = "fingerprint"
) -> tuple[dict[str, npt.NDArray[np.float64]], npt.NDArray[np.int32]]:
    """Hit rates at 1, 5 and 20, one value for each spectrum, and the molecule of each.

    A spectrum in whose list nothing is the truth in the sense of ``identity`` is left out.
    """
    labels = (np.asarray(lists.identity) & IDENTITY_BITS[identity]) > 0
    ragged = Ragged(np.asarray(lists.counts))
    usable = ragged.any(labels)
    scores, counts, molecule = np.asarray(lists.scores), lists.counts, lists.molecule
    if not usable.all():
        inside = ragged.repeat_per_list(usable)
        scores, labels = scores[inside], labels[inside]
        counts, molecule = counts[usable], molecule[usable]
    if not len(counts):
        return {f"hit_rate@{k}": np.empty(0) for k in HITS}, np.asarray(molecule)
    ranks = rank_counts(scores, counts, labels)
    return {f"hit_rate@{k}": hit_rate_from_counts(ranks, k, ties) for k in HITS}, np.asarray(
        molecule
    )


def thresholded_tanimoto(
    predictions: Predictions, prepared: Prepared
) -> npt.NDArray[np.float64] | None:
    """Tanimoto similarity of each thresholded prediction with the truth, or None."""
    if predictions.fingerprints is None:
        return None
    found = []
    for start in range(0, len(predictions.queries), _ROWS):
        here = slice(start, start + _ROWS)
        predicted = csr_array(binarise(predictions.fingerprints[here]))
        found.append(tanimoto(predicted, prepared.fingerprint_rows(predictions.molecule[here])))
    return np.concatenate(found) if found else np.empty(0)


def validation_means(
    predictions: Predictions, prepared: Prepared, *, fingerprint: bool = True
) -> dict[str, float]:
    """Means of a validation: hit rates by `hit_metric` for every setting and ranking, and Tanimoto.

    Without ``fingerprint``, what is predicted is not to be read as one, and has no Tanimoto.
    """
    means: dict[str, float] = {}
    for ranking, scored in ((None, predictions.lists), *predictions.rankings.items()):
        for setting, lists in scored.items():
            rates, _ = hit_rates(lists)
            for k in HITS:
                if len(found := rates[f"hit_rate@{k}"]):
                    means[hit_metric(k, setting, ranking)] = float(found.mean())
    similarity = thresholded_tanimoto(predictions, prepared) if fingerprint else None
    if similarity is not None and len(similarity):
        means["tanimoto"] = float(similarity.mean())
    return means


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
        check_name(IDENTITY_BITS, self.identity, "identity", RunError)


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
    usual = f"{kind}/{run.measured_on}"
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
