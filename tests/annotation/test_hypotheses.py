"""Ions: what the file says, what is tried where it says nothing, and what contradicts itself."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.annotator import config_for
from mzseek.annotation.config import INSTRUMENT_NAMES, AnnotateConfig
from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import (
    DEFAULT,
    INSTRUMENTS,
    USUAL,
    Ions,
    as_known,
    check_instrument,
    hypotheses,
    instrument_notes,
    is_mode_known,
    tolerances,
    uncalibrated,
    unexplained_remark,
    with_ion,
)
from mzseek.annotation.reading import SpectrumFiles
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


DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_each_has_its_own_and_what_is_given_wins(name):
    own = INSTRUMENTS[name]
    assert tolerances(name) == (own.precursor, own.peaks)
    assert tolerances(name, "3 ppm") == (Tolerance(3.0, strict=True), own.peaks)
    assert tolerances(name, None, "5 mDa") == (own.precursor, Tolerance(0.0, 0.005, strict=True))
    assert own.precursor.strict
    assert own.why.endswith(".")


def test_none_is_ten_ppm_and_the_models():
    assert tolerances(None) == (DEFAULT, None)


def test_an_unknown_one_is_refused_with_the_names():
    names = ", ".join(INSTRUMENTS)
    for name in ("tof", Path("tof"), ""):
        with pytest.raises(AnnotationError, match=f"is unknown, expected one of: {names}"):
            check_instrument(name)
    check_instrument(None)


def test_only_what_models_are_not_fitted_on_has_a_note():
    assert [name for name in INSTRUMENTS if instrument_notes(name)] == ["ion-trap"]
    assert instrument_notes(None) == ()
    assert tuple(INSTRUMENTS) == INSTRUMENT_NAMES


def test_every_instrument_has_a_line_in_the_docs():
    text = (DOCS / "annotate.md").read_text()
    for name, own in INSTRUMENTS.items():
        peaks = "the model's" if own.peaks is None else str(own.peaks)
        assert f"| `{name}` | {own.precursor} | {peaks} |" in text


def stated_tolerances(paths):
    config = config_for(AnnotateConfig(), SpectrumFiles(paths))
    return config.instrument, config.precursor_tolerance, config.peak_tolerance, config.remarks


def msp(path, *instruments):
    """A file with a record of each instrument; none is stated for an empty one."""
    records = [
        f"Name: r{number}\nPrecursorMZ: 195.0877\nIon_mode: POSITIVE\n"
        + (f"Instrument_type: {name}\n" if name else "")
        + "Num Peaks: 1\n138.0662 100\n"
        for number, name in enumerate(instruments)
    ]
    path.write_text("\n".join(records))
    return path


@pytest.mark.parametrize(
    "name",
    ["LC-ESI-QTOF", "maXis HD", "Q-TOF 6545", "TripleTOF 5600", "timsTOF Pro", "Xevo G2-XS QTof",
     "Synapt G2-Si", "ESI-TOF", "impact II", "Quadrupole-TOF", "micrOTOF-Q", "X500R"],
)  # fmt: skip
def test_qtof_instruments_are_recognised(tmp_path, name):
    instrument, precursor, peaks, (line,) = stated_tolerances([msp(tmp_path / "a.msp", name, name)])
    assert instrument == "qtof"
    assert (precursor, peaks) == (Tolerance(20.0), INSTRUMENTS["qtof"].peaks)
    assert not precursor.strict  # a coarse precursor is searched as widely as it is known
    assert line.startswith(f"The spectra are of a QTOF instrument ({name}): searched within 20 ppm")


@pytest.mark.parametrize("name", ["LC-ESI-ITFT", "Q Exactive Plus", "Xevo TQ-S", "LC-ESI-QQ", ""])
def test_other_instruments_are_not_taken_for_qtof(tmp_path, name):
    assert stated_tolerances([msp(tmp_path / "a.msp", name)]) == (None, DEFAULT, None, ())


def test_mixed_files_are_searched_as_usual_and_the_option_is_named(tmp_path):
    qtof, other = msp(tmp_path / "a.msp", "LC-ESI-QTOF"), msp(tmp_path / "b.msp", "Orbitrap")
    silent = msp(tmp_path / "c.msp", "")
    within = msp(tmp_path / "d.msp", "LC-ESI-QTOF", "Orbitrap")
    for paths in ([qtof, other], [qtof, silent], [within]):
        instrument, precursor, peaks, (line,) = stated_tolerances(paths)
        assert (instrument, precursor, peaks) == (None, DEFAULT, None)
        assert "--instrument qtof" in line
    assert stated_tolerances([tmp_path / "missing.msp"]) == (None, DEFAULT, None, ())


def test_spectra_that_nothing_explains_name_the_option():
    (line,) = unexplained_remark([0.0, 0.0, 0.4, 0.0, 0.1], None)
    assert "--instrument qtof" in line
    assert unexplained_remark([0.3, 0.0, 0.4, 0.0, 0.1], None) == []
    assert unexplained_remark([0.0] * 5, Tolerance(20.0)) == []
    assert unexplained_remark([0.0] * 4, None) == []
    assert unexplained_remark([], None) == []


def precursor_feature(*precursors, **metadata):
    spectra = [
        Spectrum(np.array([50.0]), np.ones(1), mz, "[M+H]+", 1, "s", metadata) for mz in precursors
    ]
    return Feature("f", "index", tuple(spectra))


@pytest.mark.parametrize(
    ("mz", "width"), [(181.0, 0.5), (181.1, 0.05), (181.12, 0.005), (181.123, 0.00181123)]
)
def test_half_of_the_last_digit_that_is_written(mz, width):
    tolerance, note = as_known(precursor_feature(mz), Tolerance())
    assert tolerance.of(mz) == pytest.approx(width)
    assert bool(note) == (width > 181.123e-5)


@pytest.mark.parametrize(
    ("mz", "width"),
    [(287.05499267578125, 0.0), (287.055541992188, 0.0), (183.1000061035156, 0.05)],
)
def test_numbers_of_32_bits_are_as_precise_as_what_they_stand_for(mz, width):
    tolerance, note = as_known(precursor_feature(mz), Tolerance())
    assert tolerance.of(mz) == pytest.approx(max(width, mz * 1e-5))
    assert bool(note) == bool(width)


def test_what_is_written_coarsely_is_said_as_written():
    assert as_known(precursor_feature(181.0), Tolerance())[1] == (
        "its precursor is written as 181: searched within 0.5 Da"
    )
    assert "written as 181.12:" in as_known(precursor_feature(181.12), Tolerance())[1]


@pytest.mark.parametrize(
    "instrument",
    ["LC-ESI-QQ", "LC-ESI-QQQ", "GC-EI-Q", "LC-ESI-IT", "QIT", "Triple Quadrupole", "Ion trap",
     "EI-B", "Quadrupole"],
)  # fmt: skip
def test_instruments_of_nominal_masses(instrument):
    tolerance, note = as_known(precursor_feature(132.1512, instrument_type=instrument), Tolerance())
    assert tolerance.of(132.1512) == 0.5
    assert instrument in note


@pytest.mark.parametrize(
    "instrument",
    ["LC-ESI-QTOF", "LC-ESI-ITFT", "LC-ESI-QFT", "LC-ESI-ITTOF", "Orbitrap", "Q Exactive",
     "ESI-QTOF", "Quadrupole time of flight", "Ion trap orbitrap", ""],
)  # fmt: skip
def test_instruments_of_exact_masses(instrument):
    known = as_known(precursor_feature(132.1512, instrument_type=instrument), Tolerance())
    assert known == (Tolerance(), "")


def test_a_tolerance_of_the_user_stays():
    given = Tolerance.parse("5 ppm")
    assert as_known(precursor_feature(181.0, instrument_type="LC-ESI-QQ"), given) == (given, "")


def test_a_wider_tolerance_stays():
    wide = Tolerance(0.0, 1.0)
    assert as_known(precursor_feature(181.0), wide) == (wide, "")


def test_the_coarsest_spectrum_counts():
    assert as_known(precursor_feature(181.1234, 181.1), Tolerance())[0].least == 0.05
