"""The annotation of a feature in two to four sentences, for readers who open it first.

The text says no more than the level: a structure is only put first from level 3 on. It is made of
an `Annotation` alone, so that table, report and terminal say the same.
"""

import numpy as np

from mzseek.annotation.annotation import Annotation, Candidate, Reference
from mzseek.annotation.formulas import disagreement
from mzseek.chem.adducts import neutral_mass
from mzseek.chem.formulas import parse_formula
from mzseek.chem.ions import mass_of_atoms
from mzseek.core.errors import MzseekError
from mzseek.core.text import pluralize, shorten
from mzseek.formulas.enumeration import (
    Ints,
    counts_of,
    element_limits,
    formula_text,
    parts_of_mass,
    twice_rdbe,
)

_STRUCTURES = ("2a", "2b", "3")  # levels at which a structure is named first
_LIKELY = 0.5
_SIMILAR, _COMMON_PEAKS = 0.4, 2  # of spectra: a less similar reference spectrum is not named
_WORTH_SAYING = 0.05  # probability
_NEARLY_NONE = 0.005  # probability that rounds to 0%
_MAX_NAME = 60  # characters
_ELEMENTS = "CHNOPS"  # of a difference whose formula is sought by its mass
_MAX_DIFFERENCE = 200.0  # Da: larger ones have several formulas


def describe(annotation: Annotation) -> str:
    """Describe the annotation of a feature in plain words.

    Of a structure (level 2a to 3): what supports it, its rivals, and what contradicts it. Of
    anything else: why there is no structure, the most probable formula, the compound class, the
    nearest reference spectrum with the difference to its molecule, and the first proposed
    structure.

    Parameters
    ----------
    annotation : Annotation

    Returns
    -------
    str
        Sentences, on one line.
    """
    best = annotation.best
    if best is not None and annotation.level.number in _STRUCTURES:
        sentences = _structure(annotation, best)
    else:
        sentences = _unknown(annotation)
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences if text)


def _structure(annotation: Annotation, best: Candidate) -> list[str]:
    tentative = "the structure is tentative: " if annotation.level.number == "3" else ""
    sentences = [
        f"{tentative}the best candidate is {_name(best)} ({best.formula}, as {best.adduct}), with "
        f"a probability of {_percent(annotation.confidence)}",
        _support(annotation, best),
        _rivals(annotation, best),
    ]
    if disagreement(annotation, annotation.formulas):
        first = annotation.formulas[0]
        sentences.append(
            f"without a database another formula is more probable: {first.formula}, as "
            f"{first.adduct} ({_percent(first.probability)})"
        )
    return sentences


def _support(annotation: Annotation, best: Candidate) -> str:
    reasons = []
    if best.match is not None:
        reasons.append(f"a reference spectrum of it matches {_similarity(best.match)}")
    reasons.append(f"its fragments explain {best.explained:.0%} of the intensity")
    analog = best.analog
    if best.match is None and analog is not None and _is_similar(analog):
        reasons.append(f"the spectrum resembles that of {_name(analog)} {_similarity(analog)}")
    return " and ".join(reasons)


def _rivals(annotation: Annotation, best: Candidate) -> str:
    others = [candidate for candidate in annotation.candidates if candidate is not best]
    if not others:
        text = "no other candidate has this mass" if annotation.scored == 1 else ""
    else:
        rival = max(others, key=lambda candidate: candidate.probability)
        probability = annotation.confidence_of(rival)
        text = f"the next candidate is {_name(rival)} ({_percent(probability)})"
        if probability < _NEARLY_NONE:
            text = f"every other candidate has a probability of {_percent(probability)}"
        if annotation.set_size > 1:
            text += (
                f", and the prediction set for {annotation.coverage:.0%} holds "
                f"{annotation.set_size:,} candidates"
            )
    missing = 0.0 if annotation.present is None else 1 - annotation.present
    if missing < _WORTH_SAYING:
        return text
    none = f"with a probability of {_percent(missing)} the molecule is none of the candidates"
    return f"{text}; {none}" if text else none


def _unknown(annotation: Annotation) -> list[str]:
    known = [
        *_formula_and_class(annotation),
        _nearest(annotation),
        _proposed(annotation),
    ]
    if not any(known):
        known = [f"only its m/z is known, {annotation.feature.precursor_mz:.4f}"]
    return [_no_structure(annotation), *known]


def _no_structure(annotation: Annotation) -> str:
    best = annotation.best
    if best is None:
        if not annotation.found:
            return "no candidate of this mass was found"
        return f"none of {pluralize(annotation.found, 'candidate', 'candidates')} could be scored"
    named = f"the best of {annotation.found:,} candidates, {_name(best)},"
    if annotation.found == 1:
        named = f"the only candidate, {_name(best)},"
    probability = f"{named} has a probability of {_percent(annotation.confidence)}"
    if annotation.confidence >= _LIKELY:
        return f"{probability}, but the evidence does not suffice for a structure"
    text = f"no structure stands out: {probability}"
    if annotation.present is not None and annotation.present < _LIKELY:
        missing = _percent(1 - annotation.present)
        none = "another" if annotation.found == 1 else "none of them"
        text += f", and with a probability of {missing} the molecule is {none}"
    return text


def _formula_and_class(annotation: Annotation) -> list[str]:
    """Return a sentence about both, or none."""
    sentences = []
    formula, adduct, probability = _most_probable_formula(annotation)
    which = "formula of the candidates" if _is_by_candidates(annotation) else "formula"
    if formula and probability >= _LIKELY:
        ion = f"{formula}, as {adduct}"
        sentences.append(f"the most probable {which} is {ion} ({_percent(probability)})")
    elif formula:
        sentences.append(
            f"no {which} stands out: the first, {formula}, as {adduct}, has a probability of "
            f"{_percent(probability)}"
        )
    found = annotation.compound_class
    if found is not None and found.answer is not None and found.answer.is_named:
        share = _percent(found.answer.probability)
        sentences.append(f"the compound class is probably {found.name} ({found.level}, {share})")
    return [", and ".join(sentences)] if sentences else []


def _is_by_candidates(annotation: Annotation) -> bool:
    """Whether level 4 is by candidates, or no formulas were ranked without a database."""
    is_level_by_candidates = annotation.level.number == "4" and not annotation.level.formula
    return is_level_by_candidates or not annotation.formulas


def _most_probable_formula(annotation: Annotation) -> tuple[str, str, float]:
    """Return a formula, its ion and the probability of both, which the level rests on."""
    if not _is_by_candidates(annotation):
        first = annotation.formulas[0]
        return first.formula, first.adduct, first.probability
    sums: dict[tuple[str, str], float] = {}
    for candidate in annotation.candidates:
        ion = candidate.formula, candidate.adduct
        sums[ion] = sums.get(ion, 0.0) + annotation.confidence_of(candidate)
    if not sums:
        return "", "", 0.0
    ion = min(sums, key=lambda ion: (-sums[ion], ion))
    return *ion, sums[ion]


def _nearest(annotation: Annotation) -> str:
    unlisted = annotation.unlisted
    if unlisted is not None:
        return (
            f"a reference spectrum of {_name(unlisted)}, which is no candidate, matches "
            f"{_similarity(unlisted)}"
        )
    nearest = annotation.nearest_reference
    if nearest is None or not _is_similar(nearest):
        return ""
    best = annotation.best
    if best is not None and best.match is not None and best.match.smiles == nearest.smiles:
        return (
            f"the most similar reference spectrum is of {_name(best)} itself {_similarity(nearest)}"
        )
    difference = _difference(annotation, nearest)
    return (
        f"the most similar reference spectrum is of {_name(nearest)} {_similarity(nearest)}"
        f"{difference and '; '}{difference}"
    )


def _difference(annotation: Annotation, reference: Reference) -> str:
    """Say what the molecule has more or less than that of a reference spectrum."""
    formula, adduct, probability = _most_probable_formula(annotation)
    try:
        if formula and probability >= _LIKELY:
            own = counts_of(parse_formula(formula)) - counts_of(parse_formula(reference.formula))
            return _by_counts(own)
        spectrum = annotation.feature.spectra[annotation.feature.representative]
        adduct = spectrum.adduct or adduct
        mass = neutral_mass(spectrum.precursor_mz, adduct)
        difference = mass - mass_of_atoms(reference.smiles, reference.mass)
    except MzseekError:  # an ion or an element that cannot be calculated with
        return ""
    reach = max(annotation.ppm * 1e-6 * annotation.feature.precursor_mz, annotation.least)
    if abs(difference) <= reach:
        return "the molecule has the same mass"
    text = f"the molecule is {abs(difference):.4f} Da {'heavier' if difference > 0 else 'lighter'}"
    exact = _only_formula(abs(difference), reach) if annotation.formulas else ""
    return text + (exact and f", as by {exact}")


def _by_counts(difference: Ints) -> str:
    parts = [
        f"{formula_text(np.maximum(sign * difference, 0))} {word}"
        for sign, word in ((1, "more"), (-1, "less"))
        if (sign * difference > 0).any()
    ]
    if not parts:
        return "by this formula it is the same molecule or an isomer"
    return f"by this formula the molecule has {' and '.join(parts)}"


def _only_formula(mass: float, reach: float) -> str:
    """Return the formula of a difference in mass if there is only one within reach."""
    if not reach < mass <= _MAX_DIFFERENCE:
        return ""
    limits = element_limits(mass, _ELEMENTS)
    found = parts_of_mass(mass - reach, mass + reach, limits, -2)
    found = found[twice_rdbe(found) % 2 == 0]
    return formula_text(found[0]) if len(found) == 1 else ""


def _proposed(annotation: Annotation) -> str:
    if not annotation.proposals:
        return ""
    first, number = annotation.proposals[0], len(annotation.proposals)
    which = (
        "the proposed structure" if number == 1 else f"the first of {number} proposed structures"
    )
    parent = shorten(first.parent_name or first.parent, _MAX_NAME)
    return (
        f"{which}, made from {parent} ({first.transformation}), has a probability of "
        f"{_percent(first.confidence)}"
    )


def _name(molecule: Candidate | Reference) -> str:
    if molecule.name or len(molecule.smiles) <= _MAX_NAME:
        return shorten(molecule.name or molecule.smiles, _MAX_NAME)
    return f"a molecule {molecule.formula} without a name"


def _is_similar(reference: Reference) -> bool:
    return reference.similarity >= _SIMILAR and reference.peaks >= _COMMON_PEAKS


def _similarity(reference: Reference) -> str:
    peaks = pluralize(reference.peaks, "peak", "peaks")
    return f"(similarity {reference.similarity:.2f}, {peaks} in common)"


def _percent(probability: float) -> str:
    if probability < _NEARLY_NONE:
        return "less than 1%"
    return "more than 99%" if 1 - _NEARLY_NONE <= probability < 1 else f"{probability:.0%}"
