"""Features of several ions: adducts of one mass, pooled scores, and what each ion says alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.candidates import ListedSource
from mzseek.annotation.config import AnnotateConfig, Ions, Tolerance
from mzseek.annotation.features import Feature, distinct_spectra
from mzseek.annotation.ions import with_ion_support
from mzseek.annotation.query import adduct_hypotheses, ask, ions_of
from mzseek.annotation.reading import Features
from mzseek.annotation.scoring import Scored, mode_of, pooling_weights, score
from mzseek.chem.adducts import parse_adduct
from mzseek.core.errors import AnnotationError
from mzseek.datasets.files import DEMO_QUERIES
from mzseek.export.job import annotate_files
from mzseek.export.report import feature_data
from mzseek.export.tables import summary_values
from mzseek.fragments import explain
from mzseek.spectra import Spectrum, read_spectra, write_mgf

from .conftest import CAFFEINE, ISOMER, MASS, THEOBROMINE, molecule

TEN = Tolerance(10.0)
OTHERS = ["CC(C)n1c(=O)[nH]c2[nH]cnc2c1=O", ISOMER, THEOBROMINE]


def ion(adduct: str | None, name: str, shift: float = 0.0, **changes) -> Spectrum:
    """Caffeine's demo spectrum as an ion; of another ion with its fragments shifted."""
    demo = next(s for s in read_spectra(DEMO_QUERIES, []) if s.identifier == "caffeine")
    mode = "negative" if "]-" in (adduct or changes.get("as_ion", "")) else "positive"
    mz = parse_adduct(changes.pop("as_ion", adduct)).precursor_mz(MASS)
    metadata = {"ionmode": mode, "molecule_id": "x", "collision_energy": name}
    facts = {"adduct": adduct, "charge": None, "identifier": name, "metadata": metadata}
    return replace(demo, mz=demo.mz[:-1] + shift, intensities=demo.intensities[:-1],
                   precursor_mz=mz, **(facts | changes))  # fmt: skip


POSITIVE, SODIUM, NEGATIVE = ion("[M+H]+", "a"), ion("[M+Na]+", "b", 21.98), ion("[M-H]-", "c")
NAMELESS = [ion(None, "d", as_ion="[M+H]+"), ion(None, "e", as_ion="[M-H]-")]


def feature(*spectra: Spectrum, name: str = "f") -> Feature:
    return Feature(name, "index", distinct_spectra(spectra)[0], "a.mgf")


def assigned(*spectra: Spectrum, ions=()) -> list[tuple[str, ...]]:
    found = adduct_hypotheses(feature(*spectra), TEN, Ions.parse(ions))
    for hypothesis in found:
        assert abs(hypothesis.mass - MASS) < 0.001
    return [tuple(hypothesis.ions) for hypothesis in found]


def test_ions_are_assigned_adducts_of_one_mass():
    assert assigned(POSITIVE, SODIUM, NEGATIVE) == [("[M-H]-", "[M+H]+", "[M+Na]+")]
    assert assigned(*NAMELESS) == [("[M-H]-", "[M+H]+")]
    assert assigned(NEGATIVE, NAMELESS[0]) == [("[M-H]-", "[M+H]+")]
    # A spectrum that names no ion, of the precursor of one that does, is of the same ion.
    assert assigned(POSITIVE, NAMELESS[0], NEGATIVE) == [("[M-H]-", "[M+H]+")]
    only = ions_of(feature(POSITIVE, SODIUM, NEGATIVE, *NAMELESS), TEN)
    assert sorted(map(len, only)) == [1, 2, 2]
    with pytest.raises(AnnotationError, match=r"2 ions, .* which no adducts"):
        assigned(NEGATIVE, replace(NAMELESS[0], precursor_mz=300.1))


def test_the_precursor_and_the_adduct_are_those_of_the_representative_spectrum():
    several = feature(POSITIVE, NEGATIVE)
    [hypothesis] = adduct_hypotheses(several, TEN, Ions())
    main = several.spectra[several.representative]
    assert (hypothesis.adduct, several.precursor_mz) == (main.adduct, main.precursor_mz)
    assert feature(POSITIVE, replace(POSITIVE, identifier="2")).precursor_mz == pytest.approx(
        POSITIVE.precursor_mz
    )


@pytest.fixture(scope="module")
def annotator(bundle_folder: Path) -> Annotator:
    annotator = Annotator(AnnotateConfig(model=bundle_folder, recalibrate="off"))
    molecules = [molecule(smiles) for smiles in [CAFFEINE, *OTHERS]]
    annotator.source = ListedSource("mine", molecules, {}, {"f": list(range(len(molecules)))})
    return annotator


def scored(annotator: Annotator, *spectra: Spectrum, **temperatures: float) -> Scored:
    query = ask(feature(*spectra), annotator.source, annotator.config)
    return score([query], annotator.fitted, confidence(annotator, **temperatures),
                 annotator.bundle.fingerprint)[0][0]  # fmt: skip


def confidence(annotator: Annotator, **temperatures: float):
    """The bundle's confidence with other temperatures, by polarity."""
    own = annotator.bundle.confidence
    modes = {
        mode: replace(
            numbers, calibration=replace(numbers.calibration, temperature=temperatures[mode])
        )
        if mode in temperatures
        else numbers
        for mode, numbers in own.modes.items()
    }
    return replace(own, modes=modes)


def test_pooled_scores_are_the_sum_over_ions_on_the_scale_of_one_polarity(annotator):
    temperatures = {"positive": 2.0, "negative": 4.0}
    alone = [scored(annotator, spectrum, **temperatures) for spectrum in (POSITIVE, NEGATIVE)]
    both = scored(annotator, POSITIVE, NEGATIVE, **temperatures)
    query = ask(feature(POSITIVE, NEGATIVE), annotator.source, annotator.config)
    numbers = confidence(annotator, **temperatures)
    factor, scales = pooling_weights(query, numbers)
    assert mode_of(query) == -1  # of as many peaks the first, of the lower precursor
    lengths = [numbers.of(m).calibration.temperature_of(query.n_candidates) for m in (1, -1)]
    weights = {1: lengths[1] / lengths[0], -1: 1.0}
    assert sorted(scales) == pytest.approx(sorted(weights.values()))
    expected = sum(w * a.parts for w, a in zip(weights.values(), alone, strict=True)) * factor
    assert both.parts == pytest.approx(expected)
    by_ion = {"[M+H]+": alone[0], "[M-H]-": alone[1]}
    for adduct, scores in zip(query.hypotheses[0].ions, both.by_ion, strict=True):
        assert scores == pytest.approx(by_ion[adduct].parts.sum(1))
    assert alone[0].by_ion == ()


def test_every_ion_is_explained_as_itself_and_says_what_it_prefers(annotator):
    spectra = feature(POSITIVE, NEGATIVE)
    [annotation] = annotator.annotate_batch([spectra])
    support = {own.adduct: own for own in annotation.ion_support}
    assert {name: own.spectra for name, own in support.items()} == {"[M+H]+": 1, "[M-H]-": 1}
    assert all(own.preferred_probability >= own.probability > 0 for own in support.values())
    best = annotation.best
    for spectrum, peaks in zip(spectra.spectra, annotation.peaks_of(best), strict=True):
        own = explain(spectrum, best.smiles, adduct=spectrum.adduct, ppm=annotation.ppm,
                      least=annotation.least)  # fmt: skip
        assert [peak.formula for peak in peaks] == [peak.formula for peak in own]
    shown = {own["adduct"]: own["p"] for own in feature_data(annotation)["support"]}
    assert shown == {name: round(own.probability, 4) for name, own in support.items()}
    assert summary_values(annotation)["ionSupport"] == tuple(
        f"{name} (1): {own.probability:.6g}" for name, own in support.items()
    )
    [single] = annotator.annotate_batch([feature(POSITIVE)])
    assert single.ion_support == ()


@pytest.mark.parametrize(("against", "noted"), [(0.0, False), (9.0, True)])
def test_ions_that_prefer_different_molecules_are_noted(annotator, against, noted):
    query = ask(feature(POSITIVE, NEGATIVE), annotator.source, annotator.config)
    [annotation] = annotator.annotate_batch([query.feature])
    of_query = scored(annotator, POSITIVE, NEGATIVE)
    keys = [m.key for m in query.molecules[0]]
    best, other = keys.index(annotation.best.key), (keys.index(annotation.best.key) + 1) % 2
    scores = [np.zeros(len(keys)), np.zeros(len(keys))]
    scores[0][best], scores[1][best], scores[1][other] = 5.0, 5.0, 5.0 + against
    changed = replace(of_query, by_ion=tuple(scores))
    found = with_ion_support(annotation, query, changed, annotator.bundle.confidence)
    notes = [note for note in found.notes if note.startswith("its ions prefer different molecules")]
    assert bool(notes) == noted
    assert found.ion_support[0].preferred == annotation.best.smiles


def test_a_field_groups_the_spectra_of_several_files(bundle_folder, tmp_path):
    files = tmp_path / "pos.mgf", tmp_path / "neg.mgf"
    for path, spectra in zip(files, ([POSITIVE, SODIUM], [NEGATIVE]), strict=True):
        write_mgf(path, spectra)
    (tmp_path / "list.smi").write_text("\n".join([CAFFEINE, *OTHERS]))
    config = AnnotateConfig(
        model=bundle_folder, database=tmp_path / "list.smi", group="Molecule ID"
    )
    written = []
    for number, order in enumerate((files, files[::-1])):
        out = tmp_path / f"{number}.json"
        annotate_files(order, out, config)
        written.append(json.loads(out.read_text()))
        [found] = written[-1]
        assert (found["feature"], found["named_by"]) == ("x", "molecule_id")
        assert len(found["spectra"]) == 3
        assert "its spectra are of 2 files: neg.mgf, pos.mgf" in found["notes"]
    different = {key for key in written[0][0] if written[0][0][key] != written[1][0][key]}
    assert different <= {"file"}
    with pytest.raises(AnnotationError, match=r"grouping 'nothing' is unknown, .* molecule_id"):
        Features(files, AnnotateConfig(group="nothing"))
