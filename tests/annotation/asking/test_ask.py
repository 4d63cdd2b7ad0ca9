"""Questions: molecules of each reading, capped and formula lists, and what is noted."""

import numpy as np
import pytest

from mzseek.annotation.asking.ask import ask, error_ppm
from mzseek.annotation.asking.ions import Ions
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.candidates.listed import ListedSource
from mzseek.annotation.candidates.source import Molecule
from mzseek.annotation.features import Feature
from mzseek.spectra import Spectrum

MASS = 194.080376


def molecule(smiles, key, mass=MASS, formula="C8H10N4O2"):
    return Molecule(smiles, key, formula, mass)


MOLECULES = [
    molecule("a", "A"), molecule("b", "B", MASS + 0.001, "C9H10O5"), molecule("c", "C", 172.0984),
]  # fmt: skip


def feature(adduct="[M+H]+", mz=195.08766, name="f"):
    spectrum = Spectrum(np.array([50.0]), np.ones(1), mz, adduct, None, "s", {})
    return Feature(name, "index", (spectrum,))


def asked(one=None, lists=None, **options):
    source = ListedSource("mine", MOLECULES, {}, lists)
    settings = {"tolerance": Tolerance(10.0), "ions": Ions(), "most": 100} | options
    return ask(one or feature(), source, **settings)


def keys(question):
    return [[each.key for each in own] for own in question.molecules]


def test_by_mass():
    question = asked()
    assert keys(question) == [["A", "B"]]
    assert (question.found, question.kept, question.tried) == (2, 2, ("[M+H]+",))


def test_every_ion_has_its_own_molecules_and_empty_ones_are_left_out():
    question = asked(feature(adduct=None))
    assert keys(question) == [["A", "B"], ["C"]]  # C with sodium
    assert [reading.adduct for reading in question.readings] == ["[M+H]+", "[M+Na]+"]
    assert len(question.tried) == 6
    assert any("tried [M+H]+" in note for note in question.notes)


def test_capped_lists_keep_the_nearest_and_say_so():
    question = asked(most=1)
    assert keys(question) == [["A"]]
    assert (question.found, question.kept) == (2, 1)
    assert question.notes[-1].startswith("2 candidates, of which the 1 nearest")


def test_formulas_that_are_known():
    question = asked(formulas={"f": "C9H10O5"})
    assert keys(question) == [["B"]]
    assert "only molecules of C9H10O5" in question.notes
    assert keys(asked(formulas={"g": "C9H10O5"})) == [["A", "B"]]


def test_lists_of_features_are_taken_whole_whatever_their_mass():
    question = asked(lists={"f": [0, 2]})
    assert keys(question) == [["A", "C"]]
    two = asked(feature(adduct=None), lists={"f": [0, 2]})
    assert {r.adduct: [m.key for m in own]
            for r, own in zip(two.readings, two.molecules, strict=True)} == {
        "[M+H]+": ["A"], "[M+Na]+": ["C"]}  # fmt: skip
    lost = asked(lists={"g": [0]})
    assert (lost.kept, lost.readings[0].adduct) == (0, "[M+H]+")
    assert "mine lists no candidate for it" in lost.notes


def test_how_far_the_precursor_is_off():
    question = asked()
    off = [error_ppm(question.feature, question.readings[0], m) for m in question.molecules[0]]
    assert off == pytest.approx([0.0, -5.1], abs=0.1)


def test_a_coarse_precursor_is_searched_widely_and_that_is_said():
    question = asked(feature(mz=195.0), tolerance=Tolerance())
    assert keys(question) == [["A", "B"]]
    assert "its precursor is written as 195: searched within 0.5 Da" in question.notes
    assert asked(feature(mz=195.0), tolerance=Tolerance.parse("10 ppm")).found == 0


def test_nothing_found_is_noted_for_what_it_is():
    assert asked(feature(mz=300.12345)).notes == ("no molecule of the database has this mass",)
    assert asked(formulas={"f": "C6H6"}).notes == (
        "only molecules of C6H6",
        "no molecule of the database has the formula C6H6 and this mass",
    )
    assert asked(lists={"g": [0]}).notes == ("mine lists no candidate for it",)


@pytest.mark.parametrize(("mz", "charge", "told"), [(300.0, 1, True), (190.0, 1, False),
                                                    (300.0, 2, False)])  # fmt: skip
def test_peaks_above_the_precursor_are_noted(mz, charge, told):
    adduct = "[M+H]+" if charge == 1 else "[M+2H]2+"
    spectrum = Spectrum(np.array([50.0, mz]), np.ones(2), 195.08766, adduct, charge, "s", {})
    notes = asked(Feature("f", "index", (spectrum,))).notes
    above = "50% of the intensity lies above the precursor: is its m/z right?"
    assert (above in notes) == told


CHOLINE = Molecule("C[N+](C)(C)CCO", "OEYIOHPDSNJKLS", "C5H14NO+", 104.106990)
AMINE = Molecule("CCCNCCO", "BCLSJHWBDUYDTR", "C5H13NO", 103.099714)


def candidates(one, *molecules, lists=None, **options):
    source = ListedSource("mine", list(molecules), {}, lists)
    return ask(one, source, **({"tolerance": Tolerance(5.0), "ions": Ions(), "most": 9} | options))


def test_a_permanent_cation_is_tried_as_such_and_as_nothing_else():
    question = candidates(feature(None, 104.1070), CHOLINE, AMINE)
    assert [reading.adduct for reading in question.readings] == ["[M+H]+", "[M]+"]
    assert keys(question) == [[AMINE.key], [CHOLINE.key]]
    assert error_ppm(question.feature, question.readings[1], CHOLINE) == pytest.approx(0.1, abs=0.1)
    assert "[M]+ (of permanent ions)" in question.notes[1]
    assert not question.removed  # neutral molecules of that mass were tried as other ions


def test_a_cation_with_a_proton_is_counted_out_with_the_reason():
    question = candidates(feature("[M+H]+", 105.11427), CHOLINE)
    assert question.kept == 0
    assert question.notes == ("1 candidate cannot form [M+H]+ (a permanent charge)",)
    assert question.removed == {"[M+H]+: a permanent charge": 1}


def test_neutral_molecules_are_radical_cations_only_where_that_is_stated():
    neutral = Molecule("c1ccc2ccccc2c1", "UFWIBTONFRDIAS", "C10H8", 128.0626)
    ion = 128.06205
    assert candidates(feature("[M]+", ion), neutral).kept == 1
    assert candidates(feature(None, ion), neutral, ions=Ions.parse(["[M]+"])).kept == 1
    assert candidates(feature(None, ion), neutral, ions=Ions.parse(["+[M]+"])).kept == 1
    assert candidates(feature(None, ion), neutral).kept == 0


def test_listed_molecules_are_tried_as_ions_that_they_can_form():
    ethane = Molecule("CC", "OTMSDBZUPAUEDD", "C2H6", 30.04695)
    question = candidates(feature(None, 104.1070), CHOLINE, AMINE, ethane, lists={"f": [0, 1, 2]})
    assert keys(question) == [[AMINE.key], [CHOLINE.key]]
    assert sum(question.removed.values()) == 1
