"""Reference spectra behind an annotation: matches of the same precursor, and analogs of any."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.config import Tolerance
from mzseek.annotation.features import Feature
from mzseek.annotation.query import FeatureQuery, Hypothesis
from mzseek.annotation.references import (
    HALF,
    LEAST_MATCHED,
    LEAST_PEAKS,
    LEAST_SIMILARITY,
    LIBRARY_SOURCE,
    MARGIN,
    PLAUSIBLE,
    LevelEvidence,
    Neighbours,
    add_library_candidates,
    credited,
    joins_candidates,
    level_of,
    library_without_precursors,
    matched_intensity,
    neighbours,
    unlisted_match,
    unlisted_note,
    without_precursor,
)
from mzseek.library import Library
from mzseek.spectra import Spectrum

from .conftest import CAFFEINE, ISOMER, MASS, a_candidate, a_reference, a_spectrum, molecule


def asked_of(library, record, **changes):
    """A feature whose spectrum is one of the library's own."""
    own = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    facts = {
        "mz": np.array(library.peaks.values[own]),
        "intensities": np.array(library.peaks.weights[own]),
        "precursor_mz": float(library.ions.precursors[record]),
        "adduct": "[M+H]+", "charge": 1, "identifier": "q",
    }  # fmt: skip
    spectrum = Spectrum(**(facts | changes))
    reading = Hypothesis("[M+H]+", ("[M+H]+",), spectrum.precursor_mz - 1.00728, 0.002)
    return FeatureQuery(Feature("f", "index", (spectrum,)), (reading,), (), (reading,), 0)


def test_a_spectrum_of_the_library_matches_itself(bundle):
    library = bundle.library
    (near,) = neighbours([asked_of(library, 3)], [("box", library)], Tolerance(10.0))
    best = next(iter(near.matches.values()))
    assert best.similarity == pytest.approx(1.0, abs=1e-6)
    assert best.library == "box"
    assert near.nearest == pytest.approx(1.0, abs=1e-6)
    molecule = library.molecules.slice(int(library.molecule_of[3]), 1).to_pylist()[0]
    assert next(iter(near.matches)) == molecule["inchikey"][:14]


def test_another_precursor_is_an_analog_and_no_match(bundle):
    library = bundle.library
    shifted = asked_of(library, 3, precursor_mz=float(library.ions.precursors[3]) + 14.0)
    (near,) = neighbours([shifted], [("box", library)], Tolerance(10.0))
    assert not near.matches
    assert near.nearest > 0.4


def test_what_counts_for_a_molecule_is_shown_however_few_peaks_match(make_library):
    peaks, heights = [60.05, 77.0386, 91.05], [1.0, 0.8, 0.01]
    library = Library.open(make_library([("NC(Cc1ccccc1)C(=O)O", "[M+H]+", peaks, heights)]))
    question = asked_of(library, 0, mz=np.array([60.05, 77.0386, 99.9]))
    (near,) = neighbours([question], [("mine", library)], Tolerance(10.0))
    (match,) = near.matches.values()
    assert (match.peaks, match.similarity >= LEAST_SIMILARITY) == (2, True)
    assert list(near.similar) == list(near.matches)


def test_references_have_the_names_of_their_molecules(bundle):
    library = bundle.library
    keys = [text[:14] for text in library.molecules["inchikey"].to_pylist()]
    names = {key: f"name of {key}" for key in keys}
    (near,) = neighbours([asked_of(library, 3)], [("box", library)], Tolerance(10.0), names)
    assert near.analogs
    for found in (near.matches, near.analogs):
        assert all(reference.name == names[key] for key, reference in found.items())


def test_no_libraries_and_no_features(bundle):
    assert neighbours([], [("box", bundle.library)], Tolerance(10.0)) == []
    (near,) = neighbours([asked_of(bundle.library, 3)], [], Tolerance(10.0))
    assert (near.nearest, len(near.matches)) == (0.0, 0)


def test_a_candidate_is_credited_with_its_match_and_with_another_molecule():
    alike = a_reference(smiles="Cn1c(=O)c2[nH]cnc2n(C)c1=O", similarity=0.5)
    same = a_reference(similarity=0.9)
    near = Neighbours({"RYYVLZVUVIJVGH": same}, {"RYYVLZVUVIJVGH": same, "ZFXYFBGIUFBOJW": alike})
    smiles = ["Cn1c(=O)c2c(ncn2C)n(C)c1=O", "CCO"]
    found = credited(smiles, ["RYYVLZVUVIJVGH", "LFQSCWFLJHTTHZ"], near)
    match, analog = found[0]
    assert match is same
    assert analog.smiles == alike.smiles  # never the candidate itself
    assert 0 < analog.tanimoto < 1
    assert found[1][0] is None
    assert dataclasses.replace(analog, tanimoto=alike.tanimoto).record == alike.record
    assert credited([], [], near) == []


def test_a_coarse_tolerance_of_another_spectrum_brings_nothing_in(make_library, monkeypatch):
    """The search keeps so many records: those within a wider tolerance must not fill it."""
    monkeypatch.setattr("mzseek.annotation.references._MATCHES", 1)
    peaks, heights = [60.05, 77.0386, 91.05], [1.0, 0.8, 0.3]
    rows = [
        ("NC(Cc1ccccc1)C(=O)O", "[M+H]+", peaks, [1.0, 0.7, 0.3]),  # m/z 166.086
        ("COc1ccc(CCN)cc1C", "[M+H]+", peaks, heights),  # m/z 166.123, the more similar
    ]
    library = Library.open(make_library(rows))
    [place] = np.flatnonzero(np.abs(library.ions.precursors - 166.086) < 0.001).tolist()
    question = asked_of(library, place, mz=np.array(peaks), intensities=np.array(heights))
    light = asked_of(library, place, precursor_mz=20.0)
    tolerance = Tolerance(1.0, 0.01)  # 500 ppm of m/z 20
    (alone,) = neighbours([question], [("mine", library)], tolerance)
    beside, _ = neighbours([question, light], [("mine", library)], tolerance)
    assert list(alone.matches) == ["COLNVLDHVKWLRT"]
    assert beside.similar == alone.similar
    assert list(beside.matches) == list(alone.matches)


THEOBROMINE_KEY = "YAPQBXQYLJRXSA"
FORMULA = "C8H10N4O2"


def matched_level(match=(), probability=0.9, **grounds):
    """The level of a candidate with a library spectrum of its own molecule."""
    best = a_candidate(match=a_reference(**dict(match)), probability=probability)
    return level_of([best], LevelEvidence(**{"scored": 5, "p_in_database": 0.4} | grounds))


BOUNDS = {"similarity": LEAST_SIMILARITY, "peaks": LEAST_PEAKS, "matched_intensity": LEAST_MATCHED}
RIVALS = {THEOBROMINE_KEY: 0.97}


@pytest.mark.parametrize(
    ("match", "grounds", "problem"),
    [
        (BOUNDS, {}, None),
        ({"similarity": 0.6}, {}, "similarity 0.60, not 0.7"),
        (BOUNDS | {"similarity": 0.6999}, {}, "similarity 0.70, not 0.7"),
        ({"peaks": 1}, {}, "has 1 peak, and"),
        ({"peaks": LEAST_PEAKS - 1}, {}, f"has 5 peaks, and level 2a needs {LEAST_PEAKS}"),
        ({"matched_intensity": 0.3}, {}, "30% of the intensity"),
        (BOUNDS | {"matched_intensity": 0.49}, {}, "49% of the intensity"),
        ({}, {"p_in_database": PLAUSIBLE / 0.9}, None),
        ({}, {"p_in_database": 0.15 / 0.9}, "a confidence of 0.15"),
        ({}, {"scored": 1, "p_in_database": 0.9}, None),  # a lone candidate
        ({"similarity": 0.98}, {"similar": RIVALS}, "another molecule 0.97"),
        ({"similarity": 0.97 + MARGIN - 1e-6}, {"similar": RIVALS}, "another molecule 0.97"),
        ({"similarity": 0.97 + MARGIN + 1e-6}, {"similar": RIVALS}, None),
    ],
)
def test_a_library_match_is_level_2a_or_the_problem_is_said(match, grounds, problem) -> None:
    level = matched_level(match, **grounds)
    assert level.number == ("5" if problem else "2a")
    assert problem is None or problem in level.reason


@pytest.mark.parametrize(
    ("match", "grounds", "number"),
    [
        ({}, {}, "3"),
        ({}, {"matched": 0.5}, "5"),  # the molecule may as well be one without a match
        ({}, {"scored": 1}, "5"),
        ({}, {"unlisted": a_reference()}, "5"),
        ({"peaks": LEAST_PEAKS - 1}, {}, "5"),
    ],
)
def test_one_of_several_isomers_that_match_is_level_3(match, grounds, number) -> None:
    usual = {"similar": RIVALS, "matched": 0.6, "p_in_database": 0.9, "is_reached": False}
    level = matched_level({"similarity": 0.98} | match, **usual | grounds)
    assert level.number == number


def test_the_reason_of_a_lone_candidate_does_not_deny_its_match() -> None:
    level = matched_level({"similarity": 0.98}, scored=1, similar=RIVALS)
    assert level.reason.startswith("exact mass only: it is the only candidate for [M+H]+; its")
    alone = level_of([a_candidate()], LevelEvidence(scored=1))
    assert alone.reason.endswith("only candidate for [M+H]+, and no library spectrum of it matches")


def test_the_form_of_the_library_is_no_rival_of_the_form_of_the_database() -> None:
    salt, acid = "CC(=O)[O-].[Na+]", "QTBSBXVTEAMEQO"
    best = a_candidate(smiles="CC(=O)O", key=acid, match=a_reference(smiles=salt))
    similar = {acid: 0.93, "VMHLLURERBWHNL": 0.93}
    grounds = LevelEvidence(scored=3, p_in_database=0.5, similar=similar)
    assert level_of([best], grounds).number == "2a"


AHEAD = {FORMULA: 0.8, "C9H14N2O3": 0.2}


@pytest.mark.parametrize(
    ("probability", "explained", "grounds", "number"),
    [
        (HALF, 0.9, {}, "3"),
        (0.8, 0.9, {"p_in_database": 0.625}, "3"),
        (0.8, 0.9, {"p_in_database": 0.62}, "5"),
        (1.0, 0.9, {"scored": 1, "p_in_database": 0.99}, "5"),  # a lone candidate
        (0.9, 0.2, {"least_explained": 0.2}, "3"),
        (0.9, 0.19, {"least_explained": 0.2}, "5"),
        (0.9, 0.0, {}, "5"),
        (0.9, 0.9, {"is_reached": False}, "5"),
        (0.9, 0.9, {"unlisted": True}, "5"),
        (0.3, 0.9, {"formulas": AHEAD}, "4"),
        (0.3, 0.9, {"formulas": AHEAD, "p_in_database": 0.6}, "5"),
        (0.3, 0.9, {"formulas": {FORMULA: 1.0}}, "5"),  # no other formula to be ahead of
        (0.3, 0.0, {"formulas": AHEAD}, "5"),
    ],
)
def test_the_level_without_a_library_match(probability, explained, grounds, number) -> None:
    if "unlisted" in grounds:
        grounds = {"unlisted": a_reference()}
    best = a_candidate(probability=probability, explained=explained)
    assert level_of([best], LevelEvidence(**{"scored": 5} | grounds)).number == number
    assert level_of([], LevelEvidence()).number == "5"


@pytest.fixture
def near():
    key = molecule(CAFFEINE).key
    match = a_reference(formula="C8H10N4O2", mass=MASS, similarity=0.99)
    return Neighbours({key: match}, {}, {key: 0.99})


def test_a_match_joins_from_its_bounds_on() -> None:
    bounds = {"similarity": LEAST_SIMILARITY, "peaks": 3, "matched_intensity": LEAST_MATCHED}
    assert joins_candidates(a_reference(**bounds))
    for name, value in (("similarity", 0.69), ("peaks", 2), ("matched_intensity", 0.49)):
        assert not joins_candidates(a_reference(**bounds | {name: value}))


def test_the_molecule_of_a_match_becomes_a_candidate_marked_as_from_the_library(query, near):
    joined = add_library_candidates(query, near)
    assert {m.smiles for m in joined.molecules[0]} == {CAFFEINE, molecule(ISOMER).smiles}
    assert joined.found == 2
    [added] = [m for m in joined.molecules[0] if m.key == molecule(CAFFEINE).key]
    assert added.sources == (LIBRARY_SOURCE,)
    assert "Caffeine is a candidate because a reference spectrum of it matches" in joined.notes[-1]
    assert unlisted_match(joined, near) is None
    nothing = replace(query, molecules=(), found=0)
    assert [m.smiles for m in add_library_candidates(nothing, near).molecules[0]] == [CAFFEINE]


def test_a_match_that_is_a_candidate_or_of_another_mass_changes_nothing(query, near):
    listed = replace(query, molecules=([molecule(CAFFEINE)],))
    assert add_library_candidates(listed, near) is listed
    [(key, match)] = near.matches.items()
    other = Neighbours({key: replace(match, mass=180.0)}, {}, {})
    assert add_library_candidates(query, other) is query


def test_a_molecule_that_cannot_form_the_ion_does_not_join(query, near):
    water_loss = replace(query.hypotheses[0], adduct="[M+H-H2O]+", adducts=("[M+H-H2O]+",))
    [match] = near.matches.values()
    oxygen_free = replace(match, smiles="CCCCCCCCCCCCCC", formula="C14H30", mass=MASS)
    only = replace(query, hypotheses=(water_loss,), tried=(water_loss,))
    assert add_library_candidates(only, Neighbours({"X": oxygen_free}, {}, {})) is only


def test_a_strict_list_reports_the_match_outside_it(query, near):
    match = unlisted_match(query, near)
    assert match is not None
    assert unlisted_note(match) == (
        "a reference spectrum of Caffeine matches at 0.99; Caffeine is not in your list"
    )


def test_matched_intensity_is_the_lower_share_without_precursors():
    spectrum = a_spectrum(mz=np.array([50.0, 60.0]), intensities=np.array([1.0, 3.0]))
    reference = a_reference(
        mz=np.array([60.01, 70.0, 195.0877]), intensities=np.array([1.0, 1.0, 50.0])
    )
    assert matched_intensity(spectrum, reference) == pytest.approx(0.5)
    assert matched_intensity(spectrum, a_reference(mz=np.zeros(0), intensities=np.zeros(0))) == 0


def test_a_known_formula_keeps_other_molecules_out(query, near):
    other = replace(query, formula="C9H14N2O3")
    assert add_library_candidates(other, near) is other
    same = add_library_candidates(replace(query, formula="C8H10N4O2"), near)
    assert molecule(CAFFEINE).key in {m.key for m in same.molecules[0]}


def test_a_match_outside_the_list_must_be_better_than_those_of_candidates(query, near):
    [isomer] = query.molecules[0]
    better = replace(near, similar={**near.similar, isomer.key: 0.995})
    assert unlisted_match(query, near) is not None
    assert unlisted_match(query, better) is None


def test_peaks_of_the_precursor_are_left_out_of_both_sides(bundle):
    library = bundle.library
    bare = library_without_precursors(library)
    assert (len(bare), bare.ions) == (len(library), library.ions)
    mz, heights = np.array([50.0, 100.0, 100.3]), np.array([1.0, 9.0, 2.0])
    one = Spectrum(mz, heights, 100.1, "[M+H]+", 1, "a")
    assert without_precursor(one).mz.tolist() == [50.0]
    only = Spectrum(mz[1:], heights[1:], 100.1, "[M+H]+", 1, "a")
    assert without_precursor(only) is only
