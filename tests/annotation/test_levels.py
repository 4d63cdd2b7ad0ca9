"""Each level at its borders."""

import pytest

from mzseek.annotation.references import (
    HALF,
    LEAST_MATCHED,
    LEAST_PEAKS,
    LEAST_SIMILARITY,
    MARGIN,
    PLAUSIBLE,
    LevelEvidence,
    level_of,
)

THEOBROMINE_KEY = "YAPQBXQYLJRXSA"
FORMULA = "C8H10N4O2"


@pytest.fixture
def matched(make_candidate, make_reference):
    """The level of a candidate with a library spectrum of its own molecule."""

    def level(probability: float = 0.9, grounds: LevelEvidence | None = None, **match):
        reference = make_reference(**match)
        best = make_candidate(match=reference, probability=probability, in_set=False)
        return level_of(
            [best], grounds or LevelEvidence(scored=5, p_in_database=0.05 / probability)
        )

    return level


@pytest.fixture
def number(make_candidate):
    """The level of a candidate without a library spectrum."""

    def level(probability: float, *, explained: float = 0.9, **grounds):
        best = make_candidate(probability=probability, explained=explained)
        return level_of([best], LevelEvidence(**({"scored": 5} | grounds))).number

    return level


def test_a_library_match_needs_similarity_peaks_and_intensity(matched) -> None:
    ground = LevelEvidence(scored=5, p_in_database=0.4)
    bounds = {"similarity": LEAST_SIMILARITY, "peaks": LEAST_PEAKS,
              "matched_intensity": LEAST_MATCHED}  # fmt: skip
    assert matched(grounds=ground, **bounds).number == "2a"
    assert matched(grounds=ground, **bounds | {"similarity": 0.6999}).number == "5"
    assert matched(grounds=ground, **bounds | {"peaks": LEAST_PEAKS - 1}).number == "5"
    assert matched(grounds=ground, **bounds | {"matched_intensity": 0.49}).number == "5"


def test_a_library_match_needs_a_plausible_confidence(matched) -> None:
    likely = LevelEvidence(scored=5, p_in_database=PLAUSIBLE / 0.5)
    assert matched(0.5, likely).number == "2a"
    unlikely = LevelEvidence(scored=5, p_in_database=PLAUSIBLE / 0.5 - 0.1)
    assert matched(0.5, unlikely).number == "5"
    assert "a confidence of 0.15" in matched(0.5, unlikely).reason


def test_a_near_rival_takes_the_match_away_whatever_its_peaks(matched, make_candidate) -> None:
    def level(rival: float) -> str:
        similar = {THEOBROMINE_KEY: rival, make_candidate().key: 0.9}
        return matched(grounds=LevelEvidence(scored=5, p_in_database=0.4, similar=similar),
                       similarity=0.9).number  # fmt: skip

    assert level(0.95) == "5"
    assert level(0.9 - MARGIN + 1e-6) == "5"
    assert level(0.9 - MARGIN - 1e-6) == "2a"


def test_the_form_of_the_library_is_no_rival_of_the_form_of_the_database(
    make_candidate, make_reference
) -> None:
    salt, acid = "CC(=O)[O-].[Na+]", "QTBSBXVTEAMEQO"
    best = make_candidate(smiles="CC(=O)O", key=acid, match=make_reference(smiles=salt))
    similar = {acid: 0.93, "VMHLLURERBWHNL": 0.93}
    assert (
        level_of([best], LevelEvidence(scored=3, p_in_database=0.5, similar=similar)).number == "2a"
    )


def test_a_lone_candidate_is_level_5_unless_the_library_matches(number, matched) -> None:
    assert number(1.0, scored=1, p_in_database=0.99) == "5"
    assert matched(1.0, LevelEvidence(scored=1, p_in_database=0.9)).number == "2a"


def test_half_the_confidence_is_a_tentative_structure(number) -> None:
    assert number(HALF) == "3"
    assert number(0.8, p_in_database=0.625) == "3"
    assert number(0.8, p_in_database=0.62) == "5"


def test_a_structure_needs_explained_intensity(number) -> None:
    assert number(0.9, explained=0.2, least_explained=0.2) == "3"
    assert number(0.9, explained=0.19, least_explained=0.2) == "5"
    assert number(0.9, explained=0.0) == "5"


def test_a_structure_needs_a_score_that_true_molecules_reach(number) -> None:
    assert number(0.9, is_reached=False) == "5"


def test_a_match_outside_the_list_leaves_level_5(number, make_reference) -> None:
    assert number(0.9, unlisted=make_reference()) == "5"


def test_a_formula_ahead_of_others_is_level_4(number) -> None:
    ahead = {FORMULA: 0.8, "C9H14N2O3": 0.2}
    assert number(0.3, formulas=ahead) == "4"
    assert number(0.3, formulas=ahead, p_in_database=0.6) == "5"
    assert number(0.3, formulas={FORMULA: 1.0}) == "5"  # no other formula to be ahead of
    assert number(0.3, formulas=ahead, explained=0.0) == "5"


def test_no_candidates_are_level_5() -> None:
    assert level_of([], LevelEvidence()).number == "5"


def test_every_fault_of_a_match_is_said(matched) -> None:
    ground = LevelEvidence(scored=5, p_in_database=0.4)
    assert "has 4 peaks, and 6 are asked for" in matched(grounds=ground, peaks=4).reason
    assert "has 1 peak, and" in matched(grounds=ground, peaks=1).reason
    assert "similarity 0.60, not 0.7" in matched(grounds=ground, similarity=0.6).reason
    assert "30% of the intensity" in matched(grounds=ground, matched_intensity=0.3).reason
    rivals = LevelEvidence(scored=5, p_in_database=0.4, similar={THEOBROMINE_KEY: 0.97})
    assert "another molecule 0.97" in matched(grounds=rivals, similarity=0.98).reason
