"""Reference spectra behind an annotation: matches of the same precursor, and analogs of any."""

import dataclasses

import numpy as np
import pytest

from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import Hypothesis
from mzseek.annotation.query import FeatureQuery
from mzseek.annotation.references import LEAST_SIMILARITY, Neighbours, credited, neighbours
from mzseek.library import Library
from mzseek.spectra import Spectrum


def asked_of(library, record, **changes):
    """A feature whose spectrum is one of the library's own."""
    own = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    facts = {
        "mz": np.array(library.peaks.values[own]),
        "intensities": np.array(library.peaks.weights[own]),
        "precursor_mz": float(library.ions.precursors[record]),
        "adduct": "[M+H]+", "charge": 1, "identifier": "q",
    }  # fmt: skip
    spectrum = Spectrum(**(facts | changes))
    reading = Hypothesis("[M+H]+", ("[M+H]+",), spectrum.precursor_mz - 1.00728, 0.002)
    return FeatureQuery(Feature("f", "index", (spectrum,)), (reading,), (), ("[M+H]+",), 0)


def test_a_spectrum_of_the_library_matches_itself(bundle):
    library = bundle.library
    (near,) = neighbours([asked_of(library, 3)], [("box", library)], Tolerance(10.0))
    best = next(iter(near.matches.values()))
    assert best.similarity == pytest.approx(1.0, abs=1e-6)
    assert best.library == "box"
    assert near.nearest == pytest.approx(1.0, abs=1e-6)
    molecule = library.molecules.slice(int(library.molecule_of[3]), 1).to_pylist()[0]
    assert next(iter(near.matches)) == molecule["inchikey"][:14]


def test_another_precursor_is_an_analog_and_no_match(bundle):
    library = bundle.library
    shifted = asked_of(library, 3, precursor_mz=float(library.ions.precursors[3]) + 14.0)
    (near,) = neighbours([shifted], [("box", library)], Tolerance(10.0))
    assert not near.matches
    assert near.nearest > 0.4


def test_what_counts_for_a_molecule_is_shown_however_few_peaks_match(make_library):
    peaks, heights = [60.05, 77.0386, 91.05], [1.0, 0.8, 0.01]
    library = Library.open(make_library([("NC(Cc1ccccc1)C(=O)O", "[M+H]+", peaks, heights)]))
    question = asked_of(library, 0, mz=np.array([60.05, 77.0386, 99.9]))
    (near,) = neighbours([question], [("mine", library)], Tolerance(10.0))
    (match,) = near.matches.values()
    assert (match.peaks, match.similarity >= LEAST_SIMILARITY) == (2, True)
    assert list(near.similar) == list(near.matches)


def test_references_have_the_names_of_their_molecules(bundle):
    library = bundle.library
    keys = [text[:14] for text in library.molecules["inchikey"].to_pylist()]
    names = {key: f"name of {key}" for key in keys}
    (near,) = neighbours([asked_of(library, 3)], [("box", library)], Tolerance(10.0), names)
    assert near.analogs
    for found in (near.matches, near.analogs):
        assert all(reference.name == names[key] for key, reference in found.items())


def test_no_libraries_and_no_features(bundle):
    assert neighbours([], [("box", bundle.library)], Tolerance(10.0)) == []
    (near,) = neighbours([asked_of(bundle.library, 3)], [], Tolerance(10.0))
    assert (near.nearest, len(near.matches)) == (0.0, 0)


def test_a_candidate_is_credited_with_its_match_and_with_another_molecule(make_reference):
    alike = make_reference(smiles="Cn1c(=O)c2[nH]cnc2n(C)c1=O", similarity=0.5)
    same = make_reference(similarity=0.9)
    near = Neighbours({"RYYVLZVUVIJVGH": same}, {"RYYVLZVUVIJVGH": same, "ZFXYFBGIUFBOJW": alike})
    smiles = ["Cn1c(=O)c2c(ncn2C)n(C)c1=O", "CCO"]
    found = credited(smiles, ["RYYVLZVUVIJVGH", "LFQSCWFLJHTTHZ"], near)
    match, analog = found[0]
    assert match is same
    assert analog.smiles == alike.smiles  # never the candidate itself
    assert 0 < analog.likeness < 1
    assert found[1][0] is None
    assert dataclasses.replace(analog, likeness=alike.likeness).record == alike.record
    assert credited([], [], near) == []


def test_a_coarse_tolerance_of_another_spectrum_brings_nothing_in(make_library, monkeypatch):
    """The search keeps so many records: those within a wider tolerance must not fill it."""
    monkeypatch.setattr("mzseek.annotation.references._MATCHES", 1)
    peaks, heights = [60.05, 77.0386, 91.05], [1.0, 0.8, 0.3]
    rows = [
        ("NC(Cc1ccccc1)C(=O)O", "[M+H]+", peaks, [1.0, 0.7, 0.3]),  # m/z 166.086
        ("COc1ccc(CCN)cc1C", "[M+H]+", peaks, heights),  # m/z 166.123, the more similar
    ]
    library = Library.open(make_library(rows))
    [place] = np.flatnonzero(np.abs(library.ions.precursors - 166.086) < 0.001).tolist()
    question = asked_of(library, place, mz=np.array(peaks), intensities=np.array(heights))
    light = asked_of(library, place, precursor_mz=20.0)
    tolerance = Tolerance(1.0, 0.01)  # 500 ppm of m/z 20
    (alone,) = neighbours([question], [("mine", library)], tolerance)
    beside, _ = neighbours([question, light], [("mine", library)], tolerance)
    assert list(alone.matches) == ["COLNVLDHVKWLRT"]
    assert beside.similar == alone.similar
    assert list(beside.matches) == list(alone.matches)
