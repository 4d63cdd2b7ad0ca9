"""References, refitted channels, measured performance."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.refit import (
    References,
    measured,
    reference_spectra,
    references_from,
    refit_channels,
)
from mzseek.core.registry import FOLDS
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.evidence.fitting import FitOptions
from mzseek.evidence.model import EvidenceModel
from mzseek.library import Library
from mzseek.runs.run import Run


def test_spectra_with_what_is_known_of_them(small: Prepared) -> None:
    queries = small.in_fold("val")
    name = small.identifiers[int(queries[1])]
    found = references_from(small, queries, {name: {"license": "CC0", "collision_energy": "20 eV"}})
    records = found.records.to_pylist()
    assert records[1] == {
        "identifier": name, "adduct": "[M+H]+", "collision_energy": "20 eV", "instrument_type": "",
        "contributor": "", "license": "CC0", "source": "",
    }  # fmt: skip
    assert records[0]["license"] == ""
    blocks = [small.inchikey14[small.molecule[each]].decode() for each in queries]
    assert [found.molecules[place].inchikey14 for place in found.molecule_of] == blocks
    assert set(found.ions.modes.tolist()) == {1}


def test_features_are_pairs_of_a_molecule_and_an_ion(small: Prepared) -> None:
    found = references_from(small, small.in_fold("val"), {})
    counts = found.features_by_ion()
    assert counts["positive"] == {"[M+H]+": len(found.molecules)}
    assert counts["negative"] == {}


def test_a_library_is_made_of_them_and_read_again(small: Prepared, tmp_path: Path) -> None:
    found = references_from(small, small.in_fold("val"), {})
    library = found.library(tmp_path)
    assert isinstance(library, Library)
    again = References.of_library(library)
    assert again.keys == [(key, round(mass, 6)) for key, mass in found.keys]
    assert np.array_equal(again.peaks.values, found.peaks.values)
    assert again.molecule_of.tolist() == found.molecule_of.tolist()


def test_peaks_are_made_compact(small: Prepared) -> None:
    found = references_from(small, small.in_fold("train"), {}, max_peaks=7)
    assert np.diff(found.peaks.pointers).max() == 7


def test_they_have_learned_from_all_folds(fitted_run: Run, small: Prepared) -> None:
    fitted = EvidenceModel.open(fitted_run)
    again = refit_channels(fitted, small, FitOptions(), max_peaks=50, jobs=1)
    measured = np.unique(small.inchikey14[small.molecule])
    analogs = [channel.name for channel in again.channels].index("analogs")
    assert again.states[analogs].inchikey14.tolist() == measured.tolist()
    assert len(again.states[analogs].arrays["precursors"]) == len(small)
    assert np.diff(again.states[analogs].arrays["pointers"]).max() == 50
    assert again.ranker is fitted.ranker


def test_spectra_of_folds_in_the_order_of_the_folder(small: Prepared) -> None:
    assert reference_spectra(small, FOLDS).tolist() == list(range(len(small)))
    assert reference_spectra(small, ["val"]).tolist() == small.in_fold("val").tolist()


def test_hit_rates_are_those_of_evaluate(bundle: Bundle, fitted_run: Run, small: Prepared) -> None:
    found = measured(fitted_run, small, bundle.confidence, "mass")
    assert list(found) == ["positive"]
    own = found["positive"]
    how = Scoring(fold="test", candidates="mass", identity="inchikey")
    expected = evaluate(fitted_run, how)
    for k in (1, 5, 20):
        mean, low, high = own["hit_rates"][str(k)]
        assert mean == pytest.approx(expected.intervals()[f"hit_rate@{k}"].mean, abs=1e-6)
        assert low <= mean <= high
    assert own["hit_rates_together"]["1"][0] >= 0
    assert 0 <= own["calibration_error"] <= 1
    assert 0 <= own["sets"]["covered"][0] <= 1
    assert bundle.card["measured"] == found
