"""Metrics from predictions."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.choices import Ties
from mzseek.metrics import binarise, hit_rate_from_counts, rank_counts, tanimoto
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import Ragged
from mzseek.runs.description import Description
from mzseek.runs.predictions import ListScores, Predictions
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
    labels = (np.asarray(lists.identity) & IDENTITIES[identity]) > 0
    ragged = Ragged(np.asarray(lists.counts))
    usable = ragged.any(labels)
    scores, counts, molecule = np.asarray(lists.scores), lists.counts, lists.molecule
    if not usable.all():
        inside = ragged.spread(usable)
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
