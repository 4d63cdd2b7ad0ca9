"""Candidates from library matches."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.candidates import Molecule
from mzseek.annotation.hypotheses import Hypothesis
from mzseek.annotation.query import FeatureQuery
from mzseek.annotation.references import (
    LEAST_MATCHED,
    LEAST_SIMILARITY,
    LIBRARY_SOURCE,
    Neighbours,
    add_library_candidates,
    joins_candidates,
    matched_intensity,
    unlisted_match,
    unlisted_note,
)
from mzseek.bundle.molecules import BundledMolecules, molecule_table
from mzseek.chem.molecules import describe_structure

CAFFEINE, THEOBROMINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "Cn1cnc2c1c(=O)[nH]c(=O)n2C"
ISOMER = "CCn1c(=O)[nH]c2ncn(C)c2c1=O"
MASS = 194.080376


def molecule(smiles: str) -> Molecule:
    own = describe_structure(smiles)
    return Molecule(own.smiles, own.key[:14], own.formula, own.mass)


def store(*smiles: str) -> BundledMolecules:
    rows = [
        {"key": m.key, "smiles": m.smiles, "formula": m.formula, "mass": m.mass, "sources": [],
         "identifiers": [], "names": []}
        for m in map(molecule, smiles)
    ]  # fmt: skip
    return BundledMolecules(molecule_table(rows))


@pytest.fixture
def query(make_feature):
    reading = Hypothesis("[M+H]+", ("[M+H]+",), MASS, 0.002)
    return FeatureQuery(
        make_feature(), (reading,), ([molecule(ISOMER)],), ("[M+H]+",), 1, hypotheses=(reading,)
    )


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
