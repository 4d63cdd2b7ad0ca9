"""How far an annotation goes, in the field's words: the levels of Schymanski et al. 2014.

Level 1 is never given: it needs a standard, measured on the same instrument. The others:

- **2a, a library match.** The library holds a spectrum of the best candidate's molecule that is at
  least `LEAST_SIMILARITY` like the feature's with `LEAST_PEAKS` matching peaks or more (the usual
  bounds of spectral libraries: 0.7 and 6), and no spectrum of another molecule that passes both
  bounds comes within `MARGIN` of it or before it.
- **3, tentative structures.** The best candidate is the molecule with probability `HALF` or more,
  absence from the database counted in; or the members of the prediction set have one framework of
  rings (the Bemis–Murcko scaffold), that is, a class of structure.
- **4, a formula.** All members of the prediction set have one formula.
- **5, an exact mass.** Nothing more is known: there are no candidates, or several formulas.

Where the molecule is more probably absent from the database than in it (``present`` below `HALF`),
members of the set say nothing about it, and neither 3 nor 4 is given.
"""

from collections.abc import Sequence

from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from mzseek.annotation.answers import Candidate, Level, Reference
from mzseek.chem import inchikey_block
from mzseek.errors import MoleculeError

LEAST_SIMILARITY = 0.7
LEAST_PEAKS = 6
MARGIN = 0.05
HALF = 0.5


def level_of(
    candidates: Sequence[Candidate],
    set_size: int,
    present: float | None,
    matches: Sequence[Reference],
) -> Level:
    """The level of an annotation, with its reason.

    Parameters
    ----------
    candidates : sequence of Candidate
        The best first; all members of the prediction set should be among them. Where some are not,
        nothing is taken for common to all.
    set_size : int
        Members of the prediction set.
    present : float or None
        Probability that the molecule is among the candidates; None where it is not known.
    matches : sequence of Reference
        Reference spectra of the same precursor m/z that match, of whatever molecule.

    Examples
    --------
    >>> level_of([], 0, None, [])
    Level(number='5', reason='exact mass only: no candidate has it')
    """
    if not candidates:
        return Level("5", "exact mass only: no candidate has it")
    best = candidates[0]
    if best.match is not None and _is_good(best.match):
        rival = _rival(best, best.match, matches)
        if rival is None:
            return Level("2a", f"library match: {_shown(best.match)} is of this molecule")
    level = _without_match(candidates, set_size, present)
    return Level(level.number, level.reason + _why_no_match(best, matches))


def _without_match(candidates: Sequence[Candidate], set_size: int, present: float | None) -> Level:
    """The level by probabilities alone."""
    best = candidates[0]
    if present is not None and present < HALF:
        return Level(
            "5", f"exact mass only: with probability {1 - present:.2f} no candidate is the molecule"
        )
    likely = best.probability * (1.0 if present is None else present)
    is_explained = best.peaks_explained > 0  # else the spectrum says nothing about a structure
    if likely >= HALF and is_explained:
        return Level("3", f"tentative structure: the best candidate has confidence {likely:.2f}")
    members = [candidate for candidate in candidates if candidate.in_set]
    if not members or len(members) < set_size:
        return Level("5", "exact mass only: not all candidates of the prediction set are known")
    one = len(members) == 1
    counted = "the only candidate" if one else f"all {len(members):,} candidates"
    have = f"{counted} of the prediction set {'has' if one else 'have'}"
    if is_explained and _framework_of_all(members):
        what = "a framework of rings" if one else "one framework of rings"
        return Level("3", f"tentative structure{'' if one else 's'}: {have} {what}")
    formulas = {candidate.formula for candidate in members}
    why = "" if is_explained else "; no peak is explained by a piece of the best candidate"
    if len(formulas) == 1 and best.formula:
        return Level("4", f"formula: {have} {members[0].formula}{why}")
    return Level(
        "5",
        f"exact mass only: candidates of the prediction set have {len(formulas):,} formulas{why}",
    )


def _why_no_match(best: Candidate, matches: Sequence[Reference]) -> str:
    """Why a reference spectrum of the best candidate does not make a level of its own."""
    match = best.match
    if match is None:
        return ""
    if match.peaks < LEAST_PEAKS:
        many = "1 peak" if match.peaks == 1 else f"{match.peaks:,} peaks"
        return f"; its library match has {many}, and {LEAST_PEAKS} are asked for"
    if match.similarity < LEAST_SIMILARITY:
        return f"; its library match is {match.similarity:.2f} like it, not {LEAST_SIMILARITY:g}"
    rival = _rival(best, match, matches)
    return "" if rival is None else f"; {_shown(rival)} is of another molecule"


def _is_good(match: Reference) -> bool:
    return match.similarity >= LEAST_SIMILARITY and match.peaks >= LEAST_PEAKS


def _rival(best: Candidate, match: Reference, matches: Sequence[Reference]) -> Reference | None:
    """A good match of another molecule that comes near the candidate's own, or before it."""
    own = {best.key, _key(match.smiles)} - {None}  # the database may have it in another form
    for other in matches:
        if _is_good(other) and other.similarity >= match.similarity - MARGIN:
            if other.smiles == match.smiles or _key(other.smiles) in own:
                continue
            return other
    return None


def _key(smiles: str) -> str | None:
    try:
        return inchikey_block(smiles)
    except MoleculeError:
        return None


def _framework_of_all(members: Sequence[Candidate]) -> str | None:
    """The framework of rings that all have; None where they differ, or where one has no ring."""
    common = None
    for member in members:
        try:
            framework = MurckoScaffoldSmiles(member.smiles)
        except ValueError:  # a SMILES that RDKit does not read
            return None
        if not framework or framework != (common or framework):
            return None
        common = framework
    return common


def _shown(match: Reference) -> str:
    return f"a spectrum {match.similarity:.2f} like this one, with {match.peaks:,} matching peaks,"
