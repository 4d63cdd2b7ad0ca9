"""The words of the page: levels, goals, badges."""

from collections.abc import Collection

from mzseek.annotation.answers import Answer
from mzseek.decision import UTILITIES

LEVELS = {
    "2a": "a reference spectrum of the same molecule matches",
    "2b": "what was measured fits no other structure",
    "3": "a likely structure among several",
    "4": "a formula, no structure",
    "5": "a mass, no more",
}
# What somebody wants who decides for it.
GOALS = {
    "hit": "the exact molecule, as often as possible",
    "tanimoto": "a molecule that shares most of its parts with the true one",
    "cosine": "shared parts, weighed against the size of both molecules",
    "bits": "as few wrong statements about parts as possible",
    "f1": "a balance of parts found and parts made up",
}
MATCH, EVIDENCE, ANALOGY = "library match", "evidence", "analogy"
CAPPED, UNLIKE, GUESSED, NOTHING = (
    "capped list",
    "unlike anything known",
    "ion guessed",
    "no answer",
)
_TELLING = 0.1  # nats


def goals() -> dict[str, str]:
    """Each objective, and what it is for."""
    return {name: GOALS.get(name, utility.label) for name, utility in UTILITIES.items()}


def percentage_words(
    *,
    knows_absence: bool,
    known: float | None = None,
    objectives: Collection[str] = ("hit",),
    has_prior: bool = False,
) -> list[str]:
    """What the percentages of a page mean, in sentences that are true for its run.

    Parameters
    ----------
    knows_absence : bool
        Whether they include the probability that the molecule is in the database.
    known : float, optional
        Share of features that is assumed to be in the database before spectra are looked at.
    objectives : collection of str
        What answers were chosen for.
    has_prior : bool
        Whether a prior is applied.
    """
    said = [
        "The probability that the answer is the molecule behind the spectrum (stereoisomers count "
        "as one molecule)."
    ]
    conditions = "your spectra are like those that this was measured on"
    whose = ""
    if knows_absence:
        share = (
            "a share of your features" if known is None else f"{100 * known:g} % of your features"
        )
        said.append(
            "It includes the probability that the molecule is in the database at all, which starts "
            f"from the assumption that {share} are (--known)."
        )
        conditions += " and this share is right"
    else:
        said.append(
            "This model does not estimate whether the molecule is in the database: percentages "
            "hold for features whose molecule is."
        )
        whose = ", of features whose molecule is in the database,"
    others = [each for each in sorted(objectives) if each != "hit"]
    if others:
        said.append(
            f"Answers were chosen for {', '.join(others)}, so that another candidate of the "
            "feature may have a higher percentage."
        )
    if has_prior:
        said.append(
            "A prior is applied. Percentages were checked without it: with it they are not rates "
            "of right answers."
        )
    else:
        said.append(f"Of 100 answers with 80 %{whose} about 80 are right, if {conditions}.")
    return said


def badges(answer: Answer) -> list[str]:
    """What a reader should see of an answer at a glance, the ground of the best candidate first."""
    found = []
    best = answer.best
    if best is None:
        found.append(NOTHING)
    elif best.match is not None:
        found.append(MATCH)
    else:
        analogy, evidence = answer.nats(best, "analogy"), answer.nats(best, "evidence")
        if evidence >= analogy or analogy < _TELLING:
            found.append(EVIDENCE)
        else:
            found.append(ANALOGY)
    if answer.scored < answer.found:
        found.append(CAPPED)
    if answer.unlike:
        found.append(UNLIKE)
    if best is not None and all(spectrum.adduct is None for spectrum in answer.feature.spectra):
        found.append(GUESSED)
    return found
