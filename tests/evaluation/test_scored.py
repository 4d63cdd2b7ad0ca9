import shutil
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.core.registry import Ties
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.decision import Pooling
from mzseek.evaluation.scored import (
    HITS,
    Scoring,
    best_metric,
    best_step,
    checkpoint_steps,
    fingerprint_metrics,
    hit_rates,
    measurable,
    molecule_groups,
    pool_lists,
    predictions_of,
    ranking,
    scored_lists,
    validation_means,
    why_no_fingerprint,
)
from mzseek.metrics import hit_rate, tanimoto
from mzseek.models.model import TorchNetwork
from mzseek.parallel.engine import silent
from mzseek.runs.checkpoints import best_model
from mzseek.runs.predictions import ListScores, Predictions, predict
from mzseek.runs.run import Run
from mzseek.similarity import soft_tanimoto
from mzseek.training.train import random_fold

OTHERS = ("tanimoto", "soft-tanimoto")


@pytest.mark.parametrize(
    ("loss", "model", "reason"),
    [
        ("bce", "mlp", None),
        ("fp-cos", "mlp", None),
        ("fp-mlp", "mlp", "nothing makes them the bits of the molecule"),
        ("emb-cos", "mlp", "emb-cos predicts none"),
        ("bce", "random", "random predicts none"),
    ],
)
def test_a_similarity_is_for_runs_with_a_fingerprint(loss, model, reason, trained) -> None:
    run, how = trained(loss, model=model), Scoring(similarity="tanimoto")
    assert run.description.reports_fingerprint is (reason is None)
    measurable(run, Scoring(), None)
    if reason is None:
        assert why_no_fingerprint(run) is None
        measurable(run, how, None)
        return
    assert reason in why_no_fingerprint(run)
    with pytest.raises(RunError, match=f"needs a predicted fingerprint, and .*{reason}; leave it"):
        measurable(run, how, None)


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
        data = run.metadata["data"] | {"measured_on": own}
        measured = Run(run.folder, run.metadata | {"data": data})
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
        found = checkpoint_steps(run, Scoring(similarity=kind))
        assert set(found) == steps[f"mass/{kind}"] | steps[f"formula/{kind}"]
    own = {
        f["step"] for name, f in run.best.items() if not name.endswith(OTHERS) or "/" not in name
    }
    assert set(checkpoint_steps(run, Scoring())) == own
    without = trained("bce", other_rankings=False)
    assert checkpoint_steps(without, Scoring(similarity="tanimoto")) == checkpoint_steps(
        without, Scoring()
    )


def test_predictions_are_made_once(copied, trained, small: Prepared) -> None:
    run = copied("bce")
    shutil.rmtree(run.folder / "predictions")
    step = best_step(run, "tanimoto")
    made = predictions_of(run, small, step, "test", silent)
    kept = Predictions.open(trained("bce").predictions(step, "test"))
    assert made.queries.tolist() == kept.queries.tolist()
    assert made.lists["mass"].scores == pytest.approx(kept.lists["mass"].scores, abs=1e-6)
    shutil.rmtree(run.folder / "checkpoints")
    again = predictions_of(run, small, step, "test", silent)
    assert again.lists["mass"].scores.tolist() == made.lists["mass"].scores.tolist()


def test_a_similarity_is_computed_in_full_precision(copied, small: Prepared) -> None:
    run, how = copied("bce"), Scoring(similarity="soft-tanimoto")
    metric = "hit_rate@1/mass/soft-tanimoto"
    step = best_step(run, metric)
    found = scored_lists(run, small, how, step, silent)
    network = best_model(run, metric, small)
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


def test_scores_by_a_similarity_are_not_taken_for_the_model_s_own(copied, small: Prepared) -> None:
    run = copied("bce")
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


@pytest.fixture
def lists(small: Prepared) -> ListScores:
    """Scores with many ties."""
    found = random_fold(small, "test", seed=0).lists["mass"]
    return replace(found, scores=np.round(2 * found.scores) / 2)


@pytest.mark.parametrize("ties", get_args(Ties))
@pytest.mark.parametrize("identity", IDENTITY_BITS)
def test_hit_rates_are_those_of_each_list_by_itself(lists: ListScores, ties, identity: str) -> None:
    found, molecule = hit_rates(lists, ties, identity)
    labels = (lists.identity & IDENTITY_BITS[identity]) > 0
    ends = np.cumsum(lists.counts)
    expected: dict[int, list[float]] = {k: [] for k in HITS}
    kept = []
    for count, end, query in zip(lists.counts, ends, lists.molecule, strict=True):
        here = slice(end - count, end)
        if not labels[here].any():
            continue
        kept.append(query)
        for k in HITS:
            expected[k] += hit_rate(lists.scores[here], [count], labels[here], k, ties).tolist()
    assert molecule.tolist() == kept
    for k in HITS:
        assert found[f"hit_rate@{k}"].tolist() == expected[k]


def test_no_lists_have_no_hit_rates(lists: ListScores) -> None:
    empty = ListScores(*(array[:0] for array in vars(lists).values() if array is not None))
    found, molecule = hit_rates(empty)
    assert [len(rates) for rates in found.values()] == [0, 0, 0]
    assert len(molecule) == 0


def test_tanimoto_is_that_of_the_thresholded_prediction(
    small: Prepared, small_model, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.evaluation.scored._ROWS", 5)
    queries = small.in_fold("val")
    predictions = predict(TorchNetwork(small_model()), Slices(small, (), queries), queries)
    truth = small.fingerprint_rows(small.molecule[queries]).toarray()
    bits = (predictions.fingerprints > 0.5).astype(int)
    expected = tanimoto(bits, truth)
    [found] = fingerprint_metrics(predictions, small, ("tanimoto",)).values()
    assert found.tolist() == expected.tolist()
    assert validation_means(predictions, small) == {"tanimoto": pytest.approx(expected.mean())}


def test_without_a_fingerprint_there_is_no_tanimoto(small: Prepared) -> None:
    predictions = random_fold(small, "val", seed=0)
    means = validation_means(predictions, small)
    assert set(means) == {f"hit_rate@{k}/{s}" for k in HITS for s in ("mass", "formula")}


def test_means_are_over_spectra(small: Prepared) -> None:
    predictions = random_fold(small, "val", seed=0)
    means = validation_means(predictions, small)
    for setting, lists in predictions.lists.items():
        rates, _ = hit_rates(lists)
        for name, values in rates.items():
            assert means[f"{name}/{setting}"] == values.mean()


def test_a_setting_without_lists_has_no_mean(small: Prepared) -> None:
    queries = small.in_fold("val")
    lists = random_fold(small, "val", seed=0).lists
    empty = ListScores(*(each[:0] for each in vars(lists["mass"]).values() if each is not None))
    predictions = Predictions(queries, small.molecule[queries], None, lists | {"mass": empty})
    assert {name.partition("/")[2] for name in validation_means(predictions, small)} == {"formula"}


def lists_of(rows: list[tuple[int, list[int], list[float]]]) -> ListScores:
    """Lists of (molecule, candidates, scores); the molecule itself is the truth."""
    molecule = np.array([m for m, _, _ in rows], np.int32)
    counts = np.array([len(c) for _, c, _ in rows], np.int64)
    candidates = np.concatenate([c for _, c, _ in rows]).astype(np.int32)
    return ListScores(
        queries=np.arange(10, 10 + len(rows)),
        molecule=molecule,
        counts=counts,
        candidates=candidates,
        identity=(candidates == np.repeat(molecule, counts)).astype(np.uint8),
        scores=np.concatenate([s for _, _, s in rows]).astype(np.float32),
    )


THREE = lists_of(
    [
        (5, [5, 6], [1.0, 0.0]),
        (7, [8, 7, 9], [0.0, 2.0, 1.0]),
        (5, [5, 6], [0.5, 2.0]),
        (5, [5, 6, 7], [0.0, 1.0, 2.0]),  # the same molecule, another list
    ]
)


def test_spectra_of_a_molecule_that_share_a_list_are_one() -> None:
    assert molecule_groups(THREE).tolist() == [0, 1, 0, 2]
    found, spectra = pool_lists(THREE)
    assert spectra.tolist() == [2, 1, 1]
    assert found.queries.tolist() == [10, 11, 13]
    assert found.molecule.tolist() == [5, 7, 5]
    assert found.scores.tolist() == [1.5, 2.0, 0.0, 2.0, 1.0, 0.0, 1.0, 2.0]
    assert found.candidates.tolist() == [5, 6, 8, 7, 9, 5, 6, 7]
    assert found.identity.tolist() == [1, 0, 0, 1, 0, 1, 0, 0]


def test_the_order_of_spectra_does_not_matter_where_they_are_pooled() -> None:
    rng = np.random.default_rng(0)
    rows = [(m, [1, 2, 3, 4], rng.normal(size=4).tolist()) for m in (1, 2, 3) for _ in range(7)]
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    results = []
    for given in (rows, shuffled):
        pooled, spectra = pool_lists(lists_of(given), Pooling(0.4))
        sums = pooled.scores.reshape(-1, 4)
        results.append({int(m): sums[i].tobytes() for i, m in enumerate(pooled.molecule)})
        assert spectra.tolist() == [7, 7, 7]
    assert results[0] == results[1]
