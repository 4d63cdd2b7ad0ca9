"""Scored candidate lists of a run, of single or pooled spectra, and validation metrics."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek import metrics
from mzseek.core.errors import BusyError, RunError, WriteError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import FOLDS, TIES, Ties, check_name
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.decision import Pooling, pool_scores
from mzseek.io import StrPath, sole_writer
from mzseek.metrics import binarise, hit_rate_from_counts, rank_counts
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.checkpoints import best_model
from mzseek.runs.predictions import ListScores, Predictions, label_of, predict_fold, random_fold
from mzseek.runs.run import Description, Run
from mzseek.similarity.lists import LIST_SIMILARITIES, ranking_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HITS = (1, 5, 20)
FINGERPRINT_METRICS = ("tanimoto", "soft_tanimoto", "cosine", "bit_accuracy")
_ROWS = 1024


def hit_metric(k: int, setting: str, similarity: str | None = None) -> str:
    """Name a hit rate in a run: by its lists, and by what ranks them if not the model.

    Examples
    --------
    >>> hit_metric(20, "mass"), hit_metric(1, "formula", "tanimoto")
    ('hit_rate@20/mass', 'hit_rate@1/formula/tanimoto')
    """
    name = f"hit_rate@{k}/{setting}"
    return f"{name}/{similarity}" if similarity else name


def ranks_by(metric: str) -> str | None:
    """Return the similarity in a validation metric's name; None for the model's own score.

    Examples
    --------
    >>> ranks_by("hit_rate@1/mass/tanimoto"), ranks_by("hit_rate@1/mass"), ranks_by("tanimoto")
    ('tanimoto', None, None)
    """
    return metric.partition("/")[2].partition("/")[2] or None


def other_rankings(description: Description) -> tuple[str, ...]:
    """Return similarities of its predicted fingerprint by which a run can rank, too."""
    if not description.reports_fingerprint:
        return ()
    names = dict.fromkeys(ranking_of(name) for name in LIST_SIMILARITIES)
    return tuple(name for name in names if name != description.scores_by)


def labels_of(lists: ListScores, identity: str) -> npt.NDArray[np.bool_]:
    """Mark candidates that are the truth, in the sense of an identity."""
    return np.asarray((np.asarray(lists.identity) & IDENTITY_BITS[identity]) > 0)


def hit_rates(
    lists: ListScores, ties: Ties = "expected", identity: str = "fingerprint"
) -> tuple[dict[str, Floats], npt.NDArray[np.int32]]:
    """Hit rates at 1, 5 and 20, one value for each spectrum, and the molecule of each.

    A spectrum in whose list nothing is the truth in the sense of ``identity`` is left out.
    """
    labels = labels_of(lists, identity)
    lists = lists.select(Ragged(np.asarray(lists.counts)).any(labels))
    if not len(lists.counts):
        return {f"hit_rate@{k}": np.empty(0) for k in HITS}, lists.molecule
    ranks = rank_counts(lists.scores, lists.counts, labels_of(lists, identity))
    rates = {f"hit_rate@{k}": hit_rate_from_counts(ranks, k, ties) for k in HITS}
    return rates, lists.molecule


def fingerprint_metrics(
    predictions: Predictions, prepared: Prepared, names: Sequence[str] = FINGERPRINT_METRICS
) -> dict[str, Floats]:
    """Compare predicted fingerprints with the truth: one value a spectrum for each metric.

    Tanimoto and bit accuracy are those of the thresholded prediction.
    """
    values: dict[str, list[Floats]] = {name: [np.empty(0)] for name in names}
    for start in range(0, len(predictions.queries), _ROWS):
        rows = slice(start, start + _ROWS)
        soft = np.asarray(predictions.fingerprints)[rows].astype(np.float32)
        bits = csr_array(binarise(soft))
        truth = prepared.fingerprint_rows(predictions.molecule[rows])
        for name in names:
            is_of_bits = name in ("tanimoto", "bit_accuracy")
            values[name].append(getattr(metrics, name)(bits if is_of_bits else soft, truth))
    return {name: np.concatenate(parts) for name, parts in values.items()}


def validation_means(
    predictions: Predictions, prepared: Prepared, *, fingerprint: bool = True
) -> dict[str, float]:
    """Return validation means: hit rates (`hit_metric`) of all settings and rankings, Tanimoto.

    Without ``fingerprint``, what is predicted is not to be read as one, and has no Tanimoto.
    """
    means: dict[str, float] = {}
    for similarity, scored in ((None, predictions.lists), *predictions.rankings.items()):
        for setting, lists in scored.items():
            rates, molecule = hit_rates(lists)
            for k in HITS if len(molecule) else ():
                means[hit_metric(k, setting, similarity)] = float(rates[f"hit_rate@{k}"].mean())
    if fingerprint and predictions.fingerprints is not None and len(predictions.queries):
        [values] = fingerprint_metrics(predictions, prepared, ("tanimoto",)).values()
        means["tanimoto"] = float(values.mean())
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
        """Raise a RunError for a name that is unknown."""
        check_name(FOLDS, self.fold, "fold", RunError)
        if self.similarity is not None:
            check_name(LIST_SIMILARITIES, self.similarity, "similarity", RunError)
        check_name(TIES, self.ties, "ties", RunError)
        check_name(IDENTITY_BITS, self.identity, "identity", RunError)


def why_no_fingerprint(run: Run) -> str | None:
    """Why a run's model predicts nothing that can be read as a fingerprint; None where it does."""
    description = run.description
    if description.reports_fingerprint:
        return None
    if description.predicts_fingerprint:
        return (
            f"the bits that {description.name} predicts go into a network that scores candidates: "
            "nothing makes them the bits of the molecule"
        )
    return f"{description.name} predicts none"


def measurable(run: Run, how: Scoring, data: StrPath | None) -> Prepared:
    """Open the data of a run that can be scored as asked; RunError or CacheError if not."""
    how.check()
    if not run.best:
        raise RunError(f"{run.folder}: has no checkpoint yet; train it first, or --resume it")
    prepared = run.open_data(data)
    prepared.candidates(how.candidates)  # the error lists the settings there are
    if how.similarity and (reason := why_no_fingerprint(run)):
        raise RunError(
            f"{run.folder}: --similarity needs a predicted fingerprint, and {reason}; leave it out "
            "to score by the model itself"
        )
    return prepared


def ranking(run: Run, how: Scoring) -> str | None:
    """Return the similarity that ranks; None where the model's own score does."""
    kind = ranking_of(how.similarity) if how.similarity else None
    return None if kind == run.description.scores_by else kind


def best_metric(run: Run, requested: str) -> str:
    """Return the validation metric whose checkpoint a metric is read from: itself, or the next.

    A setting that was not validated has the checkpoint of another one: of that which the run is
    measured on, if there is one. A run that has none for a ranking by a similarity has that of the
    model's own.
    """
    best, kind = run.best, requested.partition("/")[0]
    usual = f"{kind}/{run.measured_on}"
    same_kind = [name for name in best if name.partition("/")[0] == kind]
    same_kind.sort(key=lambda name: not f"{name}/".startswith(f"{usual}/"))
    for name in (
        requested,
        *(name for name in same_kind if ranks_by(name) == ranks_by(requested)),
        "/".join(requested.split("/")[:2]),
        *(name for name in same_kind if ranks_by(name) is None),
    ):
        if name in best:
            return name
    raise RunError(f"{run.folder}: has no checkpoint that was chosen by {requested}")


def best_step(run: Run, requested: str) -> int:
    """Step of the checkpoint to read a metric from: that of `best_metric`."""
    return int(run.best[best_metric(run, requested)]["step"])


def checkpoint_steps(run: Run, how: Scoring) -> list[int]:
    """Return steps of the checkpoints for a ranking, or for the model's own where it has none."""
    by_ranking: dict[str | None, set[int]] = {}
    for name, best in run.best.items():
        by_ranking.setdefault(ranks_by(name), set()).add(int(best["step"]))
    return sorted(by_ranking.get(ranking(run, how)) or by_ranking[None])


def predictions_of(
    run: Run,
    prepared: Prepared,
    step: int,
    fold: str,
    progress: Progress,
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
    if run.description.fitted is not None and is_stale:
        raise RunError(
            f"{run.folder}: {setting} lists were drawn after it was fitted, so that it has "
            "predictions of others; run `mzseek fit` again"
        )
    if run.description.fitted is not None:
        raise RunError(
            f"{run.folder}: has no predictions of the {fold} fold; `mzseek fit` makes those of "
            "val and test, and only then"
        )
    if run.baseline is not None:
        predictions = random_fold(prepared, fold, run.seed)
    else:
        metric = next(name for name, best in run.best.items() if best["step"] == step)
        predictions = predict_fold(
            best_model(run, metric, prepared), prepared, fold,
            lambda done, total: progress("predicting", done, total),
            (similarity,) if similarity else (),
        )  # fmt: skip
        predictions = predictions.ranked_by(similarity) if similarity else predictions
    if run.finished:
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(sole_writer(folder, "saving predictions"))
            except (BusyError, WriteError):  # another saves the same, or the disk is read-only
                return predictions
            if not folder.is_dir() or is_stale:
                predictions.save(folder, label)
    return predictions


def scored_lists(
    run: Run, prepared: Prepared, how: Scoring, step: int, progress: Progress = silent
) -> ListScores:
    """Return candidates with the scores asked for, of the checkpoint of a step."""
    predictions = predictions_of(
        run, prepared, step, how.fold, progress, ranking(run, how), how.candidates
    )
    if how.candidates not in predictions.lists:
        raise RunError(f"the saved predictions have no candidates {how.candidates!r}")
    return predictions.lists[how.candidates]


def usable_lists(lists: ListScores, prepared: Prepared, how: Scoring) -> ListScores:
    """Return the lists that contain the truth, in an order that is independent of it."""
    ragged = Ragged(lists.counts)
    usable = ragged.any(labels_of(lists, how.identity))
    if not usable.any():
        raise RunError(
            f"{prepared.folder}: no {how.fold} spectrum has its molecule among its "
            f"{how.candidates} candidates in the sense of {how.identity}"
        )
    # A list may have the truth first, which would then win every tie. Molecules added later get
    # random positions and leave the order of the others unchanged.
    base = prepared.base_molecules
    shuffled = np.random.default_rng(0).permutation(base) / base
    shuffled = np.append(shuffled, np.random.default_rng(1).random(len(prepared.masses) - base))
    order = np.lexsort((shuffled[lists.candidates], ragged.list_index))
    ordered = replace(
        lists,
        candidates=lists.candidates[order],
        identity=lists.identity[order],
        scores=np.asarray(lists.scores)[order],
        parts=None,
    )
    return ordered.select(usable)


def molecule_groups(lists: ListScores) -> Ints:
    """Number the spectra, equally for those of one molecule that share a candidate list.

    Numbers rise with the first spectrum of each.
    """
    candidates = np.ascontiguousarray(lists.candidates)
    numbers: dict[tuple[int, bytes], int] = {}
    groups = np.empty(len(lists.counts), np.int64)
    starts = Ragged(lists.counts).starts
    for index, (start, count) in enumerate(zip(starts, lists.counts, strict=True)):
        key = int(lists.molecule[index]), candidates[start : start + count].tobytes()
        groups[index] = numbers.setdefault(key, len(numbers))
    return groups


def pool_lists(lists: ListScores, pooling: Pooling | None = None) -> tuple[ListScores, Ints]:
    """Add up the scores of each group of spectra; also return how many spectra each has.

    The query of a group is its first spectrum.
    """
    sums = pool_scores(lists.scores, lists.counts, molecule_groups(lists), pooling)
    first = np.zeros(len(lists.counts), bool)  # in the order of groups, whose numbers rise
    first[sums.first] = True
    return replace(lists.select(first), scores=sums.scores, parts=None), sums.spectra
