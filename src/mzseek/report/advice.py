"""Which fingerprint and which loss, for a candidate set and a goal, and the bound that says why."""

from dataclasses import dataclass

from mzseek.decision import bound_hit_under_similarity, bound_similarity_under_hit
from mzseek.errors import DecisionError
from mzseek.losses import LOSSES

# What a goal is decoded for, and the loss of the paper that stands for it. Of the listwise losses,
# Emb-Cos ranks best in the paper's main table and in our own.
GOALS = {
    "hit": "emb-cos",
    "tanimoto": "iou",
    "cosine": "cosine",
    "bits": "bce",
}
_PREDICTS = "predicts a fingerprint whatever the candidates"


@dataclass(frozen=True)
class BandRow:
    """What the band of one fingerprint says.

    Attributes
    ----------
    fingerprint : str
    low, high : float
        Medians of σ_min and σ_max over the lists, the truth against its candidates.
    similarity_loss : float
        Most that deciding for HR@1 can lose in similarity, in a list with this band.
    hit_loss : float
        Most that deciding for the similarity can lose in HR@1.
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
        The one with the least to lose.
    rows : list of BandRow
        The least to lose first.
    reasons : list of str
        In plain words.
    """

    goal: str
    loss: str
    fingerprint: str
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
    goal: str, medians: dict[str, dict[str, float]], p_star: float, similarity: str = "tanimoto"
) -> Advice:
    """Advice from the similarity bands of several fingerprints.

    Parameters
    ----------
    goal : str
        "hit", "tanimoto", "cosine" or "bits".
    medians : dict of str to dict
        ``low`` and ``high`` by fingerprint, as `mzseek.decision.Bands.medians` gives them.
    p_star : float
        How probable the best candidate usually is: the less, the more similarity ranking can lose;
        of HR@1, no more than this can be lost.
    similarity : str
        What the bands are of.

    Returns
    -------
    Advice
    """
    if goal not in GOALS:
        raise DecisionError(f"goal {goal!r} is unknown, expected one of: {', '.join(GOALS)}")
    if not medians:
        raise DecisionError("no bands, expected those of at least one fingerprint")
    rows = [band_row(kind, each["low"], each["high"], p_star) for kind, each in medians.items()]
    rows.sort(key=lambda row: (row.hit_loss, row.similarity_loss, row.high - row.low))
    best = rows[0]
    return Advice(
        goal, GOALS[goal], best.fingerprint, rows, _reasons(goal, rows, p_star, similarity)
    )


def _reasons(goal: str, rows: list[BandRow], p_star: float, similarity: str) -> list[str]:
    best, worst = rows[0], rows[-1]
    loss = LOSSES[GOALS[goal]]
    sure = f"where the best candidate has {100 * p_star:.0f} % of the probability"
    said = [f"--loss {loss.name}: it stands for {loss.stands_for} and is trained for your goal."]
    if goal == "hit":
        said.append(
            f"Training for {similarity} instead can cost up to {100 * best.hit_loss:.0f} points of "
            f"HR@1 with {best.fingerprint}, {sure}."
        )
    elif goal == "bits":
        said.append("Bit accuracy is the sum over bits: no list of candidates enters it.")
    else:
        said.append(
            f"Ranking for HR@1 instead can cost up to {100 * best.similarity_loss:.0f} points of "
            f"{similarity} with {best.fingerprint}, {sure}."
        )
        said.append(
            "If candidate lists will be at hand, train emb-cos and decode it: `mzseek evaluate` "
            f"shows what its posterior is worth when decoded for {goal}. {loss.name} "
            f"{_PREDICTS}."
        )
    if len(rows) > 1:
        said.append(
            f"--fingerprint {best.fingerprint}: its candidates' {similarity} lies between "
            f"{best.low:.2f} and {best.high:.2f} in the median list, the least to lose of "
            f"{len(rows)}; with {worst.fingerprint} ({worst.low:.2f} to {worst.high:.2f}) it would "
            f"be {100 * worst.hit_loss:.0f} points of HR@1."
        )
        said.append(
            "A narrow band is not all: a fingerprint that is hard to predict leaves the posterior "
            "flat, and then no decision is worth much."
        )
    return said
