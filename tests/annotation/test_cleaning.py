"""Cleaning within `annotate`: what is removed is not scored, and shown with its reason."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.molecules import KNOWN

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature, cleaned, recalibrated
from mzseek.chem import exact_mass, precursor_mz
from mzseek.core.errors import AnnotationError
from mzseek.export.job import annotate_files
from mzseek.export.json_array import annotation_object
from mzseek.export.report import feature_data
from mzseek.spectra import Spectrum, write_mgf
from mzseek.spectra.recalibration import MassErrorCurve

PRECURSOR = precursor_mz(exact_mass(KNOWN[0]), "[M+H]+")


@pytest.fixture(scope="module")
def measured():
    mz = np.array([60.0444, 70.6, PRECURSOR - 18.0106, PRECURSOR, PRECURSOR + 30.1])
    heights = np.array([40.0, 2.0, 100.0, 30.0, 3.0])
    return Spectrum(mz, heights, PRECURSOR, "[M+H]+", 1, "a", {"feature_id": "a"})


@pytest.fixture(scope="module")
def config(bundle_folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "molecules.smi"
    path.write_text("".join(f"{smiles}\n" for smiles in KNOWN[:30]))
    return AnnotateConfig(model=bundle_folder, database=path, coverage=0.5)


def test_removed_peaks_stay_in_the_annotation(config, measured):
    (found,) = Annotator(config).run([measured])
    assert found.feature.spectra[0].mz.tolist() == measured.mz.tolist()
    assert found.artefacts == (("", "impossible mass", "", "", "above the precursor"),)
    (peaks,) = found.peaks_of(found.best)
    assert [peak.mz for peak in peaks] == measured.mz.tolist()
    assert [peak.removed for peak in peaks] == list(found.artefacts[0])
    assert not any(peak.formula for peak in peaks if peak.removed)
    assert [each["reason"] for each in annotation_object(found)["removedPeaks"]] == [
        "impossible mass",
        "above the precursor",
    ]
    assert feature_data(found)["removed"] == [[1, "impossible mass"], [4, "above the precursor"]]


def test_scores_are_those_of_the_spectrum_without_them(config, measured):
    kept = np.array([True, False, True, True, False])
    clean = replace(measured, mz=measured.mz[kept], intensities=measured.intensities[kept])
    annotator, off = Annotator(config), Annotator(replace(config, clean="off"))
    (found,), (expected,), (raw,) = annotator.run([measured]), off.run([clean]), off.run([measured])
    scores = [[c.score for c in each.candidates] for each in (found, expected, raw)]
    assert scores[0] == scores[1]
    assert raw.artefacts == (("",) * 5,)
    assert raw.peaks_of(raw.best)[0][1].removed == ""


def test_tables_and_run_json_name_what_was_removed(config, measured, tmp_path):
    path = tmp_path / "mine.mgf"
    write_mgf(path, [measured])
    done = annotate_files([path], tmp_path / "out", config)
    with (tmp_path / "out" / "peaks.tsv").open() as file:
        reasons = [row["removed"] for row in csv.DictReader(file, delimiter="\t")]
    assert reasons == ["", "impossible mass", "", "", "above the precursor"]
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["cleaning"] == {
        "peaks": 5,
        "removed": {"above the precursor": 1, "impossible mass": 1},
        "background_mz": {},
    }
    assert any(line.startswith("Removed 2 of 5 peaks") for line in done.messages)
    assert [line.partition(" peaks")[0] for line in done.routine] == ["Removed 2 of 5"]


def test_recalibration_keeps_what_was_measured(config, measured):
    curve = MassErrorCurve((100.0,), (10.0,), 500, 50, 12.0, 4.0)
    feature = recalibrated(cleaned(Feature("a", "index", (measured,)), [()]), [curve], config)
    assert feature.measured == (measured,)
    assert len(feature.spectra[0]) == 3
    assert feature.spectra[0].mz[0] < measured.mz[0]
    assert len(feature.artefacts[0]) == 5


def test_unknown_values_are_refused():
    with pytest.raises(AnnotationError, match="auto, off"):
        AnnotateConfig(clean="yes")
