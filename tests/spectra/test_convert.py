"""Spectra of matchms, and objects with the same attributes, become spectra of mzseek."""

import sys
from types import SimpleNamespace

import matchms
import numpy as np
import pytest

from mzseek.core.errors import MissingExtra, SpectrumError
from mzseek.spectra import Spectrum, as_spectra

MZ, INTENSITIES = np.array([50.0, 60.5]), np.array([1.0, 4.0])
OWN = Spectrum(MZ, INTENSITIES, 195.0877, "[M+H]+", 1, "a", {"feature_id": "7", "scans": "12"})


def test_a_spectrum_goes_to_matchms_and_back() -> None:
    back = Spectrum.from_matchms(OWN.to_matchms())
    assert (back.identifier, back.precursor_mz, back.adduct, back.charge) == (
        "a", 195.0877, "[M+H]+", 1
    )  # fmt: skip
    assert back.metadata == OWN.metadata
    assert back.mz.tolist() == MZ.tolist()
    assert back.intensities.tolist() == INTENSITIES.tolist()


def test_without_matchms_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matchms", None)
    with pytest.raises(MissingExtra, match="to_matchms needs matchms: pip install matchms"):
        OWN.to_matchms()


@pytest.mark.parametrize("harmonised", [True, False])
def test_metadata_as_matchms_has_them(harmonised: bool) -> None:
    given = matchms.Spectrum(
        MZ, INTENSITIES,
        {"pepmass": (195.0877, None, None), "charge": 0, "num_peaks": 9, "name": None,
         "retention_time": 61.5},
        metadata_harmonization=harmonised,
    )  # fmt: skip
    spectrum = Spectrum.from_matchms(given)
    assert (spectrum.precursor_mz, spectrum.charge) == (195.0877, None)
    assert spectrum.metadata["retention_time"] == "61.5"


def test_any_object_with_these_attributes_will_do() -> None:
    flat = SimpleNamespace(mz=MZ, intensities=INTENSITIES, metadata={"precursor_mz": 100.0})
    nested = SimpleNamespace(peaks=flat, metadata={"precursor_mz": 100.0, "scans": "3"})
    assert [each.identifier for each in as_spectra([flat, nested, OWN])] == ["record 1", "3", "a"]
    assert next(as_spectra(flat)).precursor_mz == 100.0


def test_what_cannot_be_used_is_reported_or_raised() -> None:
    bad = matchms.Spectrum(MZ, INTENSITIES, {"adduct": "[M+H]+"})
    rejects: list[tuple[str, str]] = []
    assert [each.identifier for each in as_spectra([bad, OWN], rejects)] == ["a"]
    assert rejects[0][0] == "spectrum 1"
    assert rejects[0].code == "no-precursor"
    with pytest.raises(SpectrumError, match="spectrum 1: has no precursor m/z"):
        list(as_spectra([bad, OWN]))
    for nothing in (3, [3], ["a.mgf"]):
        with pytest.raises(SpectrumError, match="expected a Spectrum or a matchms spectrum"):
            list(as_spectra(nothing, rejects))


def test_objects_of_mzseek_are_checked_where_that_is_asked_for():
    def made(precursor=200.0, heights=(1.0, 2.0)):
        return Spectrum(np.array([60.0, 50.0]), np.array(heights), precursor, None, None, "a", {})

    rejects = []
    given = [made(), made(heights=(np.nan, 2.0)), *(made(p) for p in (0.0, -1.0, np.nan, np.inf))]
    found = list(as_spectra(given, rejects, skip_bad_peaks=True))
    assert [spectrum.mz.tolist() for spectrum in found] == [[50.0, 60.0], [50.0]]
    assert found[1].metadata == {"skipped_peaks": "1"}
    assert [where for where, _ in rejects] == [f"spectrum {n}" for n in (3, 4, 5, 6)]
    assert rejects[2].code == "bad-number"
