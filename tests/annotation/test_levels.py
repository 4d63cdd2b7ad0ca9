"""Each level at its borders."""

import pytest

from mzseek.annotation.answers import Level, Reference
from mzseek.annotation.levels import HALF, LEAST_PEAKS, LEAST_SIMILARITY, MARGIN, level_of

THEOBROMINE = "Cn1cnc2c1c(=O)[nH]c(=O)n2C"
HEXANOL, HEXANONE = "CCCCCCO", "CCCCC(C)=O"


@pytest.fixture
def of(make_candidate, make_reference):
    """The level of one candidate with a library spectrum of its own molecule."""

    def level(similarity: float, peaks: int, *others, present: float | None = None) -> str:
        match = make_reference(similarity=similarity, peaks=peaks)
        best = make_candidate(match=match, probability=0.1, in_set=False)
        return level_of([best], 0, present, [match, *others]).number

    return level


def test_a_library_match_needs_similarity_and_peaks(of) -> None:
    assert of(LEAST_SIMILARITY, LEAST_PEAKS) == "2a"
    assert of(LEAST_SIMILARITY - 1e-9, LEAST_PEAKS) == "5"
    assert of(LEAST_SIMILARITY, LEAST_PEAKS - 1) == "5"


def test_a_library_match_stands_where_the_model_would_say_absent(of) -> None:
    assert of(0.9, 10, present=0.1) == "2a"


def test_another_molecule_that_matches_as_well_takes_it_away(of, make_reference) -> None:
    def other(similarity: float, peaks: int = LEAST_PEAKS):
        return make_reference(smiles=THEOBROMINE, similarity=similarity, peaks=peaks)

    assert of(0.9, 10, other(0.95)) == "5"
    assert of(0.9, 10, other(0.9 - MARGIN)) == "5"
    assert of(0.9, 10, other(0.9 - MARGIN - 1e-6)) == "2a"
    assert of(0.9, 10, other(0.95, LEAST_PEAKS - 1)) == "2a"


def test_the_same_molecule_written_otherwise_takes_nothing_away(of, make_reference) -> None:
    same = make_reference(smiles="O=C1N(C)C(=O)N(C)c2ncn(C)c12", similarity=0.99)
    assert of(0.9, 10, same) == "2a"
    assert of(0.9, 10, make_reference(smiles="no molecule", similarity=0.99)) == "5"


def test_a_molecule_that_the_database_has_in_another_form_is_the_same(
    make_candidate, make_reference
) -> None:
    salt, acid = "CC(=O)[O-].[Na+]", "CC(=O)O"
    match = make_reference(smiles=salt, similarity=0.9)
    again = make_reference(smiles="[Na+].CC([O-])=O", similarity=0.92)
    best = make_candidate(smiles=acid, key="QTBSBXVTEAMEQO", match=match)
    assert level_of([best], 1, None, [match, again]).number == "2a"


def test_half_the_probability_is_a_tentative_structure(make_candidate) -> None:
    def number(probability: float, present: float | None) -> str:
        best = make_candidate(probability=probability, in_set=False)
        return level_of([best], 0, present, []).number

    assert number(HALF, None) == "3"
    assert number(HALF - 1e-9, None) == "5"
    assert number(0.8, 0.625) == "3"
    assert number(0.8, 0.62) == "5"


def test_a_ring_framework_that_all_members_share_is_a_tentative_structure(
    make_candidate, make_other
) -> None:
    members = [make_candidate(probability=0.3), make_other(probability=0.3)]
    level = level_of(members, 2, 0.9, [])
    assert level.number == "3"
    assert level.reason.endswith(
        "all 2 candidates of the prediction set have one framework of rings"
    )
    alone = level_of(members[:1], 1, 0.9, [])
    assert alone.reason.endswith(
        "the only candidate of the prediction set has a framework of rings"
    )
    outside = make_candidate(smiles="c1ccccc1", formula="C6H6", in_set=False)
    assert level_of([*members, outside], 2, 0.9, []).number == "3"


@pytest.mark.parametrize("broken", ["", "no molecule"])
def test_members_that_no_framework_can_be_made_of_share_none(make_candidate, broken) -> None:
    members = [make_candidate(probability=0.3, smiles=broken)] * 2
    assert level_of(members, 2, None, []).number == "4"


def test_one_formula_without_a_common_framework_is_level_4(make_candidate) -> None:
    ring = make_candidate(smiles="OC1CCCCC1", formula="C6H12O", probability=0.4)
    chain = make_candidate(smiles=HEXANONE, formula="C6H12O", probability=0.4)
    assert level_of([ring, chain], 2, None, []) == Level(
        "4", "formula: all 2 candidates of the prediction set have C6H12O"
    )


def test_several_formulas_are_level_5(make_candidate) -> None:
    one = make_candidate(smiles=HEXANOL, formula="C6H14O", probability=0.4)
    other = make_candidate(smiles=HEXANONE, formula="C6H12O", probability=0.4)
    level = level_of([one, other], 2, None, [])
    assert level.number == "5"
    assert "2 formulas" in level.reason


def test_members_that_are_not_at_hand_are_not_vouched_for(make_candidate) -> None:
    assert level_of([make_candidate(probability=0.3)], 2, None, []).number == "5"


def test_absence_counts_before_what_members_share(make_candidate, make_other) -> None:
    members = [make_candidate(probability=0.9), make_other(probability=0.1)]
    assert level_of(members, 2, HALF, []).number == "3"  # one framework
    level = level_of(members, 2, HALF - 0.01, [])
    assert level.number == "5"
    assert "0.51" in level.reason


def test_no_candidates_are_level_5() -> None:
    assert level_of([], 0, 0.0, []).number == "5"


def test_a_match_that_makes_no_level_is_explained(make_candidate, make_reference) -> None:
    def reason(match: Reference, *others: Reference) -> str:
        best = make_candidate(probability=0.9, match=match)
        return level_of([best], 1, None, [match, *others]).reason

    few = reason(make_reference(similarity=0.98, peaks=4))
    assert few.endswith("its library match has 4 peaks, and 6 are asked for")
    assert "has 1 peak, and" in reason(make_reference(similarity=0.98, peaks=1))
    far = reason(make_reference(similarity=0.6, peaks=9))
    assert far.endswith("its library match is 0.60 like it, not 0.7")
    rival = make_reference(smiles=HEXANONE, similarity=0.97, peaks=9)
    near = reason(make_reference(similarity=0.98, peaks=9), rival)
    assert near.endswith(
        "a spectrum 0.97 like this one, with 9 matching peaks, is of another molecule"
    )


def test_where_no_peak_is_explained_there_is_no_structure(make_candidate) -> None:
    sure = {"probability": 0.99, "in_set": True}
    assert level_of([make_candidate(**sure)], 1, None, []).number == "3"
    level = level_of([make_candidate(**sure, peaks_explained=0)], 1, None, [])
    assert level.number == "4"
    assert level.reason.endswith("; no peak is explained by a piece of the best candidate")
