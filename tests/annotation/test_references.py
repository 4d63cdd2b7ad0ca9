"""Reference spectra behind an annotation: matches of the same precursor, and analogs of any."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.confidence import (
    MatchOdds,
    fit_match_odds,
    library_without_precursors,
    without_precursor,
)
from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import Hypothesis
from mzseek.annotation.query import FeatureQuery
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
    matched_intensity,
    neighbours,
    unlisted_match,
    unlisted_note,
)
from mzseek.core.errors import BundleError
from mzseek.library import Library
from mzseek.spectra import Spectrum

from .conftest import CAFFEINE, ISOMER, MASS, molecule


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
    return FeatureQuery(Feature("f", "index", (spectrum,)), (reading,), (), ("[M+H]+",), 0)


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


def test_a_candidate_is_credited_with_its_match_and_with_another_molecule(make_reference):
    alike = make_reference(smiles="Cn1c(=O)c2[nH]cnc2n(C)c1=O", similarity=0.5)
    same = make_reference(similarity=0.9)
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


@pytest.fixture
def near(make_reference):
    key = molecule(CAFFEINE).key
    match = make_reference(formula="C8H10N4O2", mass=MASS, similarity=0.99)
    return Neighbours({key: match}, {}, {key: 0.99})


def test_a_match_joins_from_its_bounds_on(make_reference) -> None:
    bounds = {"similarity": LEAST_SIMILARITY, "peaks": 3, "matched_intensity": LEAST_MATCHED}
    assert joins_candidates(make_reference(**bounds))
    for name, value in (("similarity", 0.69), ("peaks", 2), ("matched_intensity", 0.49)):
        assert not joins_candidates(make_reference(**bounds | {name: value}))


def test_the_molecule_of_a_match_becomes_a_candidate_marked_as_from_the_library(query, near):
    joined = add_library_candidates(query, near)
    assert {m.smiles for m in joined.molecules[0]} == {CAFFEINE, molecule(ISOMER).smiles}
    assert joined.found == 2
    [added] = [m for m in joined.molecules[0] if m.key == molecule(CAFFEINE).key]
    assert added.sources == (LIBRARY_SOURCE,)
    assert "Caffeine is a candidate because a reference spectrum of it matches" in joined.notes[-1]
    assert unlisted_match(joined, near) is None


def test_a_query_without_candidates_gets_those_of_its_matches(query, near):
    nothing = replace(query, molecules=(), found=0)
    assert [m.smiles for m in add_library_candidates(nothing, near).molecules[0]] == [CAFFEINE]


def test_a_match_that_is_a_candidate_or_of_another_mass_changes_nothing(query, near):
    listed = replace(query, molecules=([molecule(CAFFEINE)],))
    assert add_library_candidates(listed, near) is listed
    [(key, match)] = near.matches.items()
    other = Neighbours({key: replace(match, mass=180.0)}, {}, {})
    assert add_library_candidates(query, other) is query


def test_a_molecule_that_cannot_form_the_ion_does_not_join(query, near):
    water_loss = replace(query.readings[0], adduct="[M+H-H2O]+", adducts=("[M+H-H2O]+",))
    [match] = near.matches.values()
    oxygen_free = replace(match, smiles="CCCCCCCCCCCCCC", formula="C14H30", mass=MASS)
    only = replace(query, readings=(water_loss,), hypotheses=(water_loss,))
    assert add_library_candidates(only, Neighbours({"X": oxygen_free}, {}, {})) is only


def test_a_strict_list_reports_the_match_outside_it(query, near):
    match = unlisted_match(query, near)
    assert match is not None
    assert unlisted_note(match) == (
        "a reference spectrum of Caffeine matches at 0.99; Caffeine is not in your list"
    )


def test_matched_intensity_is_the_lower_share_without_precursors(make_peaks, make_reference):
    spectrum = make_peaks(mz=np.array([50.0, 60.0]), intensities=np.array([1.0, 3.0]))
    reference = make_reference(
        mz=np.array([60.01, 70.0, 195.0877]), intensities=np.array([1.0, 1.0, 50.0])
    )
    assert matched_intensity(spectrum, reference) == pytest.approx(0.5)
    assert matched_intensity(spectrum, make_reference(mz=np.zeros(0), intensities=np.zeros(0))) == 0


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


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """80 molecules, pairs of one mass; each measured by two contributors, nearly alike."""
    from mzseek.chem import exact_mass, precursor_mz

    folder = tmp_path_factory.mktemp("library")
    rng = np.random.default_rng(0)
    text = ""
    for number in range(40):
        chain = "C" * (number % 20 + 2)
        ring = "c1ccccc1" if number < 20 else "c1ccncc1"
        for smiles in (f"{chain}O{ring}", f"{chain[:-1]}OC{ring}"):
            mz = np.sort(rng.uniform(50, 150, 12)).round(3)
            heights = rng.uniform(0.1, 1, 12)
            for whose in ("Anna", "Berta"):
                peaks = heights * rng.uniform(0.9, 1.1, 12)
                text += (
                    f"BEGIN IONS\nSPECTRUM_ID={smiles}-{whose}\nSMILES={smiles}\n"
                    f"CONTRIBUTOR={whose}\nADDUCT=[M+H]+\n"
                    f"PEPMASS={precursor_mz(exact_mass(smiles), '[M+H]+'):.5f}\n"
                    + "".join(f"{m} {h:.4f}\n" for m, h in zip(mz, peaks, strict=True))
                    + "END IONS\n"
                )
    (folder / "a.mgf").write_text(text)
    return Library.build(folder / "a.mgf", folder / "library")


def test_the_same_molecule_is_told_by_its_spectrum(library):
    odds = fit_match_odds(library, 1)
    assert (odds.same, odds.other) == (160, 160)
    assert (np.diff(odds.log_odds) >= 0).all()
    assert odds.of([0.0])[0] < -2
    assert odds.of([0.98])[0] > 2


def test_too_few_pairs_say_nothing(library, bundle):
    assert fit_match_odds(library, -1) is None
    assert fit_match_odds(bundle.library, 1) is None  # one contributor


def test_peaks_of_the_precursor_are_left_out_of_both_sides(library):
    bare = library_without_precursors(library)
    assert (len(bare), bare.ions) == (len(library), library.ions)
    mz, heights = np.array([50.0, 100.0, 100.3]), np.array([1.0, 9.0, 2.0])
    one = Spectrum(mz, heights, 100.1, "[M+H]+", 1, "a")
    assert without_precursor(one).mz.tolist() == [50.0]
    only = Spectrum(mz[1:], heights[1:], 100.1, "[M+H]+", 1, "a")
    assert without_precursor(only) is only


def test_plain_data_and_back():
    odds = MatchOdds(np.array([-1.0, 0.5, 3.0]), 70, 80)
    again = MatchOdds.from_dict(odds.to_dict())
    assert again.of([0.1, 0.5, 0.99]).tolist() == [-1.0, 0.5, 3.0]
    assert again.of([0.6])[0] > 0.5
    assert (again.same, again.other) == (70, 80)
    with pytest.raises(BundleError, match="has no nats"):
        MatchOdds.from_dict({"nats": [], "same": 0, "other": 0})
    with pytest.raises(BundleError):
        MatchOdds.from_dict({"nats": [1.0]})
