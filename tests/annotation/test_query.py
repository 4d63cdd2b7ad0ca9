"""Queries: adduct hypotheses, the molecules of each, and what is noted."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mzseek.annotation.candidates import ListedSource, Molecule
from mzseek.annotation.config import AnnotateConfig, Ions, Tolerance
from mzseek.annotation.features import Feature
from mzseek.annotation.posterior import uncalibrated
from mzseek.annotation.query import USUAL, adduct_hypotheses, as_known, ask, error_ppm, with_ion
from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import AnnotationError
from mzseek.spectra import Spectrum

MASS = 194.080376


def spectrum(adduct="[M+H]+", mass=MASS, mz=None, charge=None, **metadata):
    mz = parse_adduct(adduct).precursor_mz(mass) if mz is None else mz
    return Spectrum(np.array([50.0]), np.ones(1), mz, adduct, charge, "a", metadata)


def nameless(mz=195.0877, charge=None, **metadata):
    return spectrum(None, mz=mz, charge=charge, **metadata)


def feature(*spectra, name="f"):
    return Feature(name, "index", spectra)


A, B, C = (
    Molecule("a", "A", "C8H10N4O2", MASS),
    Molecule("b", "B", "C9H10O5", MASS + 0.001),
    Molecule("c", "C", "C8H10N4O2", 172.0984),
)


def asked(given=None, *molecules, lists=None, **options):
    source = ListedSource("mine", list(molecules) or [A, B, C], {}, lists)
    config = AnnotateConfig(**{"ppm": Tolerance(10.0)} | options)
    return ask(given or feature(spectrum(mz=195.08766)), source, config)


def keys(query):
    return [[molecule.key for molecule in listed] for listed in query.molecules]


CAPPED = "2 candidates, of which the 1 nearest by mass were scored"
B_FORMULA = {"f": "C9H10O5"}


@pytest.mark.parametrize(
    ("options", "expected", "notes"),
    [
        ({}, [["A", "B"]], []),
        ({"max_candidates": 1}, [["A"]], [CAPPED]),
        ({"formulas": B_FORMULA}, [["B"]], ["only molecules of C9H10O5"]),
        ({"formulas": {"f": "O5H10C9"}}, [["B"]], ["only molecules of C9H10O5"]),
        ({"formulas": {"g": "C9H10O5"}}, [["A", "B"]], []),
        ({"formulas": {"f": "C6H6"}}, [],
         ["only molecules of C6H6",
          "no molecule of the database has the formula C6H6 and this mass"]),
        ({"given": feature(spectrum(mz=300.12345))}, [],
         ["no molecule of the database has this mass"]),
        ({"lists": {"f": [0, 2]}}, [["A"]],
         ["1 listed candidate was skipped: the mass contradicts the precursor under every ion "
          "tried"]),
        ({"lists": {"f": [0, 2]}, "keep_mass_mismatches": True}, [["A", "C"]],
         ["1 listed candidate contradicts the mass of the precursor"]),
        ({"lists": {"f": [0, 1]}, "max_candidates": 1}, [["A"]], [CAPPED]),
        ({"lists": {"f": [0, 1]}, "formulas": B_FORMULA}, [["B"]], ["only molecules of C9H10O5"]),
        ({"lists": {"f": [0]}, "formulas": B_FORMULA}, [],
         ["only molecules of C9H10O5",
          "no candidate that mine lists for it has the formula C9H10O5"]),
        ({"lists": {"g": [0]}}, [], ["mine lists no candidate for it"]),
    ],
)  # fmt: skip
def test_molecules_of_a_mass_a_formula_or_a_list(options, expected, notes):
    query = asked(**options)
    assert keys(query) == expected
    assert list(query.notes) == notes
    assert [hypothesis.adduct for hypothesis in query.tried] == ["[M+H]+"]
    assert query.n_candidates == sum(map(len, expected))
    assert query.found == (2 if CAPPED in notes else query.n_candidates)
    assert query.mass_mismatches == any("listed candidate" in note for note in notes)


def test_a_formula_that_is_none_is_refused():
    with pytest.raises(AnnotationError, match=r"^formula 'Xx' has the unknown element 'Xx'$"):
        asked(formulas={"f": "Xx"})


@pytest.mark.parametrize("lists", [None, {"f": [0, 1, 2]}])
def test_every_ion_has_its_own_molecules_and_empty_ones_are_left_out(lists):
    query = asked(feature(nameless(195.08766)), lists=lists)
    assert keys(query) == [["A", "B"], ["C"]]  # C with sodium
    assert [hypothesis.adduct for hypothesis in query.hypotheses] == ["[M+H]+", "[M+Na]+"]
    assert len(query.tried) == 6
    assert any("tried [M+H]+" in note for note in query.notes)
    assert not asked(feature(nameless(charge=1)), adduct="[M+H]+").notes  # the user names it
    several = asked(feature(nameless(charge=1)), adduct=("[M+H]+", "[M+Na]+"))
    assert several.notes == ("the file names no ion: tried [M+H]+, [M+Na]+",)


def test_tables_name_features_by_file_and_id():
    measured = spectrum(mz=195.08766)
    shared = replace(feature(measured, name="a.mgf:7"), id="7", names=("a.mgf:7",))
    lists, formulas = {"7": [0], "a.mgf:7": [1]}, {"7": "C8H10N4O2"}
    assert keys(asked(shared, lists=lists, formulas=formulas)) == [["B"]]
    sole = replace(feature(measured, name="7"), id="7", names=("7", "a.mgf:7"))
    assert keys(asked(sole, lists=lists)) == [["A"]]
    assert keys(asked(sole, lists={"a.mgf:7": [1]})) == [["B"]]


def test_how_far_the_precursor_is_off():
    query = asked()
    off = [error_ppm(query.feature, query.hypotheses[0], m) for m in query.molecules[0]]
    assert off == pytest.approx([0.0, -5.1], abs=0.1)


def test_a_coarse_precursor_is_searched_widely_and_that_is_said():
    query = asked(feature(spectrum(mz=195.0)), ppm=Tolerance())
    assert keys(query) == [["A", "B"]]
    assert "its precursor is written as 195: searched within 0.5 Da" in query.notes
    assert asked(feature(spectrum(mz=195.0)), ppm="10 ppm").found == 0


@pytest.mark.parametrize(
    ("mz", "charge", "told"), [(300.0, 1, True), (190.0, 1, False), (300.0, 2, False)]
)
def test_peaks_above_the_precursor_are_noted(mz, charge, told):
    adduct = "[M+H]+" if charge == 1 else "[M+2H]2+"
    measured = Spectrum(np.array([50.0, mz]), np.ones(2), 195.08766, adduct, charge, "s", {})
    above = "50% of the intensity lies above the precursor: is its m/z right?"
    assert (above in asked(feature(measured)).notes) == told


CHOLINE = Molecule("C[N+](C)(C)CCO", "OEYIOHPDSNJKLS", "C5H14NO+", 104.106990)
AMINE = Molecule("CCCNCCO", "BCLSJHWBDUYDTR", "C5H13NO", 103.099714)
ETHANE = Molecule("CC", "OTMSDBZUPAUEDD", "C2H6", 30.04695)
BERBERINE = Molecule(
    "COc1ccc2cc3[n+](cc2c1OC)CCc1cc2c(cc1-3)OCO2", "YBHILYKTIRIUTE", "C20H18NO4+", 336.123035
)
NAPHTHALENE = Molecule("c1ccc2ccccc2c1", "UFWIBTONFRDIAS", "C10H8", 128.0626)


def test_a_permanent_cation_is_tried_as_such_and_as_nothing_else():
    query = asked(feature(nameless(104.1070)), CHOLINE, AMINE)
    assert [hypothesis.adduct for hypothesis in query.hypotheses] == ["[M+H]+", "[M]+"]
    assert keys(query) == [[AMINE.key], [CHOLINE.key]]
    off = error_ppm(query.feature, query.hypotheses[1], CHOLINE)
    assert off == pytest.approx(0.1, abs=0.1)
    assert "[M]+ (of permanent ions)" in query.notes[1]
    assert not query.removed  # neutral molecules of that mass were tried as other ions


def test_a_cation_with_a_proton_is_counted_out_with_the_reason():
    query = asked(feature(spectrum(mz=105.11427)), CHOLINE)
    assert query.n_candidates == 0
    assert query.notes == ("1 candidate cannot form [M+H]+ (a permanent charge)",)
    assert query.removed == {"[M+H]+: a permanent charge": 1}


@pytest.mark.parametrize("adduct", ["[M]+", "+[M]+"])
def test_neutral_molecules_are_radical_cations_where_that_is_asked_for(adduct):
    assert asked(feature(nameless(128.06205)), NAPHTHALENE, adduct=adduct).n_candidates == 1


def test_listed_molecules_are_tried_as_ions_that_they_can_form():
    given = feature(nameless(104.1070)), CHOLINE, AMINE, ETHANE
    query = asked(*given, lists={"f": [0, 1, 2]})
    assert keys(query) == [[AMINE.key], [CHOLINE.key]]
    assert (query.mass_mismatches, query.removed) == (1, {})
    kept = asked(*given, lists={"f": [0, 1, 2]}, keep_mass_mismatches=True)
    assert sum(kept.removed.values()) == 1  # ethane takes up no proton


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
    query = asked(feature(spectrum(adduct, mz=mz)), molecule, lists=lists, ppm=Tolerance(3.0))
    assert query.n_candidates == kept
    if kept:
        assert query.hypotheses[0].adduct == "[M]+"


@pytest.mark.parametrize("lists", [None, {"f": [0, 1]}])
@pytest.mark.parametrize("formula", ["C5H14NO", "C5H14NO+"])
def test_a_known_formula_need_not_state_the_charge(lists, formula):
    query = asked(
        feature(nameless(104.10699)), CHOLINE, AMINE, lists=lists, formulas={"f": formula}
    )
    assert keys(query) == [[CHOLINE.key]]


TEN = Tolerance(10.0)


def tried(*spectra, ions=()):
    return [h.adduct for h in adduct_hypotheses(feature(*spectra), TEN, Ions.parse(ions))]


def test_spectra_of_several_ions_of_one_molecule_are_one_hypothesis():
    (hypothesis,) = adduct_hypotheses(feature(spectrum(), spectrum("[M+Na]+")), TEN, Ions())
    assert (hypothesis.adduct, hypothesis.adducts) == ("[M+H]+", ("[M+H]+", "[M+Na]+"))
    assert hypothesis.mass == pytest.approx(MASS, abs=1e-6)
    (alone,) = adduct_hypotheses(feature(spectrum()), TEN, Ions())
    assert alone.reach == pytest.approx(195.0877 * 1e-5, rel=1e-4)


EI = {"ionmode": "positive", "instrument_type": "GC-EI-QTOF"}


@pytest.mark.parametrize(
    ("measured", "ions", "expected"),
    [
        (spectrum(), (), ["[M+H]+"]),
        (nameless(), (), USUAL[1]),
        (nameless(ionmode="positive"), (), USUAL[1]),
        (nameless(ionmode="negative"), (), USUAL[-1]),
        *((nameless(charge=charge), (), USUAL[charge]) for charge in (2, 3, -2, -3)),
        (nameless(charge=7), ["[M+7H]7+"], ["[M+7H]7+"]),
        (nameless(**EI), (), ["[M]+"]),  # electrons knock one out
        (nameless(instrument_type="LC-ESI-EIS"), (), USUAL[1]),
        (nameless(), ["[M+Na]+", "+[M+K]+", "M+Na"], ["[M+Na]+", "[M+K]+"]),
        (nameless(), ["[M-H]-", "[M+Cl]-"], ["[M-H]-", "[M+Cl]-"]),  # which decide the polarity
        (nameless(), ["[M-H]-", "[M+H]+"], ["[M+H]+"]),
        (spectrum(), ["+[M+K]+", "+[M-H]-"], ["[M+H]+", "[M+K]+"]),
        # Ions of another charge are for other features.
        (nameless(charge=1), ["+[M+2H]2+"], USUAL[1]),
        (nameless(charge=2), ["+[M+2H]2+"], USUAL[2]),
        (nameless(), ["+[M+2H]2+"], (*USUAL[1], "[M+2H]2+")),
        (spectrum(charge=1), ["+[M+2H]2+"], ["[M+H]+"]),
    ],
)
def test_ions_that_are_tried(measured, ions, expected):
    assert tried(measured, ions=ions) == list(expected)


def test_the_usual_ions_have_their_charge():
    for charge, adducts in USUAL.items():
        assert {parse_adduct(adduct).charge for adduct in adducts} == {charge}


def test_polarity_is_that_of_adduct_charge_or_mode():
    negative = (spectrum("[M-H]-"), nameless(charge=-1), nameless(ionmode="negative"))
    assert [measured.polarity for measured in (nameless(), *negative)] == [0, -1, -1, -1]


@pytest.mark.parametrize(
    ("spectra", "ions", "reason"),
    [
        ([spectrum(), spectrum(mass=200.0)], (), r"two masses, 194\.0804.*--group none"),
        ([nameless(20.0)], ["[M+Na]+"], "too small for every ion"),
        ([spectrum()], ["[M+Na]+"], r"names \[M\+H\]\+, but \[M\+Na\]\+ was asked for"),
        ([spectrum("[M-H]-")], ["[M+H]+"], r"names \[M-H\]-, but \[M\+H\]\+ was asked for"),
        ([nameless(ionmode="positive")], ["[M-H]-"], "is of positive mode"),
        ([nameless(charge=2)], ["[M+H]+"], r"is of charge 2\+, but \[M\+H\]\+ was asked for"),
        ([nameless(charge=7)], (), r"of charge 7\+ and names no ion; .*--adduct"),
        ([nameless(charge=1), nameless(charge=-1)], (), "2 ions, .* no adducts .* one mass"),
        ([nameless(), nameless(196.0)], (), r"196\.0000 \(no ion named\), which no adducts"),
        ([spectrum(), spectrum("[M-H]-", mass=200.0)], (), r"two masses.*\(\[M-H\]-\)"),
    ],
)
def test_contradictions_are_refused(spectra, ions, reason):
    with pytest.raises(AnnotationError, match=reason):
        tried(*spectra, ions=ions)


def test_ions_that_take_more_than_there_is_are_not_tried():
    assert "[M+Na]+" not in tried(nameless(20.0))


def test_read_as_an_ion():
    read = with_ion(nameless(), "[M+Na]+")
    assert (read.adduct, read.charge) == ("[M+Na]+", 1)
    known = spectrum()
    assert with_ion(known, "[M+H]+") is known


def test_ions_with_few_references_are_noted():
    numbers = SimpleNamespace(ions={"[M+H]+": 0.9, "[M+K]+": 0.002}, floor=0.5 / 4041)
    usual = adduct_hypotheses(feature(nameless()), TEN, Ions())
    stated = adduct_hypotheses(feature(spectrum("[2M+H]+")), TEN, Ions())
    assert uncalibrated(usual, "[M+H]+", numbers) == []
    for hypotheses, best in ((usual, "[M+K]+"), (stated, "[2M+H]+")):
        note = f"probabilities are not calibrated for {best}"
        assert uncalibrated(hypotheses, best, numbers) == [note]


@pytest.mark.parametrize(
    ("mz", "width", "written"),
    [
        (181.0, 0.5, "181"),  # half of the last digit that is written
        (181.1, 0.05, "181.1"),
        (181.12, 0.005, "181.12"),
        (181.123, 0.0, ""),
        # Numbers of 32 bits are as precise as what they stand for.
        (287.05499267578125, 0.0, ""),
        (287.055541992188, 0.0, ""),
        (183.1000061035156, 0.05, "183.1"),
    ],
)
def test_a_precursor_is_searched_as_widely_as_it_is_written(mz, width, written):
    tolerance, note = as_known(feature(spectrum(mz=mz)), Tolerance())
    assert tolerance.of(mz) == pytest.approx(max(width, mz * 1e-5))
    expected = f"its precursor is written as {written}: searched within {width:g} Da"
    assert note == (expected if written else "")


@pytest.mark.parametrize(
    "instrument",
    ["LC-ESI-QQ", "LC-ESI-QQQ", "GC-EI-Q", "LC-ESI-IT", "QIT", "Triple Quadrupole", "Ion trap",
     "EI-B", "Quadrupole"],
)  # fmt: skip
def test_instruments_of_nominal_masses(instrument):
    measured = spectrum(mz=132.1512, instrument_type=instrument)
    tolerance, note = as_known(feature(measured), Tolerance())
    assert tolerance.of(132.1512) == 0.5
    assert instrument in note


@pytest.mark.parametrize(
    "instrument",
    ["LC-ESI-QTOF", "LC-ESI-ITFT", "LC-ESI-QFT", "LC-ESI-ITTOF", "Orbitrap", "Q Exactive",
     "ESI-QTOF", "Quadrupole time of flight", "Ion trap orbitrap", ""],
)  # fmt: skip
def test_instruments_of_exact_masses(instrument):
    measured = spectrum(mz=132.1512, instrument_type=instrument)
    assert as_known(feature(measured), Tolerance()) == (Tolerance(), "")


def test_a_wider_tolerance_and_that_of_the_user_stay():
    coarse = feature(spectrum(mz=181.0, instrument_type="LC-ESI-QQ"))
    for given in (Tolerance.parse("5 ppm"), Tolerance(0.0, 1.0)):
        assert as_known(coarse, given) == (given, "")


def test_the_coarsest_spectrum_counts():
    both = feature(spectrum(mz=181.1234), spectrum(mz=181.1))
    assert as_known(both, Tolerance())[0].least == 0.05
