import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.scored import (
    Scoring,
    best_metric,
    best_step,
    check_similarity,
    kept_steps,
    name_of,
    predictions_of,
    predicts_fingerprint,
    ranking,
    scored_lists,
    why_no_fingerprint,
)
from mzseek.parallel.engine import silent
from mzseek.runs.checkpoints import kept_model
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run
from mzseek.similarity import soft_tanimoto

OTHERS = ("tanimoto", "soft-tanimoto")


@pytest.mark.parametrize(
    ("loss", "model", "fingerprint", "name"),
    [
        ("bce", "mlp", True, "bce"),
        ("fp-cos", "mlp", True, "fp-cos"),
        ("fp-mlp", "mlp", False, "fp-mlp"),
        ("emb-cos", "mlp", False, "emb-cos"),
        ("bce", "random", False, "random"),
    ],
)
def test_facts_of_a_run(loss, model, fingerprint, name, trained) -> None:
    run = trained(loss, model=model)
    assert predicts_fingerprint(run) is fingerprint
    assert name_of(run) == name


def test_why_a_run_has_no_fingerprint(trained) -> None:
    assert why_no_fingerprint(trained("emb-cos")) == "emb-cos predicts none"
    assert "nothing makes them the bits of the molecule" in why_no_fingerprint(trained("fp-mlp"))
    with pytest.raises(RunError, match="go into a network that scores candidates"):
        check_similarity(trained("fp-mlp"), Scoring(similarity="cosine"))


@pytest.mark.parametrize(
    ("asked", "ranks"),
    [
        (None, None),
        ("cosine", None),
        ("tanimoto", "tanimoto"),
        ("soft-tanimoto", "soft-tanimoto"),
        ("minmax-tanimoto", "soft-tanimoto"),
    ],
)
def test_what_ranks_is_the_model_or_a_similarity(asked, ranks, trained) -> None:
    assert ranking(trained("bce"), Scoring(similarity=asked)) == ranks


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


@pytest.mark.parametrize("similarity", OTHERS)
def test_a_ranking_has_the_checkpoint_that_was_kept_for_it(similarity: str, trained) -> None:
    run = trained("bce")
    wanted = f"hit_rate@5/mass/{similarity}"
    assert best_metric(run, wanted) == wanted
    others = {name for name in run.best if name.startswith("hit_rate@5/")}
    by_it = {name for name in others if name.endswith(f"/{similarity}")}
    assert best_metric(run, f"hit_rate@5/other/{similarity}") in by_it
    assert {"hit_rate@5/mass", "hit_rate@5/formula"} <= others
    for own in ("mass", "formula"):
        data = run.facts["data"] | {"measured_on": own}
        measured = Run(run.folder, run.facts | {"data": data})
        assert best_metric(measured, "hit_rate@5/other") == f"hit_rate@5/{own}"
    without = trained("bce", other_rankings=False)
    assert best_metric(without, f"hit_rate@5/formula/{similarity}") == "hit_rate@5/formula"


def test_posteriors_are_chosen_among_what_was_kept_for_the_ranking(trained) -> None:
    run = trained("bce")
    steps = {
        name: {facts["step"] for metric, facts in run.best.items() if name in metric}
        for name in (*(f"mass/{kind}" for kind in OTHERS), *(f"formula/{k}" for k in OTHERS))
    }
    for kind in OTHERS:
        found = kept_steps(run, Scoring(similarity=kind))
        assert set(found) == steps[f"mass/{kind}"] | steps[f"formula/{kind}"]
    own = {
        f["step"] for name, f in run.best.items() if not name.endswith(OTHERS) or "/" not in name
    }
    assert set(kept_steps(run, Scoring())) == own
    without = trained("bce", other_rankings=False)
    assert kept_steps(without, Scoring(similarity="tanimoto")) == kept_steps(without, Scoring())


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


def test_a_similarity_is_computed_in_full_precision(
    trained, small: Prepared, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "run")
    run, how = Run.open(tmp_path / "run"), Scoring(similarity="soft-tanimoto")
    metric = "hit_rate@1/mass/soft-tanimoto"
    step = best_step(run, metric)
    found = scored_lists(run, small, how, step, silent)
    network = kept_model(run, metric, small)
    rows = np.repeat(np.arange(len(found.queries)), found.counts)
    said = network.read(small.bins[found.queries])[rows].astype(np.float64)
    candidates = small.fingerprint_rows(found.candidates).toarray()
    assert found.scores == pytest.approx(soft_tanimoto(said, candidates), abs=1e-6)
    halved = soft_tanimoto(said.astype(np.float16).astype(np.float64), candidates)
    assert np.abs(halved - found.scores).max() > 1e-5  # what saved fingerprints would give
    # It is kept beside the model's own, and found again without the model.
    shutil.rmtree(run.folder / "checkpoints")
    again = scored_lists(run, small, how, step, silent)
    assert again.scores.tolist() == found.scores.tolist()
    kept = run.predictions(step, "test", "soft-tanimoto")
    assert not (kept / "fingerprints.npy").exists()


def test_scores_by_a_similarity_are_not_taken_for_the_model_s_own(
    trained, small: Prepared, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    step = best_step(run, "tanimoto")
    predictions_of(run, small, step, "test", silent, "tanimoto")
    own, other = run.predictions(step, "test"), run.predictions(step, "test", "tanimoto")
    shutil.rmtree(own)
    shutil.copytree(other, own)
    with pytest.raises(RunError, match="is of another similarity"):
        predictions_of(run, small, step, "test", silent)


def test_lists_that_were_not_predicted_are_refused(trained, small: Prepared) -> None:
    run = trained("bce")
    with pytest.raises(RunError, match="the saved predictions have no candidates 'hard'"):
        scored_lists(run, small, Scoring(candidates="hard"), best_step(run, "tanimoto"), silent)
