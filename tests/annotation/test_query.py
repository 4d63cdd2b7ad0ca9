"""Questions: molecules of each reading, capped and formula lists, and what is noted."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.candidates import Molecule
from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import Ions
from mzseek.annotation.query import Named, ask, error_ppm
from mzseek.annotation.sources import ListedSource
from mzseek.core.errors import AnnotationError
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
    settings = {"tolerance": Tolerance(10.0), "ions": Ions(), "max_candidates": 100} | options
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
    question = asked(max_candidates=1)
    assert keys(question) == [["A"]]
    assert (question.found, question.kept) == (2, 1)
    assert question.notes[-1].startswith("2 candidates, of which the 1 nearest")


def test_formulas_that_are_known():
    question = asked(formulas={"f": "C9H10O5"})
    assert keys(question) == [["B"]]
    assert "only molecules of C9H10O5" in question.notes
    assert keys(asked(formulas={"g": "C9H10O5"})) == [["A", "B"]]


def test_formulas_in_any_order_of_elements():
    assert keys(asked(formulas={"f": "O5H10C9"})) == [["B"]]
    with pytest.raises(AnnotationError, match="formula 'Xx'"):
        asked(formulas={"f": "Xx"})


def test_listed_candidates_of_another_mass_are_skipped_and_counted():
    question = asked(lists={"f": [0, 2]})
    assert keys(question) == [["A"]]
    assert question.mass_mismatches == 1
    assert question.notes == (
        "1 listed candidate was skipped: the mass contradicts the precursor under every ion tried",
    )
    kept = asked(lists={"f": [0, 2]}, keep_mass_mismatches=True)
    assert keys(kept) == [["A", "C"]]
    assert kept.notes == ("1 listed candidate contradicts the mass of the precursor",)


def test_formulas_narrow_lists_of_features():
    question = asked(lists={"f": [0, 1]}, formulas={"f": "C9H10O5"})
    assert keys(question) == [["B"]]
    assert question.notes == ("only molecules of C9H10O5",)
    none = asked(lists={"f": [0]}, formulas={"f": "C9H10O5"})
    assert none.kept == 0
    assert none.notes[-1] == "no candidate that mine lists for it has the formula C9H10O5"


def test_tables_name_features_by_file_and_id():
    shared = replace(feature(name="a.mgf:7"), id="7", names=("a.mgf:7",))
    lists, formulas = {"7": [0], "a.mgf:7": [1]}, {"7": "C8H10N4O2"}
    assert keys(asked(shared, lists=lists, formulas=formulas)) == [["B"]]
    sole = replace(feature(name="7"), id="7", names=("7", "a.mgf:7"))
    assert keys(asked(sole, lists=lists)) == [["A"]]
    assert keys(asked(sole, lists={"a.mgf:7": [1]})) == [["B"]]


def test_long_lists_of_features_are_cut_as_others_are():
    question = asked(lists={"f": [0, 1]}, max_candidates=1)
    assert keys(question) == [["A"]]
    assert question.notes[-1].startswith("2 candidates, of which the 1 nearest")


def test_lists_of_features_are_read_as_every_ion():
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
    return ask(
        one,
        source,
        **({"tolerance": Tolerance(5.0), "ions": Ions(), "max_candidates": 9} | options),
    )


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
    assert (question.mass_mismatches, question.removed) == (1, {})
    kept = candidates(feature(None, 104.1070), CHOLINE, AMINE, ethane, lists={"f": [0, 1, 2]},
                      keep_mass_mismatches=True)  # fmt: skip
    assert sum(kept.removed.values()) == 1  # ethane takes up no proton


BERBERINE = Molecule(
    "COc1ccc2cc3[n+](cc2c1OC)CCc1cc2c(cc1-3)OCO2", "YBHILYKTIRIUTE", "C20H18NO4+", 336.123035
)
NAPHTHALENE = Molecule("c1ccc2ccccc2c1", "UFWIBTONFRDIAS", "C10H8", 128.0626)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("molecule", "adduct", "mz", "kept"), [
    (CHOLINE, "[M]+", 104.10699, 1),
    (CHOLINE, None, 104.10699, 1),
    (CHOLINE, "[M+H]+", 104.10699, 0),  # of the cation's m/z
    (CHOLINE, "[M+H]+", 105.11427, 0),  # of the m/z that arithmetic would have
    (CHOLINE, None, 105.11427, 0),
    (CHOLINE, None, 249.09, 0),
    (CHOLINE, "[M]+", 104.10644, 0),  # an electron too many
    (BERBERINE, "[M]+", 336.12304, 1),
    (BERBERINE, None, 336.12304, 1),
    (BERBERINE, "[M+H]+", 337.13031, 0),
    (BERBERINE, "[M+Na]+", 359.11225, 0),
    (NAPHTHALENE, "[M]+", 128.06205, 1),
    (NAPHTHALENE, None, 128.06205, 0),
    (NAPHTHALENE, "[M]+", 128.0626, 0),  # without the electron's mass
])  # fmt: skip
def test_permanent_charges_are_judged_alike_in_lists_and_databases(
    listed, molecule, adduct, mz, kept
):
    lists = {"f": [0]} if listed else None
    question = candidates(feature(adduct, mz), molecule, lists=lists, tolerance=Tolerance(3.0))
    assert question.kept == kept
    if kept:
        assert question.readings[0].adduct == "[M]+"


def test_a_known_formula_need_not_state_the_charge():
    for lists in (None, {"f": [0, 1]}):
        for formula in ("C5H14NO", "C5H14NO+"):
            question = candidates(
                feature(None, 104.10699), CHOLINE, AMINE, lists=lists, formulas={"f": formula}
            )
            assert keys(question) == [[CHOLINE.key]]


def test_what_is_met_is_struck_off(make_feature):
    named = Named({"a": ["1", "2"], "b": ["2", "3"]})
    features = [make_feature("2"), make_feature("9")]
    assert list(named.meet(features)) == features
    assert named.metadata() == {
        "a": {"named": 2, "not_met": 1, "first": ["1"], "ambiguous": 0, "first_ambiguous": []},
        "b": {"named": 2, "not_met": 1, "first": ["3"], "ambiguous": 0, "first_ambiguous": []},
    }
    assert named.lines() == [
        "a: 1 of its 2 features is not among the spectra: '1'",
        "b: 1 of its 2 features is not among the spectra: '3'",
    ]
    assert named
    list(named.meet([make_feature("1"), make_feature("3")]))
    assert not named
    assert named.lines() == []


def test_only_the_first_are_shown_in_the_order_of_the_table():
    named = Named({"a": [str(at) for at in range(9, 0, -1)] + ["x" * 100]})
    (line,) = named.lines()
    assert line.endswith("'9', '8', '7', '6', '5', …")
    assert "10 of its 10 features are" in line
    assert len(Named({"a": ["x" * 100]}).lines()[0]) < 100


def test_no_tables():
    assert not Named({})
    assert (Named({}).metadata(), Named({}).lines()) == ({}, [])


def test_ids_of_several_files_are_named_with_their_file(make_feature):
    one, two = (
        make_feature(f"{file}:1", id="1", names=(f"{file}:1",), where=f"d/{file}")
        for file in ("a.mgf", "b.mgf")
    )
    named = Named({"mine.csv": ["1", "2"], "the table of formulas": ["b.mgf:1"]})
    list(named.meet([one, two]))
    assert named.metadata() == {
        "mine.csv": {
            "named": 2, "not_met": 1, "first": ["2"], "ambiguous": 1, "first_ambiguous": ["1"],
        },
        "the table of formulas": {
            "named": 1, "not_met": 0, "first": [], "ambiguous": 0, "first_ambiguous": [],
        },
    }  # fmt: skip
    assert named.renamed() == {
        "count": 2,
        "first": [{"id": "1", "name": "a.mgf:1", "file": "d/a.mgf"},
                  {"id": "1", "name": "b.mgf:1", "file": "d/b.mgf"}],
    }  # fmt: skip
    assert named.lines() == [
        "2 features have ids that other features have, too, and were renamed: '1' is 'a.mgf:1', "
        "'1' is 'b.mgf:1'",
        "mine.csv: 1 of its 2 features is not among the spectra: '2'",
        "mine.csv: 1 of its 2 features is in several files, and not used: instead of '1' write "
        "'a.mgf:1' or 'b.mgf:1'",
    ]
