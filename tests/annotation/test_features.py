"""Features: names that users know, and retention times."""

import numpy as np
import pytest

from mzseek.annotation.features import Feature, fault_of, feature_id, name_of, retention_seconds
from mzseek.spectra import Spectrum


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
        spectrum(mz=m, retention_time=t) for m, t in ((100.0, "1 s"), (100.1, "3 s"), (105.0, ""))
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
    assert fault_of(spectrum(ms_level=level)) is None


@pytest.mark.parametrize("level", ["3", "MS3", "3.0", "MS^3", "ms3 scan"])
def test_spectra_of_fragments_tell_no_mass_of_the_molecule(level):
    fault = fault_of(spectrum(mz=172.0, ms_level=level))
    assert fault.startswith("is an MS3 spectrum, of the fragment m/z 172.0000")
    assert fault.endswith("expected MS2")
