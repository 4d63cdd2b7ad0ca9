"""Formulas of features: adduct hypotheses as annotation makes them, ranked without a database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mzseek.annotation.annotation import Annotation, Level
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.query import adduct_hypotheses, as_known
from mzseek.core.errors import AnnotationError, MoleculeError
from mzseek.core.text import pluralize
from mzseek.formulas import RankedFormula, ranked, score_formulas, shipped_model
from mzseek.formulas.scoring import SpectrumEvidence

IN_ANNOTATIONS = 10  # formulas that an annotation has
SURE = 0.9  # probability of a formula that makes level 4
# Beside candidates, heavy features are ranked without these elements: with them, their formulas
# are ten thousands, and take longer than all else.
HEAVY, LEFT_OUT = 700.0, ("F", "Br", "I")  # m/z


@dataclass(frozen=True)
class FeatureFormulas:
    """The formulas of a feature.

    Attributes
    ----------
    formulas : tuple of RankedFormula
        The most probable first; empty where none can be told.
    found : int
        Formulas that were enumerated, of all ions tried.
    notes : tuple of str
        Why there are none, or which ions were left out.
    """

    formulas: tuple[RankedFormula, ...]
    found: int = 0
    notes: tuple[str, ...] = ()


def feature_formulas(
    feature: Feature,
    config: AnnotateConfig,
    top: int,
    elements: Sequence[str] | None = None,
) -> FeatureFormulas:
    """Rank the formulas of a feature, with the ions and tolerances that candidates are sought with.

    Elements are those of the settings, unless others are given.

    Raises
    ------
    AnnotationError
        Its spectra contradict each other, or what was asked for.
    """
    tolerance, _ = as_known(feature, config.precursor_tolerance)
    hypotheses = adduct_hypotheses(feature, tolerance, config.ions)
    first = hypotheses[0]
    spectra = [
        spectrum
        for spectrum, adduct in zip(feature.spectra, first.adducts, strict=True)
        if adduct == first.adduct
    ]
    evidence = SpectrumEvidence.of(spectra)
    reach = tolerance.of(evidence.precursor_mz) / evidence.precursor_mz * 1e6
    model = shipped_model()
    adducts = [hypothesis.adduct for hypothesis in hypotheses]
    try:
        scored = score_formulas(
            evidence,
            adducts,
            reach,
            model,
            elements or config.formula_elements,
            stated=first.stated,
        )
    except MoleculeError as error:
        return FeatureFormulas((), 0, (f"no formulas: {error}",))
    return FeatureFormulas(ranked(scored, model, top), scored.found, scored.notes)


def formulas_beside_candidates(feature: Feature, config: AnnotateConfig) -> FeatureFormulas:
    """Rank the formulas of a feature that is annotated, of heavy ones without rare elements."""
    elements, notes = config.formula_elements, tuple[str, ...]()
    if feature.precursor_mz > HEAVY:
        elements = tuple(name for name in elements if name not in LEFT_OUT)
        if len(elements) < len(config.formula_elements):
            notes = ("formulas of F, Br and I were not tried above m/z 700: mzseek formula does",)
    try:
        result = feature_formulas(feature, config, IN_ANNOTATIONS, elements)
    except AnnotationError:  # which the annotation itself tells
        return FeatureFormulas(())
    return replace(result, notes=(*notes, *result.notes)) if result.formulas else result


def with_formulas(annotation: Annotation, found: FeatureFormulas) -> Annotation:
    """Add the formulas of a feature to its annotation, and what follows from them.

    A note says where candidates disagree; a feature of level 5 rises to level 4 if one formula is
    `SURE` enough.
    """
    return replace(
        annotation,
        formulas=found.formulas,
        level=_level(annotation.level, found.formulas),
        notes=(*annotation.notes, *found.notes, *disagreement(annotation, found.formulas)),
    )


def _level(level: Level, formulas: Sequence[RankedFormula]) -> Level:
    if level.number != "5" or not formulas or formulas[0].probability < SURE:
        return level
    first = formulas[0]
    return Level(
        "4",
        f"formula: without a database {first.formula} as {first.adduct} has probability "
        f"{first.probability:.2f} and explains "
        f"{pluralize(first.peaks_explained, 'peak', 'peaks')} ({first.explained:.0%} of the "
        f"intensity); no structure: {level.reason.partition(': ')[2] or level.reason}",
        first.formula,
    )


def disagreement(annotation: Annotation, formulas: Sequence[RankedFormula]) -> list[str]:
    """Return a note where the formulas of candidates and those without a database disagree."""
    if not annotation.candidates or not formulas:
        return []
    best = annotation.candidates[0]
    first = formulas[0]
    if (best.formula, best.adduct) == (first.formula, first.adduct):
        return []
    own = next(
        (f.probability for f in formulas if (f.formula, f.adduct) == (best.formula, best.adduct)),
        0.0,
    )
    if first.probability < 2 * own:
        return []
    return [
        f"without a database {first.formula} as {first.adduct} is more probable "
        f"({first.probability:.0%}) than the formula of the best candidate, {best.formula} as "
        f"{best.adduct} ({own:.0%})"
    ]
