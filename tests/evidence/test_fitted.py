"""A fitted run, opened again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.information_gain import information_gain
from mzseek.evaluation.pooled import calibrate_pooled, evaluate_pooled
from mzseek.evidence.model import EvidenceModel, total_scores
from mzseek.evidence.queries import Queries
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum


def test_it_scores_spectra_of_any_origin(fitted_run: Run) -> None:
    fitted = EvidenceModel.open(fitted_run.folder)
    spectrum = Spectrum(np.array([60.5, 80.5]), np.array([1.0, 0.5]), 150.0, "[M+H]+", 1, "new")
    lists = Queries.of([spectrum], [["CCO", "c1ccccc1O", "CCCCCC"]], fingerprint="maccs", jobs=1)
    parts = fitted.contributions(lists)
    assert parts.shape == (3, 2)
    assert np.array_equal(fitted.scores(lists), total_scores(parts))
    assert np.isfinite(parts).all()


def test_what_it_describes_is_what_the_run_holds(fitted_run: Run) -> None:
    described = json.loads(json.dumps(EvidenceModel.open(fitted_run).describe()))
    assert described == fitted_run.metadata["model"]


def test_a_trained_run_is_refused(trained) -> None:
    with pytest.raises(EvidenceError, match="was trained, not fitted; `mzseek fit` takes it as a"):
        EvidenceModel.open(trained("bce").folder)


def test_features_of_an_earlier_version_are_refused(fitted_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace("sharp regression", "blunt regression"))
    with pytest.raises(EvidenceError, match="weighs other features of analogs than there are now"):
        EvidenceModel.open(folder)


def test_damage_is_said(fitted_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    facts = json.loads((folder / "run.json").read_text())
    swapped = facts | {"model": facts["model"] | {"channels": facts["model"]["channels"][::-1]}}
    (folder / "run.json").write_text(json.dumps(swapped))
    with pytest.raises(EvidenceError, match="its ranker is of other channels than it names"):
        EvidenceModel.open(folder)
    del facts["model"]["channels"][0]["label"]
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match="lacks 'channels"):
        EvidenceModel.open(folder)


def test_parts_that_cancel_are_summed_in_full_precision() -> None:
    parts = np.array([[1e8, 1.0, -1e8]], np.float32)
    assert total_scores(parts).tolist() == [1.0]


def test_its_data_are_found(fitted_run: Run, small: Prepared) -> None:
    assert fitted_run.open_data().manifest["key"] == small.manifest["key"]


def test_spectra_together_and_bits_take_a_fitted_run(fitted_run) -> None:
    together = calibrate_pooled(fitted_run)
    assert len(evaluate_pooled(fitted_run).spectra) == len(together.evaluated.counts)
    assert together.evaluated.probabilities.sum() == pytest.approx(len(together.evaluated.counts))
    found = information_gain(fitted_run, pooled=True)
    assert (found.truth.run <= 1 + 1e-9).all()
    assert found.truth.queries.tolist() == together.evaluated.queries.tolist()
