"""Advise a fingerprint and a loss for a candidate set and a goal."""

from dataclasses import dataclass

from mzseek.core.errors import DecisionError
from mzseek.core.registry import check_name
from mzseek.decision.bounds import bound_hit_under_similarity, bound_similarity_under_hit
from mzseek.decision.utilities import BAND_SIMILARITIES, GOALS, UTILITIES

# The metric of a goal, in the words of the losses' registry.
METRICS = {
    "hit": "hit_rate@1",
    "tanimoto": "tanimoto",
    "cosine": "cosine",
    "bits": "bit_accuracy",
}


@dataclass(frozen=True)
class BandRow:
    """Similarity band of one fingerprint kind, and what can be lost with it.

    Attributes
    ----------
    fingerprint : str
    low, high : float
        Medians of σ_min and σ_max over the lists, the truth against its candidates.
    similarity_loss : float
        Most that deciding for HR@1 can lose in similarity, in a list with this band.
    hit_loss : float
        Most that deciding for the similarity can lose in HR@1.

    Both are fractions, of the similarity and of HR@1: they are never compared with each other.
    """

    fingerprint: str
    low: float
    high: float
    similarity_loss: float
    hit_loss: float


@dataclass(frozen=True)
class Advice:
    """What to train with.

    Attributes
    ----------
    goal : str
    loss : str
    fingerprint : str
        The one with the least to lose of what the goal is measured in.
    compared : str or None
        What the fingerprints were compared in: "hit", or a similarity. None for bits, which are not
        comparable; then the fingerprint is the one that the data have.
    rows : list of BandRow
        The least to lose first; the data's own first where nothing was compared.
    reasons : list of str
        In plain words.
    """

    goal: str
    loss: str
    fingerprint: str
    compared: str | None
    rows: list[BandRow]
    reasons: list[str]


def band_row(fingerprint: str, low: float, high: float, p_star: float) -> BandRow:
    """Both bounds for a band, with the mode that probable and the worst other probability."""
    # The first bound is linear in p_Sim, so that it is largest at one of the ends.
    ends = (0.0, min(p_star, 1 - p_star))
    return BandRow(
        fingerprint,
        low,
        high,
        max(bound_hit_under_similarity(low, high, p_star, end) for end in ends),
        bound_similarity_under_hit(low, high, p_star),
    )


def advise(
    goal: str,
    medians: dict[str, dict[str, float]],
    p_star: float,
    data_kind: str,
    similarity: str = "tanimoto",
) -> Advice:
    """Advice from the similarity bands of several fingerprints.

    Parameters
    ----------
    goal : str
        "hit", "tanimoto", "cosine" or "bits".
    medians : dict of str to dict
        ``low`` and ``high`` by fingerprint, as `mzseek.decision.Bands.medians` gives them. For
        bits, that of ``data_kind`` must be among them.
    p_star : float
        How probable the best candidate usually is: the less, the more similarity ranking can lose;
        of HR@1, no more than this can be lost.
    data_kind : str
        Fingerprint that the data have: kept where no other is better.
    similarity : str
        What the bands are of. A goal that is a similarity needs bands of that one.
    """
    check_name(GOALS, goal, "goal", DecisionError)
    if not medians:
        raise DecisionError("no bands, expected those of at least one fingerprint")
    if goal in BAND_SIMILARITIES and goal != similarity:
        raise DecisionError(f"bands are of {similarity}, expected those of {goal}, the goal")
    rows = [band_row(kind, band["low"], band["high"], p_star) for kind, band in medians.items()]
    if not compares(goal) and data_kind not in medians:
        raise DecisionError(f"no band of {data_kind}, the fingerprint that the data have")
    rows.sort(key=lambda row: (*_to_lose(goal, row), row.fingerprint != data_kind))
    if not compares(goal):
        rows.sort(key=lambda row: row.fingerprint != data_kind)  # the others stay in their order
    reasons = _reasons(goal, rows, p_star, UTILITIES[similarity].label, data_kind)
    compared = goal if compares(goal) else None
    return Advice(goal, GOALS[goal], rows[0].fingerprint, compared, rows, reasons)


def compares(goal: str) -> bool:
    """Whether what can be lost of a goal is the same thing for every fingerprint, more or less.

    Bit accuracy is not: most bits of a long fingerprint are 0 whatever is decided, and one with few
    set bits can lose next to nothing of it.
    """
    return goal != "bits"


def _to_lose(goal: str, row: BandRow) -> tuple[float, float, float]:
    """Largest loss of the goal, then of the other metric, then the width of the band."""
    both = (round(row.hit_loss, 3), round(row.similarity_loss, 3))  # as they are shown, in points
    return (*(both if goal == "hit" else both[::-1]), row.high - row.low)


def _reasons(
    goal: str, rows: list[BandRow], p_star: float, similarity: str, data_kind: str
) -> list[str]:
    """Explain the choice of loss and fingerprint, in the points that the goal is measured in."""
    loss, best, worst = GOALS[goal], rows[0], rows[-1]
    other, metric = ("HR@1", similarity) if goal != "hit" else (similarity, "HR@1")
    cost = best.hit_loss if goal == "hit" else best.similarity_loss
    points = f"{100 * cost:.2g}" if goal != "hit" and cost < 0.1 else f"{100 * cost:.0f}"
    reasons = [
        f"Loss {loss}: it stands for {METRICS[goal]} and is trained for your goal.",
        f"{'Training' if goal == 'hit' else 'Ranking'} for {other} instead can cost up to {points} "
        f"points of {metric} with {best.fingerprint}, where the best candidate has "
        f"{100 * p_star:.0f} % of the probability.",
    ]
    if goal != "hit":
        reasons.append(
            "If candidate lists will be at hand, train emb-cos and decode it: `mzseek evaluate "
            f"runs/emb-cos` shows what its posterior is worth when decoded for {goal}. "
            f"{loss} predicts a fingerprint whatever the candidates."
        )
    if not compares(goal):
        reasons.append(
            f"Fingerprint {data_kind}, which the data have: bit accuracies of two fingerprints "
            "cannot be compared, since most bits are 0 whatever is decided."
        )
    if not compares(goal) or len(rows) == 1:
        return reasons
    smallest, largest = (f"{100 * _to_lose(goal, row)[0]:.1f}" for row in (best, worst))
    band = (
        f"Fingerprint {best.fingerprint}: its candidates' {similarity} lies between "
        f"{best.low:.2f} and {best.high:.2f} in the median list"
    )
    if smallest == largest:
        band += (
            f". All {len(rows)} can lose as much, {smallest} points of {metric}; it has the least "
            f"to lose of {other}."
        )
    else:
        band += (
            f", the least to lose of {len(rows)}: {smallest} points of {metric}; with "
            f"{worst.fingerprint} ({worst.low:.2f} to {worst.high:.2f}) it would be {largest}."
        )
    reasons.append(band)
    if goal != "hit" and best.fingerprint != data_kind:
        reasons.append(
            f"The {similarity} of another fingerprint is another number: compare models on one."
        )
    reasons.append(
        "A narrow band is not all: a fingerprint that is hard to predict leaves the posterior "
        "flat, and then no decision is worth much."
    )
    return reasons
