"""Confidence levels of an annotation, after Schymanski et al. 2014.

Level 1 is never given: it needs a standard, measured on the same instrument. The others:

- **2a, library match.** The library holds a spectrum of the best candidate's molecule whose cosine
  with the feature's spectrum is at least `LEAST_SIMILARITY`, with `LEAST_PEAKS` matching peaks or
  more and `LEAST_MATCHED` of the intensity in them; no spectrum of another molecule at this
  precursor m/z comes within `MARGIN` of it, whatever its number of peaks; and the confidence is at
  least `PLAUSIBLE`.
- **3, tentative structure.** The confidence of the best candidate (its probability times the
  probability that the molecule is in the database) is at least `HALF`, its fragments explain the
  intensity that true molecules explain, and its score is as far ahead of wrong molecules as that
  of true molecules.
- **4, formula.** One formula has probability `HALF` or more (times that of the database), is
  preferred to at least one other formula, and the best candidate's fragments explain the spectrum.
- **5, exact mass.** Everything else. A lone candidate, one that explains too little, or a list
  that a better library match is missing from, is never above 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mzseek.annotation.answers import Candidate, Level, Reference
from mzseek.chem import inchikey_block
from mzseek.errors import MoleculeError

LEAST_SIMILARITY = 0.7
LEAST_PEAKS = 6
LEAST_MATCHED = 0.5
MARGIN = 0.05
PLAUSIBLE = 0.2
HALF = 0.5


@dataclass(frozen=True)
class Grounds:
    """What a level rests on besides the candidates.

    Attributes
    ----------
    scored : int
        Candidates that were compared.
    p_in_database : float or None
        Probability that the molecule is among the candidates; None where it is not known.
    similar : mapping of str to float
        By InChIKey (first block), similarity of the best library spectrum of every molecule that
        the library has at this precursor m/z.
    unlisted : Reference or None
        A matching reference spectrum whose molecule is no candidate.
    formulas : mapping of str to float
        Posterior probability of each formula among the candidates.
    is_reached : bool
        Whether the best score is as far ahead of wrong molecules as that of true molecules.
    least_explained : float
        Share of the intensity that true molecules explain at least.
    """

    scored: int = 0
    p_in_database: float | None = None
    similar: Mapping[str, float] = field(default_factory=dict)
    unlisted: Reference | None = None
    formulas: Mapping[str, float] = field(default_factory=dict)
    is_reached: bool = True
    least_explained: float = 0.0


def is_good_match(match: Reference) -> bool:
    """Return whether a reference spectrum passes the bounds of a library match."""
    return (
        match.similarity >= LEAST_SIMILARITY
        and match.peaks >= LEAST_PEAKS
        and match.matched_intensity >= LEAST_MATCHED
    )


def level_of(candidates: Sequence[Candidate], grounds: Grounds) -> Level:
    """Return the level of an annotation, with its reason.

    Parameters
    ----------
    candidates : sequence of Candidate
        The best first.
    grounds : Grounds

    Examples
    --------
    >>> level_of([], Grounds())
    Level(number='5', reason='exact mass only: no candidate has it')
    """
    if not candidates:
        return Level("5", "exact mass only: no candidate has it")
    best = candidates[0]
    p_in_database = 1.0 if grounds.p_in_database is None else grounds.p_in_database
    confidence = best.probability * p_in_database
    if best.match is not None:
        fault = _fault_of_match(best, best.match, confidence, grounds)
        if fault is None:
            return Level("2a", f"library match: {_shown(best.match)} is of this molecule")
        level = _without_match(best, confidence, p_in_database, grounds)
        return Level(level.number, f"{level.reason}; {fault}")
    return _without_match(best, confidence, p_in_database, grounds)


def _without_match(
    best: Candidate, confidence: float, p_in_database: float, grounds: Grounds
) -> Level:
    """Return the level by the evidence of the candidates."""
    if grounds.unlisted is not None:
        name = grounds.unlisted.name or grounds.unlisted.smiles
        return _five(f"a reference spectrum of {name[:80]}, which is no candidate, matches")
    if grounds.scored < 2:
        return _five("it is the only candidate, and no library spectrum of it matches")
    if best.explained < max(grounds.least_explained, 1e-9):
        return _five(
            f"fragments of the best candidate explain {best.explained:.0%} of the intensity, "
            f"and {grounds.least_explained:.0%} is the least of true molecules"
        )
    if not grounds.is_reached:
        return _five("the best candidate is less far ahead of wrong molecules than true ones are")
    if confidence >= HALF:
        return Level(
            "3", f"tentative structure: the best candidate has confidence {confidence:.2f}"
        )
    formula = max(grounds.formulas, key=lambda name: grounds.formulas[name], default="")
    likely = grounds.formulas.get(formula, 0.0) * p_in_database
    if formula and len(grounds.formulas) > 1 and likely >= HALF:
        return Level("4", f"formula: {formula} has probability {likely:.2f}")
    if p_in_database < HALF:
        missing = 1 - p_in_database
        return _five(f"with probability {missing:.2f} no candidate is the molecule")
    return _five(f"the best candidate has confidence {confidence:.2f}")


def _five(reason: str) -> Level:
    return Level("5", f"exact mass only: {reason}")


def _fault_of_match(
    best: Candidate, match: Reference, confidence: float, grounds: Grounds
) -> str | None:
    """Return why the best candidate's library match is no level 2a; None if it is."""
    if match.peaks < LEAST_PEAKS:
        many = "1 peak" if match.peaks == 1 else f"{match.peaks:,} peaks"
        return f"its library match has {many}, and {LEAST_PEAKS} are asked for"
    if match.similarity < LEAST_SIMILARITY:
        return f"its library match has similarity {match.similarity:.2f}, not {LEAST_SIMILARITY:g}"
    if match.matched_intensity < LEAST_MATCHED:
        return (
            f"its library match shares {match.matched_intensity:.0%} of the intensity, and "
            f"{LEAST_MATCHED:.0%} is asked for"
        )
    # The database may hold the library's molecule in another form.
    own = {best.key, _key(match.smiles)}
    rival = max((value for key, value in grounds.similar.items() if key not in own), default=0.0)
    if rival > match.similarity - MARGIN:
        return (
            f"its library match has similarity {match.similarity:.2f}, and one of another "
            f"molecule {rival:.2f}"
        )
    if confidence < PLAUSIBLE:
        return f"it has a library match, but a confidence of {confidence:.2f}"
    return None


def _key(smiles: str) -> str | None:
    try:
        return inchikey_block(smiles)
    except MoleculeError:
        return None


def _shown(match: Reference) -> str:
    return (
        f"a reference spectrum with similarity {match.similarity:.2f} and {match.peaks:,} matching "
        "peaks"
    )
