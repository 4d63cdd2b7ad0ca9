"""Formulas in annotations: beside the candidates, with a note, and for the level."""

from dataclasses import replace

import pytest

from mzseek.annotation.annotation import Level
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.formulas import (
    disagreement,
    feature_formulas,
    formulas_beside_candidates,
    with_formulas,
)
from mzseek.core.errors import AnnotationError
from mzseek.formulas import RankedFormula


def ranked(formula: str, probability: float, adduct: str = "[M+H]+") -> RankedFormula:
    return RankedFormula(formula, adduct, probability, 100.0, 0.0, 0.5, 2, None, 0.0)


def test_candidates_and_formulas_stand_side_by_side(make_annotation, make_candidate) -> None:
    own, other = make_candidate(probability=0.7), make_candidate(probability=0.2)
    annotation = make_annotation(candidates=(own, replace(other, formula="C9H9")))
    assert annotation.among_candidates(ranked(own.formula, 0.9, own.adduct)) == 0.7
    assert annotation.among_candidates(ranked("C9H9", 0.9, own.adduct)) == 0.2
    assert annotation.among_candidates(ranked("CH4", 0.9)) == 0.0


@pytest.mark.parametrize(("own", "other", "notes"), [(0.6, 0.3, 0), (0.3, 0.5, 0), (0.1, 0.8, 1)])
def test_disagreement_is_a_note(make_annotation, make_candidate, own, other, notes) -> None:
    best = make_candidate()
    formulas = [ranked("C9H99", other), ranked(best.formula, own, best.adduct)]
    formulas.sort(key=lambda formula: -formula.probability)
    found = disagreement(make_annotation(candidates=(best,)), formulas)
    assert len(found) == notes
    assert all("C9H99" in note and best.formula in note for note in found)


def test_a_sure_formula_makes_level_4(make_annotation, make_feature, make_peaks) -> None:
    spectrum = make_peaks()
    annotation = make_annotation(
        feature=make_feature(spectra=(spectrum,)), candidates=(), level=Level("5", "mass: x")
    )  # fmt: skip
    formulas = formulas_beside_candidates(annotation.feature, AnnotateConfig(ppm=5))
    found = with_formulas(annotation, formulas)
    assert found.formulas
    is_sure = found.formulas[0].probability >= 0.9
    assert found.level.number == ("4" if is_sure else "5")
    sure = replace(formulas, formulas=(ranked("C8H10N4O2", 0.953),))
    reason = with_formulas(annotation, sure).level.reason
    assert "has probability 0.95 and explains 2 peaks (50% of the intensity)" in reason
    kept = with_formulas(replace(annotation, level=Level("3", "y")), formulas)
    assert kept.level == Level("3", "y")


def test_contradictions_are_told_as_by_annotate(make_feature, make_peaks) -> None:
    feature = make_feature(spectra=(make_peaks(),))
    with pytest.raises(AnnotationError, match="was asked for"):
        feature_formulas(feature, AnnotateConfig(adduct="[M+K]+"), 3)
