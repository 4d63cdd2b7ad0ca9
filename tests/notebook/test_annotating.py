"""``mz.annotate``: paths, spectra and matchms spectra in; a table, HTML and files out."""

import json
from dataclasses import replace

import numpy as np
import pytest
from matchms import Spectrum as MatchmsSpectrum

import mzseek as mz
from mzseek.core.errors import AnnotationError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.queries import spectra_from
from mzseek.spectra import write_mgf


@pytest.fixture(scope="module")
def spectra(small_set):
    return spectra_from(Prepared.open(small_set.folder), np.arange(3))


@pytest.fixture
def options(bundle_folder):
    return {"model": bundle_folder, "coverage": 0.5, "ppm": 1000}


def test_spectra_in_and_a_frame_out(spectra, options):
    found = mz.annotate(spectra, **options)
    assert len(found) == 3
    frame = found.to_frame()
    assert list(frame.columns[:7]) == ["feature", "rank", "smiles", "InChIkey2D",
                                       "molecularFormula", "adduct", "probability"]  # fmt: skip
    assert frame.groupby("feature")["probability"].sum().round(4).eq(1).all()
    assert frame["rank"].min() == 1
    assert "<table>" in found._repr_html_()
    assert repr(found) == "Annotations(3 features, 0 spectra skipped)"
    assert found[0].feature.name == spectra[0].identifier


def test_paths_and_objects_are_answered_alike(spectra, options, tmp_path):
    path = tmp_path / "a.mgf"
    write_mgf(path, spectra)
    by_path = mz.annotate(path, **options).to_frame()
    others = [
        MatchmsSpectrum(
            each.mz, each.intensities,
            {"precursor_mz": each.precursor_mz, "adduct": each.adduct,
             "spectrum_id": each.identifier},
        )
        for each in spectra
    ]  # fmt: skip
    by_object = mz.annotate(others, **options).to_frame()
    assert by_path["smiles"].tolist() == by_object["smiles"].tolist()
    assert np.allclose(by_path["probability"], by_object["probability"], atol=1e-6)
    assert mz.annotate(spectra[0], **options).to_frame()["smiles"].tolist() == (
        by_path[by_path["feature"] == spectra[0].identifier]["smiles"].tolist()
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.json", "a.html", "a.mztab", "a.graphml", "folder"])
def test_saved_in_every_form(spectra, options, tmp_path, name):
    found = mz.annotate(spectra[:1], **options)
    path = found.save(tmp_path / name)
    assert path.exists()
    assert path.is_dir() or path.stat().st_size > 100


def test_what_is_no_spectrum(options):
    with pytest.raises(AnnotationError, match="spectrum 1: is a int, expected a Spectrum"):
        mz.annotate([1], **options)
    with pytest.raises(AnnotationError, match="objective 'luck'"):
        mz.annotate([], objective="luck", **options)


def test_bad_spectra_are_set_aside(spectra, options):
    bad = MatchmsSpectrum(np.array([50.0]), np.array([1.0]), {"adduct": "[M+H]+"})
    found = mz.annotate([spectra[0], bad], **options)
    assert (len(found), len(found.skipped)) == (1, 1)
    assert "precursor" in found.skipped[0][1]


def test_features_that_no_spectrum_has_are_warned_of(spectra, options, tmp_path):
    formulas = {spectra[0].identifier: "C2H6O", "lost": "CH4"}
    line = "the table of formulas: 1 of its 2 features is not among the spectra: 'lost'"
    with pytest.warns(UserWarning, match=line):
        found = mz.annotate(spectra, formulas=formulas, **options)
    assert found.notes == (line,)
    facts = json.loads((found.save(tmp_path / "out") / "run.json").read_text())
    assert facts["tables"]["the table of formulas"]["first"] == ["lost"]


def test_what_is_doubtful_is_warned_of_once(spectra, options):
    timed = [replace(s, adduct=None, charge=None, metadata={"retention_time": "60"})
             for s in spectra[:2]]  # fmt: skip
    with pytest.warns(UserWarning, match="retention time without a unit") as caught:
        found = mz.annotate(timed, **options)
    assert [str(each.message).partition(":")[0] for each in caught] == [
        "2 records of the spectra state a retention time without a unit",
        "2 of 2 features have no ion mode in the file (polarity unknown)",
    ]
    assert found[0].feature.retention_time is None
    assert "its retention time 60 has no unit" in " ".join(found[0].notes)
    with pytest.warns(UserWarning, match="no ion mode"):
        found = mz.annotate(timed, rt_unit="min", **options)
    assert found[0].feature.retention_time == 3600.0


def test_an_instrument_sets_what_is_not_given(spectra, options):
    found = mz.annotate(spectra[:1], instrument="ion-trap", **options)
    assert "not fitted on spectra of ion-trap" in found.notes[0]
    assert "not fitted on spectra of ion-trap" in found[0].notes[-1]
    with pytest.raises(AnnotationError, match="instrument 'tof' is unknown, expected one of: orb"):
        mz.annotate("nothing.mgf", instrument="tof")
