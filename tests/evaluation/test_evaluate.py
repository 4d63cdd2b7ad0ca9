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
from mzseek.evaluation.evaluate import FINGERPRINT_METRICS, Evaluation, evaluate, mces_of_best
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import binarise, bit_accuracy, cosine, hit_rate, soft_tanimoto, tanimoto
from mzseek.runs.checkpoints import best_model
from mzseek.runs.predictions import Predictions, random_fold
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
        labels = (part.identity & 1) > 0
        lists = np.repeat(np.arange(len(part.counts)), part.counts)
        usable = np.isin(np.arange(len(part.counts)), lists[labels])
        inside = usable[lists]
        expected = hit_rate(part.scores[inside], part.counts[usable], labels[inside], k)
        assert found.values[name].tolist() == expected.tolist()
        assert found.molecule[name].tolist() == part.molecule[usable].tolist()
        assert found.steps[name] == run.best[f"{name}/{setting}"]["step"]


def test_fingerprint_metrics_are_those_of_the_saved_fingerprints(
    trained, small: Prepared, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.evaluation.evaluate._ROWS", 6)
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


def test_a_fold_that_was_not_predicted_is_predicted_once(copied, small: Prepared) -> None:
    run = copied("bce")
    one = evaluate(run, Scoring(fold="train"))
    assert len(one.values["tanimoto"]) == len(small.in_fold("train"))
    shutil.rmtree(run.folder / "checkpoints")
    assert evaluate(run, Scoring(fold="train")).to_dict() == one.to_dict()


def test_a_model_trained_on_mass_lists_is_scored_on_formula_lists(trained) -> None:
    run = trained("emb-cos")
    assert run.candidates == "mass"
    mass, formula = evaluate(run), evaluate(run, Scoring(candidates="formula"))
    assert (mass.how.candidates, formula.how.candidates) == ("mass", "formula")
    assert formula.values["hit_rate@5"].tolist() == [1.0] * 18  # lists of five
    assert mass.random_order["hit_rate@1"] < formula.random_order["hit_rate@1"]


@pytest.mark.parametrize("kind", ROWS)
def test_similarities_are_those_of_dense_rows(
    kind: str, trained, small: Prepared, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.evaluation.evaluate._ROWS", 7)
    run = trained("bce")
    found = evaluate(run, Scoring(similarity=kind))
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
        lists = np.repeat(np.arange(len(part.counts)), part.counts)
        labels = (part.identity & 1) > 0
        usable = np.isin(np.arange(len(part.counts)), lists[labels])
        inside = usable[lists]
        expected = hit_rate(scores[inside], part.counts[usable], labels[inside], k)
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


def test_bits_that_a_network_reads_have_no_tanimoto(trained) -> None:
    run = trained("fp-mlp")
    assert "tanimoto" not in run.best
    found = evaluate(run)
    assert set(found.values) == set(HITS)
    assert "nothing makes them the bits of the molecule" in found.to_dict()["no_fingerprint"]
    assert evaluate(trained("bce")).no_fingerprint is None


def test_fp_cos_at_another_temperature_has_a_tanimoto_of_its_own(trained) -> None:
    """The footnote of the paper's main table: Tanimoto at τ = 4, retrieval at 1/256."""
    run = trained("fp-cos", temperature=4.0)
    found = evaluate(run)
    assert found.chosen_by["tanimoto"] == "tanimoto"
    assert found.steps["tanimoto"] == run.best["tanimoto"]["step"]
    best = max(row["tanimoto"] for row in run.history())
    on_val = evaluate(run, Scoring(fold="val"))
    assert on_val.values["tanimoto"].mean() == pytest.approx(best, abs=1e-9)


def test_without_a_fingerprint_there_are_hit_rates_alone(trained) -> None:
    for run in (trained("emb-cos"), trained("bce", model="random")):
        assert set(evaluate(run).values) == set(HITS)


# Ties, identities, chance.


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


# Gains over a control.


def test_the_gain_over_oneself_is_nothing_as_far_as_so_few_molecules_tell(trained) -> None:
    found = evaluate(trained("bce"))
    for gain in found.gain_over(found).values():
        assert gain.mean == 0
        assert gain.low == pytest.approx(-gain.high)
        assert gain.high > 0.2, "of eight molecules"


def test_gains_are_paired_differences(trained) -> None:
    found, control = evaluate(trained("bce")), evaluate(trained("emb-cos", model="blind"))
    gains = found.gain_over(control)
    assert set(gains) == set(HITS)  # the control has no fingerprint
    for name, gain in gains.items():
        assert gain.mean == pytest.approx((found.values[name] - control.values[name]).mean())
        assert gain.low <= gain.mean <= gain.high
        assert gain.groups == len(set(found.molecule[name].tolist()))


@pytest.mark.parametrize(
    "other", [{"fold": "val"}, {"candidates": "formula"}, {"ties": "optimistic"},
              {"identity": "inchikey"}], ids=str,
)  # fmt: skip
def test_a_control_scored_in_another_way_is_refused(other, trained) -> None:
    control = evaluate(trained("emb-cos"), Scoring(**other))
    with pytest.raises(RunError, match="scored in another way"):
        evaluate(trained("bce")).gain_over(control)


def test_a_control_may_have_another_similarity(trained) -> None:
    found = evaluate(trained("bce"), Scoring(similarity="tanimoto"))
    assert set(HITS) <= set(found.gain_over(evaluate(trained("bce"))))


def test_a_control_on_other_spectra_is_refused(trained) -> None:
    found = evaluate(trained("bce"))
    molecule = {name: each[::-1] for name, each in found.molecule.items()}
    with pytest.raises(RunError, match="other spectra"):
        found.gain_over(replace(found, molecule=molecule))


# MCES of the best candidate.


@pytest.mark.parametrize("molecules", [1, 4, 100])
def test_mces_compares_the_best_candidate_with_the_truth(
    molecules: int, trained, small: Prepared, monkeypatch
) -> None:
    asked: list[tuple[str, str]] = []

    def distances(found, truth, threshold: int):
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


# What comes out, and what is refused.


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


def test_intervals_widen_with_their_level(trained) -> None:
    found: Evaluation = evaluate(trained("bce"))
    narrow, wide = (found.intervals(level)["tanimoto"] for level in (0.5, 0.99))
    assert wide.low <= narrow.low <= narrow.mean <= narrow.high <= wide.high


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"fold": "train2"}, "fold 'train2' is unknown, expected one of: train, val, test"),
        ({"similarity": "dice"}, "similarity 'dice' is unknown, expected one of: cosine"),
        ({"ties": "lucky"}, "ties 'lucky' is unknown, expected one of: expected, optimistic"),
        ({"identity": "name"}, "identity 'name' is unknown, expected one of: fingerprint"),
    ],
    ids=str,
)
def test_unknown_ways_are_refused_with_the_known_ones(how, message: str, trained) -> None:
    with pytest.raises(RunError, match=message):
        evaluate(trained("bce"), Scoring(**how))


def test_unknown_candidates_are_refused_with_the_known_ones(trained) -> None:
    with pytest.raises(CacheError, match="no candidates 'hard', it has: formula, mass"):
        evaluate(trained("bce"), Scoring(candidates="hard"))


def test_a_run_without_a_checkpoint_is_refused(copied) -> None:
    run = copied("bce")
    run.metadata["best"] = {}
    with pytest.raises(RunError, match="has no checkpoint yet; train it first, or --resume it"):
        evaluate(run)


def test_data_that_have_moved_can_be_named(trained, small: Prepared, tmp_path: Path) -> None:
    shutil.copytree(small.folder, tmp_path / "moved")
    run = Run.open(trained("bce").folder)
    run.metadata["data"]["folder"] = str(tmp_path / "nowhere")
    with pytest.raises(CacheError, match="nowhere: is no prepared folder"):
        evaluate(run)
    there = evaluate(run, data=tmp_path / "moved")
    assert there.to_dict() == evaluate(trained("bce")).to_dict()


def test_the_model_s_own_cosine_is_not_rounded(trained) -> None:
    run = trained("bce")
    own, asked = (evaluate(run, Scoring(similarity=kind)) for kind in (None, "cosine"))
    for name in ("hit_rate@1", "hit_rate@5", "hit_rate@20"):
        assert own.values[name].tolist() == asked.values[name].tolist()


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
