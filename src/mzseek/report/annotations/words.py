"""The words of the page: levels, goals, badges."""

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
