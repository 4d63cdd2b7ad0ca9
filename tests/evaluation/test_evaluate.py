import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from mzseek import similarity
from mzseek.core.errors import CacheError, RunError
from mzseek.core.registry import Ties
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate, mces_of_best
from mzseek.evaluation.posteriors import calibrate
from mzseek.evaluation.scored import FINGERPRINT_METRICS, Scoring
from mzseek.metrics import (
    binarise,
    bit_accuracy,
    bootstrap_difference,
    cosine,
    hit_rate,
    soft_tanimoto,
    tanimoto,
)
from mzseek.runs.checkpoints import best_model
from mzseek.runs.predictions import ListScores, Predictions, random_fold
from mzseek.runs.run import Run

from ..conftest import sign

HITS = ("hit_rate@1", "hit_rate@5", "hit_rate@20")
ROWS = {
    "cosine": similarity.cosine,
    "tanimoto": similarity.tanimoto,
    "soft-tanimoto": similarity.soft_tanimoto,
    "minmax-tanimoto": similarity.minmax_tanimoto,
}


def saved(run: Run, metric: str, fold: str = "test") -> Predictions:
    return Predictions.open(run.predictions(run.best[metric]["step"], fold))


def rates(part: ListScores, scores, k: int, identity: str = "fingerprint"):
    """Hit rates of the lists that have the truth in them, and which these are."""
    labels = (part.identity & IDENTITY_BITS[identity]) > 0
    lists = np.repeat(np.arange(len(part.counts)), part.counts)
    usable = np.isin(np.arange(len(part.counts)), lists[labels])
    inside = usable[lists]
    return hit_rate(scores[inside], part.counts[usable], labels[inside], k), usable


def rewrite_scores(run: Run, scores) -> None:
    """Other scores in every saved list, made from the old ones."""
    for path in run.folder.rglob("*.scores.npy"):
        np.save(path, scores(np.load(path)))
    sign(run.folder)


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_hit_rates_are_those_of_the_saved_scores(loss: str, setting: str, trained) -> None:
    run = trained(loss)
    found = evaluate(run, Scoring(candidates=setting))
    for k in (1, 5, 20):
        name = f"hit_rate@{k}"
        part = saved(run, f"{name}/{setting}").lists[setting]
        expected, usable = rates(part, part.scores, k)
        assert found.values[name].tolist() == expected.tolist()
        assert found.molecule[name].tolist() == part.molecule[usable].tolist()
        assert found.steps[name] == run.best[f"{name}/{setting}"]["step"]


def test_fingerprint_metrics_are_those_of_the_saved_fingerprints(
    trained, small: Prepared, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.evaluation.scored._ROWS", 6)
    run = trained("bce")
    found = evaluate(run)
    predicted = saved(run, "tanimoto").fingerprints.astype(np.float32)
    truth = small.fingerprint_rows(small.molecule[small.in_fold("test")]).toarray()
    bits = binarise(predicted)
    expected = {
        "tanimoto": tanimoto(bits, truth),
        "soft_tanimoto": soft_tanimoto(predicted, truth),
        "cosine": cosine(predicted, truth),
        "bit_accuracy": bit_accuracy(bits, truth),
    }
    assert set(expected) == set(FINGERPRINT_METRICS)
    for name, values in expected.items():
        np.testing.assert_allclose(found.values[name], values, rtol=1e-6)
        assert found.steps[name] == run.best["tanimoto"]["step"]


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_the_model_is_not_needed(loss: str, trained, copied, monkeypatch) -> None:
    run = copied(loss)
    shutil.rmtree(run.folder / "checkpoints")
    monkeypatch.setattr("mzseek.evaluation.scored.best_model", lambda *run: pytest.fail("read"))
    for setting in ("mass", "formula"):
        for fold in ("val", "test"):
            how = Scoring(fold=fold, candidates=setting)
            facts, original = evaluate(run, how).to_dict(), evaluate(trained(loss), how).to_dict()
            assert facts == original | {"run": str(run.folder.resolve())}


@pytest.mark.parametrize("kind", ROWS)
def test_similarities_are_those_of_dense_rows(
    kind: str, trained, small: Prepared, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.evaluation.scored._ROWS", 7)
    run = trained("bce")
    found = evaluate(run, Scoring(similarity=kind))
    assert set(HITS) <= set(found.gain_over(evaluate(run)))  # a control may have another
    ranks = {"cosine": "", "minmax-tanimoto": "/soft-tanimoto"}.get(kind, f"/{kind}")
    assert found.own_checkpoints
    for k in (1, 5, 20):
        metric = f"hit_rate@{k}/mass{ranks}"
        assert found.chosen_by[f"hit_rate@{k}"] == metric
        assert found.steps[f"hit_rate@{k}"] == run.best[metric]["step"]
        part = random_fold(small, "test", 0).lists["mass"]  # the lists, whatever the scores
        rows = np.repeat(np.arange(len(part.queries)), part.counts)
        network = best_model(run, metric, small)
        predicted = network.read(small.bins[part.queries])[rows].astype(np.float64)
        predicted = (predicted > 0.5).astype(float) if kind == "tanimoto" else predicted
        scores = ROWS[kind](predicted, small.fingerprint_rows(part.candidates).toarray())
        expected, _ = rates(part, scores, k)
        assert found.values[f"hit_rate@{k}"].tolist() == expected.tolist()


@pytest.mark.parametrize("similarity", ["tanimoto", "soft-tanimoto"])
def test_what_ranks_best_on_validation_is_reported(similarity: str, trained) -> None:
    """As in the paper's table on the retrieval function: a value, and the checkpoint it is from."""
    run = trained("bce")
    found = evaluate(run, Scoring(fold="val", similarity=similarity))
    for k in (1, 5, 20):
        metric = f"hit_rate@{k}/mass/{similarity}"
        best = max(row[metric] for row in run.history())
        assert found.values[f"hit_rate@{k}"].mean() == pytest.approx(best, abs=1e-9)
        assert run.best[metric]["value"] == pytest.approx(best, abs=1e-9)


def test_a_run_without_checkpoints_for_a_ranking_says_so(trained) -> None:
    run = trained("bce", other_rankings=False)
    assert not any(name.count("/") == 2 for name in run.best)
    found = evaluate(run, Scoring(similarity="tanimoto"))
    assert not found.own_checkpoints
    assert found.chosen_by["hit_rate@5"] == "hit_rate@5/mass"
    assert evaluate(run).own_checkpoints


def test_fp_cos_at_another_temperature_has_a_tanimoto_of_its_own(trained) -> None:
    """The footnote of the paper's main table: Tanimoto at τ = 4, retrieval at 1/256."""
    run = trained("fp-cos", temperature=4.0)
    found = evaluate(run)
    assert found.chosen_by["tanimoto"] == "tanimoto"
    assert found.steps["tanimoto"] == run.best["tanimoto"]["step"]
    best = max(row["tanimoto"] for row in run.history())
    on_val = evaluate(run, Scoring(fold="val"))
    assert on_val.values["tanimoto"].mean() == pytest.approx(best, abs=1e-9)


def test_equal_scores_are_chance_by_expectation(copied) -> None:
    run = copied("bce")
    rewrite_scores(run, np.zeros_like)
    means = {}
    for ties in get_args(Ties):
        found = evaluate(run, Scoring(ties=ties))
        means[ties] = {name: found.values[name].mean() for name in HITS}
    expected = evaluate(run, Scoring())
    assert means["expected"] == pytest.approx(expected.random_order)
    assert means["optimistic"] == dict.fromkeys(HITS, 1.0)
    singles = 2 / len(expected.values["hit_rate@1"])  # lists of one, where nothing can be wrong
    assert means["pessimistic"]["hit_rate@1"] == pytest.approx(singles)


@pytest.mark.parametrize("identity", IDENTITY_BITS)
@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_chance_is_one_in_n(identity: str, setting: str, trained) -> None:
    run = trained("emb-cos")
    found = evaluate(run, Scoring(candidates=setting, identity=identity))
    part = saved(run, f"hit_rate@1/{setting}").lists[setting]
    labels = (part.identity & IDENTITY_BITS[identity]) > 0
    lists = np.repeat(np.arange(len(part.counts)), part.counts)
    hits = np.bincount(lists[labels], minlength=len(part.counts))
    n, q = part.counts[hits > 0], hits[hits > 0]
    assert found.random_order["hit_rate@1"] == pytest.approx((q / n).mean())
    if identity == "inchikey":
        assert (q == 1).all()
        assert found.random_order["hit_rate@5"] == pytest.approx(np.minimum(5 / n, 1).mean())
    assert found.random_order["hit_rate@20"] == 1


def test_identities_differ_by_twins_and_tautomers(copied) -> None:
    run = copied("bce")
    rewrite_scores(run, lambda scores: np.arange(len(scores), dtype=np.float32))
    by_fingerprint, by_block = (
        evaluate(run, Scoring(identity=identity)) for identity in ("fingerprint", "inchikey")
    )
    assert len(by_block.values["hit_rate@1"]) - len(by_fingerprint.values["hit_rate@1"]) == 2
    shared = np.isin(by_block.molecule["hit_rate@1"], by_fingerprint.molecule["hit_rate@1"])
    for name in HITS:  # a twin more can only help
        assert (by_fingerprint.values[name] >= by_block.values[name][shared]).all()


@pytest.mark.parametrize(
    ("files", "change"),
    [("*.identity.npy", np.zeros_like), ("mass.*.npy", lambda array: array[:0])],
)
def test_a_fold_without_the_truth_or_without_lists_is_refused(files, change, copied) -> None:
    run = copied("bce")
    for path in run.folder.rglob(files):
        np.save(path, change(np.load(path)))
    sign(run.folder)
    with pytest.raises(RunError, match="no test spectrum has its molecule among its mass cand"):
        evaluate(run)


@pytest.mark.parametrize("molecules", [1, 4, 100])
def test_mces_compares_the_best_candidate_with_the_truth(
    molecules: int, trained, small: Prepared, monkeypatch
) -> None:
    asked: list[tuple[str, str]] = []

    def distances(found, truth):
        asked.extend(zip(found, truth, strict=True))
        return np.arange(len(found))

    monkeypatch.setattr("mzseek.evaluation.evaluate.mces_at_1", distances)
    run = trained("emb-cos")
    found, molecule = mces_of_best(run, molecules=molecules)
    part = saved(run, "hit_rate@1/mass").lists["mass"]
    assert len(set(molecule.tolist())) == len(molecule) == min(molecules, 9)
    assert found.tolist() == list(range(len(molecule)))
    best = {}
    for true, count, end in zip(part.molecule, part.counts, np.cumsum(part.counts), strict=True):
        here = slice(end - count, end)
        best.setdefault(int(true), int(part.candidates[here][np.argmax(part.scores[here])]))
    smiles = small.smiles
    assert asked == [(smiles[best[int(m)]], smiles[int(m)]) for m in molecule]


def test_plain_data_have_the_names_that_others_rely_on(trained) -> None:
    found = evaluate(trained("bce"))
    facts = json.loads(json.dumps(found.to_dict()))
    for name in (*HITS, "tanimoto"):
        assert facts[name] == pytest.approx(found.values[name].mean())
        assert 0 <= facts[name] <= 1
        low, high = facts["intervals"][name]
        assert low <= facts[name] <= high
    assert facts["random"].keys() == set(HITS)
    assert (facts["fold"], facts["candidates"], facts["ties"], facts["identity"]) == (
        "test", "mass", "expected", "fingerprint",
    )  # fmt: skip
    assert facts["similarity"] is None
    assert facts["run"] == str(trained("bce").folder.resolve())
    assert facts["spectra"]["hit_rate@1"] == 16
    assert facts["molecules"]["tanimoto"] == 10


def test_data_that_have_moved_can_be_named(trained, small: Prepared, tmp_path: Path) -> None:
    shutil.copytree(small.folder, tmp_path / "moved")
    run = Run.open(trained("bce").folder)
    run.metadata["data"]["folder"] = str(tmp_path / "nowhere")
    with pytest.raises(CacheError, match="nowhere: is no prepared folder"):
        evaluate(run)
    there = evaluate(run, data=tmp_path / "moved")
    assert there.to_dict() == evaluate(trained("bce")).to_dict()


def test_an_unfinished_run_is_measured_and_nothing_is_kept(copied, trained) -> None:
    run = copied("bce")
    shutil.rmtree(run.folder / "predictions")
    run.metadata["status"] = "training"
    found = evaluate(run, Scoring())
    for name, values in evaluate(trained("bce"), Scoring()).values.items():
        assert found.values[name] == pytest.approx(values, abs=1e-6)
    assert not (run.folder / "predictions").exists()
    for facts in run.metadata["best"].values():  # as if training had gone on meanwhile
        facts["step"] += 1
    with pytest.raises(RunError, match="is being trained"):
        evaluate(run, Scoring())


def test_spectra_without_a_list_are_counted(trained, small, tmp_path: Path) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "run")  # it gets predictions of this fold
    found = evaluate(Run.open(tmp_path / "run"), Scoring(fold="train"))
    assert found.without_list == len(small.in_fold("train")) - len(found.values["hit_rate@1"])
    assert found.to_dict()["without_list"] == found.without_list


@pytest.mark.parametrize(
    ("loss", "model", "reason"),
    [("fp-mlp", "mlp", "nothing makes them the bits"), ("emb-cos", "mlp", "predicts none"),
     ("bce", "random", "predicts none")],
)  # fmt: skip
def test_bits_that_a_network_reads_have_no_tanimoto(loss, model, reason, trained) -> None:
    found = evaluate(trained(loss, model=model))
    assert set(found.values) == set(HITS)
    assert reason in found.to_dict()["no_fingerprint"]


def test_gains_are_paired_differences(trained) -> None:
    found, control = evaluate(trained("bce")), evaluate(trained("emb-cos", model="blind"))
    gains = found.gain_over(control)
    assert set(gains) == set(HITS)  # the control has no fingerprint
    for name, gain in gains.items():
        paired = found.values[name], control.values[name], found.molecule[name]
        assert gain == bootstrap_difference(*paired)
    for other in ({"fold": "val"}, {"candidates": "formula"}, {"ties": "optimistic"}):
        with pytest.raises(RunError, match="scored in another way"):
            found.gain_over(evaluate(trained("emb-cos"), Scoring(**other)))
    molecule = {name: each[::-1] for name, each in found.molecule.items()}
    for other in (replace(found, molecule=molecule), evaluate(trained("bce"), pooled=True)):
        with pytest.raises(RunError, match="other spectra"):
            found.gain_over(other)


@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_pooled_hit_rates_are_those_of_sums_over_a_molecule(setting: str, trained) -> None:
    run, how = trained("emb-cos"), Scoring(candidates=setting)
    found, alone = evaluate(run, how, pooled=True), evaluate(run, how)
    part = saved(run, f"hit_rate@1/{setting}").lists[setting]
    sums: dict[int, np.ndarray] = {}
    labels: dict[int, np.ndarray] = {}
    ends = np.cumsum(part.counts)
    for end, count, molecule in zip(ends, part.counts, part.molecule.tolist(), strict=True):
        here = slice(end - count, end)
        sums[molecule] = sums.get(molecule, 0) + part.scores[here].astype(float)
        labels[molecule] = (part.identity[here] & 1) > 0
    wanted = {
        m: hit_rate(sums[m], [len(sums[m])], labels[m], 1)[0] for m in sums if labels[m].any()
    }
    got = zip(found.molecule["hit_rate@1"].tolist(), found.values["hit_rate@1"], strict=True)
    assert dict(got) == pytest.approx(wanted)
    assert found.spectra.tolist() == [2] * len(wanted)
    assert found.steps == {name: alone.steps[name] for name in HITS}
    assert found.to_table().columns["metric"] == ["HR@1", "HR@5", "HR@20"]
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["by"] == "molecule"
    assert facts["molecules"] == facts["lists"] == len(wanted)
    assert (facts["spectra"], facts["median_spectra"]) == (2 * len(wanted), 2)
    blind = evaluate(trained("emb-cos", model="blind"), how, pooled=True)
    assert set(found.gain_over(blind)) == set(HITS)
    with pytest.raises(RunError, match="other spectra"):
        found.gain_over(replace(blind, spectra=blind.spectra + 1))


@pytest.mark.parametrize("call", [evaluate, calibrate])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(
    ("loss", "how", "error", "message"),
    [
        ("bce", {"fold": "train2"}, RunError, "fold 'train2' is unknown, expected one of: train"),
        ("bce", {"similarity": "dice"}, RunError, "similarity 'dice' is unknown, expected one of"),
        ("bce", {"ties": "lucky"}, RunError, "ties 'lucky' is unknown, expected one of: expected"),
        ("bce", {"identity": "name"}, RunError, "identity 'name' is unknown, expected one of: fin"),
        ("bce", {"candidates": "hard"}, CacheError, "no candidates 'hard', it has: formula, mass"),
        ("emb-cos", {"similarity": "cosine"}, RunError, "needs a predicted fingerprint"),
    ],
    ids=str,
)
def test_what_cannot_be_scored_is_refused(
    loss, how, error, message: str, pooled: bool, call, trained
) -> None:
    with pytest.raises(error, match=message):
        call(trained(loss), Scoring(**how), pooled=pooled)


@pytest.mark.parametrize("call", [evaluate, calibrate])
def test_a_run_without_a_checkpoint_is_refused(call, copied) -> None:
    run = copied("bce")
    run.metadata["best"] = {}
    with pytest.raises(RunError, match="has no checkpoint yet; train it first, or --resume it"):
        call(run)
