"""Recalibration within `annotate`: drifts are taken off, whatever the order, processes or stops."""

import dataclasses
import json

import numpy as np
import pytest
from tests.molecules import KNOWN

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature, recalibrated
from mzseek.annotation.reading import Features, SpectrumList
from mzseek.chem import exact_mass, precursor_mz
from mzseek.core.errors import AnnotationError, KilledError
from mzseek.export.job import annotate_files
from mzseek.fragments import pieces
from mzseek.parallel import LocalEngine
from mzseek.spectra import Spectrum, write_mgf
from mzseek.spectra.recalibration import MassErrorCurve

PROTON = 1.00727645


def drift(mz):
    return np.interp(mz, [60.0, 140.0, 300.0], [30.0, 12.0, -3.0])


def spectra_of(smiles, error, seed=0):
    """Spectra of protonated fragments of molecules, with a mass error and a spread of 1 ppm."""
    rng = np.random.default_rng(seed)
    spectra = []
    for number, text in enumerate(smiles):
        fragments = pieces(text, 2)
        masses = np.unique(fragments.masses[fragments.electrons % 2 == 0].round(6))
        mz = masses[masses > 40] + PROTON
        if len(mz) < 3:
            continue
        mz = np.sort(rng.permutation(mz)[:12])
        mz *= 1 + (error(mz) + rng.normal(0, 1, len(mz))) * 1e-6
        name = {"feature_id": f"f{number}"}
        spectra.append(
            Spectrum(
                mz, rng.uniform(5, 100, len(mz)), precursor_mz(exact_mass(text), "[M+H]+"),
                "[M+H]+", 1, f"s{number}", name,
            )
        )  # fmt: skip
    return spectra


@pytest.fixture(scope="module")
def shifted():
    return spectra_of(KNOWN[:70], drift)


@pytest.fixture(scope="module")
def config(bundle_folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "molecules.smi"
    path.write_text("".join(f"{smiles}\n" for smiles in KNOWN[:70]))
    return AnnotateConfig(model=bundle_folder, database=path, coverage=0.5)


@pytest.fixture(scope="module")
def annotator(config):
    return Annotator(config)


def curve_of(annotator, spectra):
    features = Features(SpectrumList(spectra), annotator.config)
    annotator.recalibrate(features)
    return features.curves.get("")


def test_a_known_drift_is_recovered_within_2_ppm(annotator, shifted):
    curve = curve_of(annotator, shifted)
    mz = np.array([70.0, 100.0, 140.0, 200.0])
    assert np.abs(curve.error_at(mz) - drift(mz)).max() < 2.0
    assert curve.spread_after < 2.0 < curve.spread_before


def test_no_drift_gives_no_curve(annotator):
    assert curve_of(annotator, spectra_of(KNOWN[:70], lambda mz: 0 * mz)) is None


def test_the_order_of_the_file_does_not_matter(annotator, shifted):
    assert curve_of(annotator, shifted) == curve_of(annotator, shifted[::-1])


def test_off_leaves_masses_as_they_are(config, shifted):
    annotator = Annotator(dataclasses.replace(config, recalibrate="off"))
    assert curve_of(annotator, shifted) is None
    with pytest.raises(AnnotationError, match="recalibration"):
        dataclasses.replace(config, recalibrate="on")


def test_low_resolution_is_never_recalibrated(config, shifted):
    annotator = Annotator(dataclasses.replace(config, instrument="ion-trap"))
    assert curve_of(annotator, shifted) is None


def rows(annotations):
    return [
        (a.feature.name, [(c.key, c.score, c.probability, c.explained) for c in a.candidates])
        for a in annotations
    ]


@pytest.mark.slow
def test_annotations_explain_more_and_show_measured_masses(config, annotator, shifted):
    with_curve = list(annotator.run(shifted))
    off = Annotator(dataclasses.replace(config, recalibrate="off"))
    without = list(off.run(shifted))
    explained = [
        np.mean([a.best.explained for a in annotations if a.best])
        for annotations in (without, with_curve)
    ]
    assert explained[1] > explained[0] + 0.1
    for annotation, spectrum in zip(with_curve, shifted, strict=True):
        assert np.array_equal(annotation.feature.spectra[0].mz, spectrum.mz)
        (peaks,) = annotation.peaks_of(annotation.best)
        assert [peak.mz for peak in peaks] == spectrum.mz.tolist()
        assert all(
            abs(peak.error_ppm) <= 10.1 for peak in peaks if peak.error_ppm and peak.mz > 100
        )


@pytest.mark.slow
def test_neither_order_nor_processes_matter(annotator, shifted, monkeypatch):
    expected = dict(rows(annotator.run(shifted)))
    monkeypatch.setattr("mzseek.annotation.annotator.MIN_FEATURES", 0)
    assert dict(rows(annotator.run(shifted[::-1], engine=LocalEngine(1)))) == expected


@pytest.mark.slow
def test_resuming_equals_one_run(config, shifted, tmp_path, monkeypatch):
    path = tmp_path / "mine.mgf"
    write_mgf(path, shifted)
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    done = annotate_files([path], whole, config)
    assert any(line.startswith(f"Recalibrated {path}") for line in done.messages)

    from mzseek.export.output import Output

    write, calls = Output.write, []

    def stops(output, annotation):
        if len(calls) == 20:
            raise KilledError("stopped")
        calls.append(annotation)
        write(output, annotation)

    monkeypatch.setattr(Output, "write", stops)
    with pytest.raises(KilledError):
        annotate_files([path], resumed, config)
    monkeypatch.setattr(Output, "write", write)
    annotate_files([path], resumed, config, resume=True)
    for name in ("summary.tsv", "candidates.tsv", "peaks.tsv", "report.html"):
        assert (resumed / name).read_bytes() == (whole / name).read_bytes()
    first, second = (json.loads((f / "run.json").read_text()) for f in (whole, resumed))
    curve = first["recalibration"][str(path)]
    assert curve == second["recalibration"][str(path)]
    assert curve["spread_after_ppm"] < curve["spread_before_ppm"]
    assert curve["peaks"] > 100


def test_a_tolerance_of_the_user_stays(config):
    spectrum = Spectrum(np.array([100.0]), np.ones(1), 200.0, "[M+H]+", 1, "a")
    feature = Feature("a", "index", (spectrum,))
    curve = MassErrorCurve((100.0,), (10.0,), 500, 50, 12.0, 4.0)
    assert recalibrated(feature, [None], config) is feature
    assert recalibrated(feature, [curve], config).spectra[0].peak_ppm == 20.0
    strict = dataclasses.replace(config, peak_ppm="7")
    assert recalibrated(feature, [curve], strict).spectra[0].peak_ppm is None
    assert recalibrated(feature, [curve], strict).measured == (spectrum,)
