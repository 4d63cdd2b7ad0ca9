"""Results of ``mz.annotate``: look-up, frames, peaks, plots, and files with the same tolerance."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matchms import Spectrum as MatchmsSpectrum
from matplotlib.figure import Figure

import mzseek as mz
from mzseek.annotation.annotator import MIN_FEATURES
from mzseek.core.errors import AnnotationError
from mzseek.datasets.files import DEMO_QUERIES
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.prepared_queries import spectra_from
from mzseek.export.job import annotate_files
from mzseek.export.tables import FIRST, LAST
from mzseek.spectra import write_mgf

CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
ISOMER = "CCn1c(=O)[nH]c2ncn(C)c2c1=O"  # of caffeine, which the first spectra are of


@pytest.fixture(scope="module")
def spectra(small_set):
    return spectra_from(Prepared.open(small_set.folder), np.arange(3))


@pytest.fixture(scope="module")
def caffeine():
    return next(each for each in mz.read_spectra(DEMO_QUERIES) if each.identifier == "caffeine")


@pytest.fixture(scope="module")
def options(bundle_folder):
    return {"model": bundle_folder, "coverage": 0.5, "ppm": 1000}


@pytest.fixture(scope="module")
def found(spectra, options):
    return mz.annotate(spectra, **options)


def test_features_are_found_by_their_ids(found, spectra):
    assert found.features == [each.identifier for each in spectra]
    second = found[spectra[1].identifier]
    assert second is found[1]
    assert isinstance(second, mz.Annotation)
    assert spectra[1].identifier in found
    assert "nobody" not in found
    assert second in found
    assert [each.feature.name for each in found] == found.features
    assert len(found[:2]) == 2
    with pytest.raises(KeyError, match="no feature is called 'nobody'; there are"):
        found["nobody"]
    assert repr(second).startswith(f"Annotation({second.feature.name!r}, ")
    assert repr(found) == "Annotations(3 features, 0 spectra skipped)"


def test_the_frame_has_values_and_not_texts(found):
    frame = found.to_frame()
    channels = [name for name in frame.columns if name.startswith("channel_")]
    assert list(frame.columns) == [*FIRST, *channels, *LAST]
    best = frame[frame["rank"] == 1].set_index("feature")
    for annotation in found:
        row = best.loc[annotation.feature.name]
        assert row["confidence"] == annotation.confidence
        assert row["probability"] == annotation.best.probability
        assert row["level"] == annotation.level.number
    share = frame["confidence"] / frame["probability"]
    assert share.groupby(frame["feature"]).agg(lambda s: s.max() - s.min()).max() < 1e-9
    assert frame.groupby("feature")["probability"].sum().round(4).eq(1).all()
    assert frame.loc[frame["rank"] > 1, "level"].isna().all()
    assert frame["inSet"].dtype == bool
    assert "<table>" in found._repr_html_()


def test_peaks_of_a_candidate_are_a_frame(caffeine, options):
    (annotation,) = mz.annotate(caffeine, database=[CAFFEINE, ISOMER], **options)
    peaks = annotation.peaks()
    assert list(peaks.columns) == [
        "spectrum", "mz", "intensity", "relative", "formula", "error_ppm", "charge", "bonds",
        "hydrogens", "fragment", "removed",
    ]  # fmt: skip
    assert peaks["mz"].tolist() == caffeine.mz.tolist()
    assert peaks["relative"].max() == 1
    explained = peaks[peaks["formula"].notna()]
    assert "C6H8N3O" in set(explained["formula"])
    assert len(explained) >= annotation.best.peaks_explained
    assert explained["error_ppm"].abs().max() < 11
    assert explained["fragment"].notna().all()
    assert annotation.peaks(rank=2)["mz"].tolist() == caffeine.mz.tolist()
    for rank in (0, 3):
        with pytest.raises(AnnotationError, match=f"rank is {rank}, expected 1 to 2"):
            annotation.peaks(rank)


def test_a_feature_without_candidates_has_peaks_and_a_plot(spectra, options):
    (annotation,) = mz.annotate(spectra[0], database=["CCO"], strict=True, **{**options, "ppm": 5})
    assert annotation.best is None
    assert annotation.peaks()["formula"].isna().all()
    assert isinstance(annotation.plot(), Figure)
    with pytest.raises(AnnotationError, match="nothing to mirror"):
        annotation.plot(mirror=True)
    with pytest.raises(AnnotationError, match="it has no candidates"):
        annotation.candidate()


def test_a_plot_shows_explained_peaks_and_mirrors_a_reference(found):
    (axes,) = found[0].plot().axes
    assert found[0].feature.name in axes.get_title(loc="left")
    with_reference = next(each for each in found if each.best.match or each.best.analog)
    (axes,) = with_reference.plot(mirror=True).axes
    assert axes.get_ylim()[0] < -100


@pytest.mark.parametrize(("ppm", "number"), [(20, 7), (5, 0)])
def test_saved_peaks_have_the_tolerance_that_was_asked_for(
    caffeine, options, tmp_path, ppm, number
):
    shifted = replace(caffeine, mz=caffeine.mz * (1 + 15e-6))
    found = mz.annotate(shifted, database=[CAFFEINE], peak_ppm=ppm, **options)
    assert found[0].peaks()["formula"].notna().sum() == number
    with (found.save(tmp_path / "out") / "peaks.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["formula"]]
    assert len(rows) == number
    assert all(14 < float(row["errorPpm"]) < 17 for row in rows)
    page = found.save(tmp_path / "a.html").read_text()
    data = json.loads(re.search(r'id="d0">(.*?)</script>', page)[1])
    assert len(data["candidates"][0]["pieces"]) == number


def test_the_report_says_what_percentages_rest_on(found, spectra, options, tmp_path):
    share = found.metadata["expected_share"]
    assert f"assumption that {100 * share:g} % of" in found.save(tmp_path / "a.html").read_text()
    other = mz.annotate(spectra, expected_in_database=0.25, **options)
    assert "assumption that 25 % of" in other.save(tmp_path / "b.html").read_text()


def test_candidates_may_be_smiles_or_a_frame(found, spectra, options):
    smiles = [found[0].best.smiles, ISOMER]
    listed = mz.annotate(spectra[0], database=smiles, **options)
    assert sorted(each.smiles for each in listed[0].candidates) == sorted(smiles)
    frame = pd.DataFrame({"Canonical SMILES": smiles, "Name": ["one\ttwo", None], "id": [1.0, 2.0]})
    by_frame = mz.annotate(spectra[0], database=frame, **options)
    assert np.allclose(by_frame.to_frame()["score"], listed.to_frame()["score"])
    assert "one two" in {each.name for each in by_frame[0].candidates}
    assert listed.metadata["database"]["path"] == "the candidates given"


def test_a_frame_with_features_has_a_list_for_each(found, spectra, options):
    names, best = found.features, [each.best.smiles for each in found]
    index = pd.Index([names[0], names[1], names[1]], name="feature")
    frame = pd.DataFrame({"smiles": [best[0], best[1], ISOMER]}, index=index)
    given = mz.annotate(spectra[:2], database=frame, **options)
    assert [len(each.candidates) for each in given] == [1, 2]


def test_a_molecule_that_cannot_be_read_is_skipped(found, spectra, options):
    smiles = [found[0].best.smiles, *(f"nonsense{n}" for n in range(4)), None]
    with pytest.warns(UserWarning, match="Skipped candidates: 4") as caught:
        given = mz.annotate(spectra[0], database=smiles, **options)
    assert len(given[0].candidates) == 1
    assert "Skipped candidates: 4 (the candidates given: line 3: " in given.notes[0]
    assert str(caught[0].message) == given.notes[0]
    assert given.notes[0].count("the candidates given: line") == 3
    assert given.notes[0].endswith("; and 1 more)")


def test_a_frame_of_spectra_is_refused(options):
    frame = pd.DataFrame({"mzs": [[50.0]], "intensities": [[1.0]]})
    with pytest.raises(AnnotationError, match="spectra is a DataFrame, expected a path"):
        mz.annotate(frame, **options)


@pytest.mark.parametrize(
    ("database", "said"),
    [
        (3, "database is a int, expected a path, a Database, a data frame or a list of SMILES"),
        ([3], "database: item 1 is a int, expected a SMILES"),
        ([], "the candidates given: holds no molecule"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "the candidates given: no column holds molecules"),
    ],
)
def test_what_is_no_database(spectra, options, database, said):
    with pytest.raises(AnnotationError, match=said):
        mz.annotate(spectra[0], database=database, **options)


def test_an_opened_database_is_searched(found, spectra, options, tmp_path):
    (tmp_path / "a.smi").write_text(found[0].best.smiles + "\n")
    store = mz.Database.build(tmp_path / "a.smi", tmp_path / "db", jobs=1, watch=False)
    given = mz.annotate(spectra[0], database=store, **options)
    assert [each.smiles for each in given[0].candidates] == [found[0].best.smiles]


@pytest.mark.slow
def test_processes_know_candidates_that_were_given(caffeine, options):
    many = [caffeine] * (MIN_FEATURES + 6)
    found = mz.annotate(many, database=[CAFFEINE, ISOMER], group="none", jobs=2, **options)
    assert len(found) == MIN_FEATURES + 6
    assert {len(each.candidates) for each in found} == {2}
    assert len({each.best.smiles for each in found}) == 1


def test_spectra_in_memory_are_grouped_as_asked(spectra, options):
    twins = [replace(spectra[0], identifier=name, metadata={"feature_id": "7"}) for name in "ab"]
    found = mz.annotate(twins, **options)
    assert len(found) == 1
    assert found["7"] is found["007"] is found[0]  # numbers are compared by value
    assert len(mz.annotate(twins, group="none", **options)) == 2


def test_a_saved_folder_is_that_of_the_command(spectra, options, tmp_path):
    """Settings, inputs, counts and bytes: front ends only parse and write."""
    twins = [
        replace(spectra[0], adduct=None, precursor_mz=mz, metadata={"feature_id": "2"})
        for mz in (200.1234, 300.1234)
    ]
    write_mgf(tmp_path / "a.mgf", [*spectra, *twins])
    found = mz.annotate(tmp_path / "a.mgf", peak_ppm=20, **options)
    found.save(tmp_path / "saved")
    annotate_files(
        [tmp_path / "a.mgf"], tmp_path / "out", mz.AnnotateConfig(peak_ppm=20, **options)
    )
    for name in ("summary.tsv", "candidates.tsv", "peaks.tsv", "skipped.tsv"):
        assert (tmp_path / "saved" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert len(found.skipped) == 2  # spectra, of one feature
    saved, made = (
        json.loads((tmp_path / folder / "run.json").read_text()) for folder in ("saved", "out")
    )
    varying = {"made", "seconds", "written"}
    assert saved.keys() == made.keys()
    assert [name for name in saved.keys() - varying if saved[name] != made[name]] == []
    assert (saved["options"]["peak_ppm"], saved["counts"]["unaccounted"]) == ("20 ppm", 0)


def test_matchms_spectra_alone_and_from_iterators_are_annotated_alike(found, spectra, options):
    others = [
        MatchmsSpectrum(
            each.mz, each.intensities,
            {"precursor_mz": each.precursor_mz, "adduct": each.adduct,
             "spectrum_id": each.identifier},
        )
        for each in spectra
    ]  # fmt: skip
    several = mz.annotate(iter(others), **options).to_frame()
    frame = found.to_frame()
    assert several["smiles"].tolist() == frame["smiles"].tolist()
    assert np.allclose(several["probability"], frame["probability"], atol=1e-6)
    (one,) = mz.annotate(others[0], **options)
    assert one.best.smiles == found[0].best.smiles


@pytest.mark.parametrize("name", ["a.tsv", "a.json", "a.html", "a.mztab", "a.graphml", "folder"])
def test_saved_in_every_form(found, tmp_path, name):
    path = found.save(tmp_path / name)
    assert path.exists()
    assert path.is_dir() or path.stat().st_size > 100


def test_what_is_no_spectrum(spectra, options):
    with pytest.raises(AnnotationError, match="spectrum 1: is a int, expected a Spectrum"):
        mz.annotate([1], **options)
    with pytest.raises(AnnotationError, match="paths and spectra were given together"):
        mz.annotate([spectra[0], "a.mgf"], **options)
    with pytest.raises(AnnotationError, match="objective 'luck'"):
        mz.annotate([], objective="luck", **options)


def test_bad_spectra_are_skipped(spectra, options):
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
