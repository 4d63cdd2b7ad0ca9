"""Ions: what the file says, what is tried where it says nothing, and what contradicts itself."""

import numpy as np
import pytest

from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import (
    USUAL,
    Ions,
    hypotheses,
    is_mode_known,
    uncalibrated,
    with_ion,
)
from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import AnnotationError
from mzseek.spectra import Spectrum

MASS = 194.080376  # caffeine
TEN = Tolerance(10.0)


def spectrum(adduct="[M+H]+", mass=MASS, mz=None, charge=None, **metadata):
    mz = parse_adduct(adduct).precursor_mz(mass) if mz is None else mz
    return Spectrum(np.array([138.066]), np.ones(1), mz, adduct, charge, "a", metadata)


def feature(*spectra):
    return Feature("f", "index", spectra)


def nameless(mz=195.0877, charge=None, **metadata):
    return Spectrum(np.array([138.066]), np.ones(1), mz, None, charge, "a", metadata)


def test_what_the_file_names_is_the_only_reading():
    (reading,) = hypotheses(feature(spectrum()), TEN, Ions())
    assert reading.adduct == "[M+H]+"
    assert reading.mass == pytest.approx(MASS, abs=1e-9)
    assert reading.reach == pytest.approx(195.0877 * 1e-5, rel=1e-4)


def test_spectra_of_several_ions_of_one_molecule_are_one_reading():
    (reading,) = hypotheses(feature(spectrum(), spectrum("[M+Na]+")), TEN, Ions())
    assert reading.adducts == ("[M+H]+", "[M+Na]+")
    assert reading.mass == pytest.approx(MASS, abs=1e-6)


def test_spectra_of_two_molecules_are_refused():
    with pytest.raises(AnnotationError, match=r"two masses, 194\.0804.*--group none"):
        hypotheses(feature(spectrum(), spectrum(mass=200.0)), TEN, Ions())


@pytest.mark.parametrize(("mode", "sign"), [("positive", 1), ("negative", -1)])
def test_the_usual_ions_of_a_mode_are_tried(mode, sign):
    found = hypotheses(feature(nameless(ionmode=mode)), TEN, Ions())
    assert tuple(reading.adduct for reading in found) == USUAL[sign]


def test_a_mode_that_is_not_known_is_read_as_positive_and_can_be_told():
    unknown = feature(nameless())
    assert hypotheses(unknown, TEN, Ions())[0].adduct == "[M+H]+"
    assert not is_mode_known(unknown)
    assert is_mode_known(feature(nameless(charge=-1)))


def test_ions_that_take_more_than_there_is_are_no_readings():
    tiny = feature(nameless(mz=20.0))
    assert "[M+Na]+" not in {reading.adduct for reading in hypotheses(tiny, TEN, Ions())}
    with pytest.raises(AnnotationError, match="too small for every ion"):
        hypotheses(tiny, TEN, Ions(("[M+Na]+",)))


def test_only_and_also():
    asked = Ions.parse(["[M+Na]+", "+[M+K]+", "M+Na"])
    assert asked == Ions(("[M+Na]+",), ("[M+K]+",))
    found = hypotheses(feature(nameless()), TEN, asked)
    assert [reading.adduct for reading in found] == ["[M+Na]+", "[M+K]+"]
    widened = hypotheses(feature(spectrum()), TEN, Ions.parse(["+[M+K]+", "+[M-H]-"]))
    assert [reading.adduct for reading in widened] == ["[M+H]+", "[M+K]+"]


def test_a_named_ion_that_was_not_asked_for_is_a_contradiction():
    with pytest.raises(AnnotationError, match=r"names \[M\+H\]\+, but \[M\+Na\]\+ was asked for"):
        hypotheses(feature(spectrum()), TEN, Ions(("[M+Na]+",)))
    with pytest.raises(AnnotationError, match="is of positive mode"):
        hypotheses(feature(nameless(ionmode="positive")), TEN, Ions(("[M-H]-",)))


@pytest.mark.parametrize(
    ("charge", "first"), [(2, "[M+2H]2+"), (3, "[M+3H]3+"), (-2, "[M-2H]2-"), (-3, "[M-3H]3-")]
)
def test_several_charges_are_tried_as_their_usual_ions(charge, first):
    found = hypotheses(feature(nameless(charge=charge)), TEN, Ions())
    assert found[0].adduct == first
    assert {parse_adduct(reading.adduct).charge for reading in found} == {charge}


def test_more_charges_than_any_usual_ion_has_are_refused():
    with pytest.raises(AnnotationError, match=r"of charge 7\+ and names no ion; .*--adduct"):
        hypotheses(feature(nameless(charge=7)), TEN, Ions())
    assert hypotheses(feature(nameless(charge=7)), TEN, Ions(("[M+7H]7+",)))


def test_ions_of_another_charge_are_for_other_features():
    both = Ions.parse(["+[M+2H]2+"])

    def tried(**facts):
        return [r.adduct for r in hypotheses(feature(nameless(**facts)), TEN, both)]

    assert tried(charge=1) == list(USUAL[1])
    assert tried(charge=2) == list(USUAL[2])
    assert tried() == [*USUAL[1], "[M+2H]2+"]
    (stated,) = hypotheses(feature(spectrum(charge=1)), TEN, both)
    assert stated.adduct == "[M+H]+"
    with pytest.raises(AnnotationError, match=r"is of charge 2\+, but \[M\+H\]\+ was asked for"):
        hypotheses(feature(nameless(charge=2)), TEN, Ions(("[M+H]+",)))
    with pytest.raises(AnnotationError, match=r"names \[M-H\]-, but \[M\+H\]\+ was asked for"):
        hypotheses(feature(spectrum("[M-H]-")), TEN, Ions(("[M+H]+",)))


def test_ions_with_few_references_are_noted():
    shares, floor = {"[M+H]+": 0.9, "[M+K]+": 0.002}, 0.5 / 4041
    usual = hypotheses(feature(nameless()), TEN, Ions())
    assert uncalibrated(usual, "[M+H]+", shares, floor) == []
    assert uncalibrated(usual, "[M+K]+", shares, floor) == [
        "probabilities are not calibrated for [M+K]+"
    ]
    stated = hypotheses(feature(spectrum("[2M+H]+")), TEN, Ions())
    assert uncalibrated(stated, "[2M+H]+", shares, floor) == [
        "probabilities are not calibrated for [2M+H]+"
    ]


def test_both_modes_are_refused():
    with pytest.raises(AnnotationError, match="both ion modes"):
        hypotheses(feature(nameless(charge=1), nameless(charge=-1)), TEN, Ions())


def test_precursors_apart_without_ions_are_refused():
    with pytest.raises(AnnotationError, match="name no ions"):
        hypotheses(feature(nameless(), nameless(mz=196.0)), TEN, Ions())


def test_read_as_an_ion():
    read = with_ion(nameless(), "[M+Na]+")
    assert (read.adduct, read.charge) == ("[M+Na]+", 1)
    known = spectrum()
    assert with_ion(known, "[M+H]+") is known


def test_what_electrons_have_ionised_has_gained_nothing():
    by_electrons = nameless(ionmode="positive", instrument_type="GC-EI-QTOF")
    found = hypotheses(feature(by_electrons), TEN, Ions())
    assert [reading.adduct for reading in found] == ["[M]+"]
    assert len(hypotheses(feature(nameless(instrument_type="LC-ESI-EIS")), TEN, Ions())) > 1


def test_ions_asked_for_decide_an_unknown_polarity(make_feature, make_peaks):
    unknown = make_feature(spectra=(make_peaks(adduct=None, charge=None, metadata={}),))
    asked = Ions.parse(["[M-H]-", "[M+Cl]-"])
    assert [r.adduct for r in hypotheses(unknown, Tolerance(), asked)] == ["[M-H]-", "[M+Cl]-"]
    both = hypotheses(unknown, Tolerance(), Ions.parse(["[M-H]-", "[M+H]+"]))
    assert [r.adduct for r in both] == ["[M+H]+"]
