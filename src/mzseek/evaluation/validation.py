"""Metrics from predictions."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.choices import Ties
from mzseek.metrics import binarise, hit_rate_from_counts, rank_counts, tanimoto
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import IDENTITIES
from mzseek.ragged import Ragged
from mzseek.runs.predictions import ListScores, Predictions

HITS = (1, 5, 20)
_ROWS = 1024


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


def validation_means(predictions: Predictions, prepared: Prepared) -> dict[str, float]:
    """Means of a validation: ``hit_rate@1/mass`` and so on for every setting, and Tanimoto."""
    means: dict[str, float] = {}
    for setting, lists in predictions.lists.items():
        rates, _ = hit_rates(lists)
        means |= {f"{name}/{setting}": float(v.mean()) for name, v in rates.items() if len(v)}
    similarity = thresholded_tanimoto(predictions, prepared)
    if similarity is not None and len(similarity):
        means["tanimoto"] = float(similarity.mean())
    return means
