import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.errors import RunError
from mzseek.evaluation.scored import (
    Scoring,
    best_step,
    by_cosine,
    check_similarity,
    name_of,
    predictions_of,
    predicts_fingerprint,
    scored_lists,
)
from mzseek.prepared import Prepared
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run
from mzseek.similarity import tanimoto
from mzseek.work.progress import silent


@pytest.mark.parametrize(
    ("loss", "model", "fingerprint", "cosine", "name"),
    [
        ("bce", "mlp", True, True, "bce"),
        ("fp-cos", "mlp", True, True, "fp-cos"),
        ("emb-cos", "mlp", False, False, "emb-cos"),
        ("bce", "random", False, False, "random"),
    ],
)
def test_facts_of_a_run(loss, model, fingerprint, cosine, name, trained) -> None:
    run = trained(loss, model=model)
    assert predicts_fingerprint(run) is fingerprint
    assert by_cosine(run) is cosine
    assert name_of(run) == name


def test_a_similarity_is_for_runs_with_a_fingerprint(trained) -> None:
    check_similarity(trained("bce"), Scoring(similarity="tanimoto"))
    check_similarity(trained("emb-cos"), Scoring())
    with pytest.raises(RunError, match="emb-cos predicts none"):
        check_similarity(trained("emb-cos"), Scoring(similarity="tanimoto"))


def test_the_best_step_is_that_of_the_metric_or_of_its_kind(trained) -> None:
    run = trained("bce")
    assert best_step(run, "hit_rate@5/formula") == run.best["hit_rate@5/formula"]["step"]
    assert best_step(run, "hit_rate@1/other") in {
        facts["step"] for name, facts in run.best.items() if name.startswith("hit_rate@1/")
    }
    with pytest.raises(RunError, match="no checkpoint that was chosen by beauty"):
        best_step(run, "beauty")


def test_predictions_are_made_once(trained, small: Prepared, tmp_path: Path) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "predictions")
    run = Run.open(tmp_path / "run")
    step = best_step(run, "tanimoto")
    made = predictions_of(run, small, step, "test", silent)
    kept = Predictions.open(trained("bce").predictions(step, "test"))
    assert made.queries.tolist() == kept.queries.tolist()
    assert made.lists["mass"].scores == pytest.approx(kept.lists["mass"].scores, abs=1e-6)
    shutil.rmtree(run.folder / "checkpoints")
    again = predictions_of(run, small, step, "test", silent)
    assert again.lists["mass"].scores.tolist() == made.lists["mass"].scores.tolist()


def test_lists_are_scored_in_parts_as_in_one(trained, small: Prepared, monkeypatch) -> None:
    monkeypatch.setattr("mzseek.evaluation.scored._ROWS", 5)
    run = trained("bce")
    said = predictions_of(run, small, best_step(run, "tanimoto"), "test", silent)
    found = scored_lists(said, small, Scoring(similarity="tanimoto"), own_is_cosine=True)
    rows = np.repeat(np.searchsorted(said.queries, found.queries), found.counts)
    bits = (said.fingerprints[rows].astype(float) > 0.5).astype(float)
    wanted = tanimoto(bits, small.fingerprint_rows(found.candidates).toarray())
    assert found.scores == pytest.approx(wanted, abs=1e-6)
    assert found.candidates.tolist() == said.lists["mass"].candidates.tolist()


def test_lists_that_were_not_predicted_are_refused(trained, small: Prepared) -> None:
    run = trained("bce")
    said = predictions_of(run, small, best_step(run, "tanimoto"), "test", silent)
    with pytest.raises(RunError, match="the saved predictions have no candidates 'hard'"):
        scored_lists(said, small, Scoring(candidates="hard"), own_is_cosine=True)
