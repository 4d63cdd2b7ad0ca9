"""The paragraph about a feature: what it names, and what it must not claim."""

from dataclasses import replace

import pytest

from mzseek.annotation.annotation import Level
from mzseek.annotation.story import describe
from mzseek.classes import ClassProbability, CompoundClass
from mzseek.formulas import RankedFormula
from mzseek.proposals.proposal import Proposal

LEVEL_5 = Level("5", "exact mass only: the best candidate has confidence 0.08")
XANTHINES = ClassProbability(("Organoheterocyclic compounds", "Imidazopyrimidines"), 0.84)
KNOWN_CLASS = CompoundClass(((XANTHINES,), (XANTHINES,), (XANTHINES,)), XANTHINES)


def ranked(formula: str = "C8H10N4O2", probability: float = 0.93) -> RankedFormula:
    return RankedFormula(formula, "[M+H]+", probability, 194.0804, 0.0, 0.5, 2, None, 0.0)


@pytest.fixture
def make_theobromine(make_reference):
    """Its reference spectrum: CH2 less than caffeine."""

    def make(**changes):
        facts = {
            "smiles": "Cn1cnc2c1c(=O)[nH]c(=O)n2C", "name": "theobromine", "similarity": 0.71,
            "formula": "C7H8N4O2", "mass": 180.064726,
        }  # fmt: skip
        return make_reference(**(facts | changes))

    return make


def test_a_match_is_told_with_what_supports_it(
    make_annotation, make_candidate, make_reference
) -> None:
    annotation = make_annotation(
        candidates=(make_candidate(match=make_reference()),), scored=1, present=0.99,
        level=Level("2a", "library match"),
    )  # fmt: skip
    assert describe(annotation) == (
        "The best candidate is Caffeine (C8H10N4O2, as [M+H]+), with a probability of 79%. "
        "A reference spectrum of it matches (similarity 0.93, 8 peaks in common) and its fragments "
        "explain 97% of the intensity. No other candidate has this mass."
    )


def test_rivals_make_it_tentative(make_annotation) -> None:
    annotation = make_annotation()
    story = describe(annotation)
    assert story.startswith("The structure is tentative: the best candidate is Caffeine")
    assert "The next candidate is CCn1c(=O)[nH]c2ncn(C)c2c1=O (19%)" in story
    assert "the prediction set for 90% holds 2 candidates" in story
    assert "with a probability of 5% the molecule is none of the candidates" in story
    alone = replace(annotation, candidates=annotation.candidates[:1], found=1, scored=1)
    assert "No other candidate has this mass; with" in describe(alone)
    other = describe(replace(annotation, formulas=(ranked("C9H6O5", 0.6),)))
    assert other.endswith("another formula is more probable: C9H6O5, as [M+H]+ (60%).")


def test_an_unknown_has_formula_class_and_nearest(
    make_annotation, make_candidate, make_theobromine
) -> None:
    annotation = make_annotation(
        candidates=(make_candidate(probability=0.3), make_candidate(probability=0.2)), present=0.25,
        level=LEVEL_5, formulas=(ranked(),), compound_class=KNOWN_CLASS,
        nearest_reference=make_theobromine(),
    )  # fmt: skip
    assert describe(annotation) == (
        "No structure stands out: the best of 2 candidates, Caffeine, has a probability of 8%, and "
        "with a probability of 75% the molecule is none of them. "
        "The most probable formula is C8H10N4O2, as [M+H]+ (93%), and the compound class is "
        "probably Imidazopyrimidines (class, 84%). "
        "The most similar reference spectrum is of theobromine (similarity 0.71, 8 peaks in "
        "common); by this formula the molecule has CH2 more."
    )


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"formulas": ()}, "the molecule is 14.0157 Da heavier."),
        ({"formulas": (ranked("C8H10N4O2", 0.4),)}, "14.0157 Da heavier, as by CH2."),
        (
            {"formulas": (ranked("C6H10N4O4", 0.9),)},
            "by this formula the molecule has H2O2 more and C less.",
        ),
        (
            {"formulas": (ranked("C7H8N4O2", 0.9),)},
            "by this formula it is the same molecule or an isomer.",
        ),
        ({"formulas": (ranked("no formula", 0.9),)}, "8 peaks in common)."),
    ],
)
def test_difference_to_the_nearest_reference(
    make_annotation, make_theobromine, changes, difference
) -> None:
    annotation = make_annotation(
        candidates=(), found=0, level=LEVEL_5, nearest_reference=make_theobromine(), **changes
    )
    assert describe(annotation).endswith(difference)


def test_without_candidates_proposals_and_formula_remain(make_annotation) -> None:
    proposal = Proposal(
        "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "RYYVLZVUVIJVGH", "C8H10N4O2", 194.0804, "[M+H]+", 0.0, 0.5,
        0.12, 0.4, "Cn1cnc2c1c(=O)[nH]c(=O)n2C", "YAPQBXQYLJRXSA", "theobromine", "", 0.7,
        "add methyl", 14.0157, 1.0, 0.5, 3,
    )  # fmt: skip
    annotation = make_annotation(
        candidates=(), found=0, level=LEVEL_5, formulas=(ranked(probability=0.3),),
        proposals=(proposal,),
    )  # fmt: skip
    assert describe(annotation) == (
        "No candidate of this mass was found. No formula stands out: the first, C8H10N4O2, as "
        "[M+H]+, has a probability of 30%. The proposed structure, made from theobromine (add "
        "methyl), has a probability of 12%."
    )


@pytest.mark.parametrize(
    ("present", "said"),
    [
        (0.25, "No formula of the candidates stands out: the first, C8H10N4O2, as [M+H]+, has"),
        (0.9, "The most probable formula of the candidates is C8H10N4O2, as [M+H]+ ("),
    ],
)
def test_formulas_of_candidates_are_called_so(
    make_annotation, make_candidate, present: float, said: str
) -> None:
    candidates = (make_candidate(probability=0.6), make_candidate(probability=0.4))
    annotation = make_annotation(candidates=candidates, present=present, level=LEVEL_5)
    assert said in describe(annotation)
    ranked_too = replace(annotation, formulas=(ranked(),))
    assert "The most probable formula is C8H10N4O2" in describe(ranked_too)
    by_candidates = replace(ranked_too, level=Level("4", "formula"))
    assert said in describe(by_candidates)


@pytest.mark.parametrize("changes", [{"similarity": 0.2}, {"peaks": 1}])
def test_nothing_is_made_of_nothing(make_annotation, make_theobromine, changes) -> None:
    annotation = make_annotation(
        candidates=(), found=0, level=LEVEL_5, nearest_reference=make_theobromine(**changes)
    )
    expected = "No candidate of this mass was found. Only its m/z is known, 195.0877."
    assert describe(annotation) == expected


def test_level_5_names_no_structure_as_the_answer(make_annotation, make_reference) -> None:
    sure = make_annotation(level=Level("5", "exact mass only: it is the only candidate"))
    assert "76%, but the evidence does not suffice for a structure" in describe(sure)
    unlisted = describe(replace(sure, unlisted=make_reference(name="Theophylline")))
    assert "Theophylline, which is no candidate, matches" in unlisted


def test_a_match_of_the_best_candidate_is_no_other_molecule(
    make_annotation, make_candidate, make_reference
) -> None:
    annotation = make_annotation(
        candidates=(make_candidate(probability=0.3, match=make_reference()),), level=LEVEL_5,
        nearest_reference=make_reference(similarity=0.97, record="other"),
    )  # fmt: skip
    assert "is of Caffeine itself (similarity 0.97, 8 peaks in common)." in describe(annotation)
