"""Features: names that users know, and retention times."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.annotation.config import Tolerance
from mzseek.annotation.features import (
    Feature,
    distinct_spectra,
    feature_id,
    is_profile,
    ms_level_problem,
    name_of,
    retention_seconds,
)
from mzseek.core.errors import AnnotationError
from mzseek.spectra import Spectrum

from .conftest import a_spectrum


def spectrum(identifier="x", mz=100.0, **metadata):
    return Spectrum(np.array([50.0]), np.ones(1), mz, None, None, identifier, metadata)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"feature_id": "7", "scans": "17", "title": "t"}, ("7", "feature_id")),
        ({"feature_id": "0", "scans": "17"}, ("0", "feature_id")),
        ({"feature_id": "-1", "scans": "17"}, ("17", "scans")),
        ({"scans": "17", "title": "t", "compound_name": "n"}, ("17", "scans")),
        ({"scans": "0", "title": "t", "compound_name": "n"}, ("t", "title")),
        ({"scans": "-1", "compound_name": "caffeine"}, ("caffeine", "compound_name")),
        ({"scans": "0"}, ("0", "scans")),
        ({}, ("3", "index")),
    ],
)
def test_the_first_name_that_a_record_has(metadata, expected):
    assert name_of(spectrum("record 9", **metadata), 3) == expected


def test_a_stated_identifier_comes_before_titles():
    stated = spectrum("MSBNK-1", title="some file.mgf", compound_name="caffeine")
    assert name_of(stated, 1) == ("MSBNK-1", "identifier")
    assert name_of(spectrum("some file.mgf", title="some file.mgf"), 1)[1] == "title"


def test_nameless_ones_have_their_place():
    assert name_of(spectrum(""), 3) == ("3", "index")
    assert name_of(spectrum("line 12 #2"), 3) == ("3", "index")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("150", None), ("2.5 min", 150.0), ("150 s", 150.0), ("150 sec", 150.0), ("-1", None),
     ("150s", 150.0), ("2.5min", 150.0), ("PT2M30S", 150.0), ("3-5 min", None), ("2 h", None),
     ("", None), ("late", None)],
)  # fmt: skip
def test_retention_times_are_in_seconds(text, seconds):
    assert retention_seconds(spectrum(retention_time=text)) == seconds


def test_a_feature_has_the_median_precursor_and_the_mean_time():
    own = [
        spectrum(mz=m, retention_time=t) for m, t in ((100.0, "1 s"), (100.1, "3 s"), (100.5, ""))
    ]
    feature = Feature("f", "index", tuple(own))
    assert feature.precursor_mz == 100.1
    assert feature.retention_time == 2.0
    assert Feature("f", "index", (spectrum(),)).retention_time is None


def test_no_id_is_none():
    assert feature_id(spectrum(feature_id="-1")) == feature_id(spectrum()) == ""
    assert feature_id(spectrum(feature_id=" 7 ")) == "7"


@pytest.mark.parametrize("level", ["", "2", "MS2", "2.0", "MSMS", "MS/MS", "MSn", "ms^2"])
def test_spectra_of_molecules(level):
    assert ms_level_problem(spectrum(ms_level=level)) is None


@pytest.mark.parametrize("level", ["3", "MS3", "3.0", "MS^3", "ms3 scan"])
def test_spectra_of_fragments_tell_no_mass_of_the_molecule(level):
    fault = ms_level_problem(spectrum(mz=172.0, ms_level=level))
    assert fault.startswith("is an MS3 spectrum, of the fragment m/z 172.0000")
    assert fault.endswith("expected MS2")


def test_copies_of_a_spectrum_are_one_whatever_their_order_and_unit():
    one = a_spectrum("a")
    scaled = replace(one, intensities=one.intensities * 7, identifier="b")
    doubled = replace(
        one, mz=np.repeat(one.mz, 2), intensities=np.repeat(one.intensities, 2), identifier="c"
    )
    other = replace(one, intensities=one.intensities + 1, identifier="d")
    spectra, repeated, notes = distinct_spectra([one, scaled, doubled, other])
    assert (len(spectra), repeated) == (2, 2)
    assert notes == [
        "5 peaks were merged with others of the same m/z",
        "2 spectra were skipped: they repeat others",
    ]
    again, *_ = distinct_spectra([other, doubled, scaled, one])
    assert [s.intensities.tolist() for s in again] == [s.intensities.tolist() for s in spectra]


def test_measurements_of_few_peaks_are_told_apart_by_energy_and_time():
    def peak(**metadata):
        return a_spectrum(mz=np.array([138.0662]), intensities=np.ones(1), metadata=metadata)

    energies = [peak(collision_energy=energy) for energy in ("10", "20", "20")]
    spectra, repeated, _ = distinct_spectra(energies)
    assert (len(spectra), repeated) == (2, 1)
    assert distinct_spectra([peak(retention_time="1 s"), peak(retention_time="2 s")])[1] == 0


def test_another_ion_or_precursor_is_no_copy():
    one = a_spectrum()
    assert distinct_spectra([one, replace(one, adduct="[M+Na]+")])[1] == 0
    assert distinct_spectra([one, replace(one, precursor_mz=217.0697)])[1] == 0


def test_profile_spectra_are_noted_as_the_file_states_them():
    one = a_spectrum(metadata={"centroided": "no"})
    (note,) = distinct_spectra([one])[2]
    assert note.startswith("1 spectrum is in profile mode")
    assert not is_profile(a_spectrum(metadata={"centroided": "yes"}))


@pytest.mark.parametrize("given", ["a\tb", "a\n b", "a  b"])
def test_names_are_on_one_line(given):
    assert name_of(a_spectrum(metadata={"feature_id": given}), 1) == ("a b", "feature_id")


def test_control_characters_of_names_are_visible():
    spectrum = a_spectrum(metadata={"feature_id": "../a\x1b[2J\u202e"})
    assert name_of(spectrum, 1)[0] == "../a�[2J�"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", Tolerance(10.0)),
        (7.5, Tolerance(7.5)),
        ("5 ppm", Tolerance(5.0)),
        ("5PPM", Tolerance(5.0)),
        ("0.01 Da", Tolerance(0.0, 0.01)),
        ("5 mDa", Tolerance(0.0, 0.005)),
    ],
)
def test_parsed(text, expected):
    parsed = Tolerance.parse(text)
    assert (parsed.ppm, parsed.least) == pytest.approx((expected.ppm, expected.least))


@pytest.mark.parametrize("text", ["", "ten", "5 %", "-3", "1e9", "nan", "0", "inf", "5 ppm 3"])
def test_refused(text):
    with pytest.raises(AnnotationError, match="tolerance"):
        Tolerance.parse(text)


def test_the_larger_of_two_counts():
    assert Tolerance(10.0, 0.002).of(100.0) == 0.002
    assert Tolerance(10.0, 0.002).of(1000.0) == pytest.approx(0.01)


def test_says_itself():
    assert str(Tolerance(10.0, 0.002)) == "10 ppm or 0.002 Da"
    assert str(Tolerance.parse(str(Tolerance(3.0)))) == "3 ppm"


def test_what_a_user_gives_is_strict():
    assert Tolerance.parse("10").strict
    assert not Tolerance().strict
