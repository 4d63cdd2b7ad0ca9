from dataclasses import replace

import numpy as np
import pytest

from mzseek.decision import decompose
from mzseek.errors import RunError
from mzseek.evaluation.decomposition import decompose_run, own_rule
from mzseek.evaluation.posteriors import Calibrated, calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import binarise
from mzseek.runs.predictions import Predictions


@pytest.mark.parametrize(
    ("loss", "rule"),
    [
        ("bce", ("threshold", "bits")),
        ("iou", ("threshold", "tanimoto")),
        ("cosine", ("threshold", "cosine")),
        ("fp-cos", ("rank", "hit")),
        ("emb-cos", ("rank", "hit")),
    ],
)
def test_a_run_s_own_rule_is_that_of_its_loss(loss: str, rule, trained) -> None:
    assert own_rule(trained(loss)) == rule


def ranked_by_hand(run, test, small, counts: str, made_for: str, place: int) -> list[float]:
    """The decomposition of one list, from the scores that the run keeps; ties are averaged."""
    said = Predictions.open(run.predictions(run.best["hit_rate@1/mass"]["step"], "test"))
    lists = said.lists["mass"]
    [mine] = np.flatnonzero(lists.queries == test.queries[place])
    start = int(lists.counts[:mine].sum())
    here = slice(start, start + int(lists.counts[mine]))
    scores = np.asarray(lists.scores[here], np.float64)
    first = set(np.asarray(lists.candidates[here])[scores == scores.max()].tolist())
    start = int(test.counts[:place].sum())
    mine = slice(start, start + int(test.counts[place]))
    rows, p = small.fingerprint_rows(test.candidates[mine]), test.probabilities[mine]
    chosen = [row for row, molecule in enumerate(test.candidates[mine]) if int(molecule) in first]
    assert len(chosen) == len(first)
    parts = [decompose(counts, made_for, rows, p, row) for row in chosen]
    return np.mean([(part.bayes, part.residual, part.total) for part in parts], axis=0).tolist()


@pytest.mark.parametrize(("counts", "made_for"), [("tanimoto", "hit"), ("hit", "cosine")])
def test_a_ranking_s_regret_is_split_as_by_hand(counts, made_for, trained, small) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    got = decompose_run(run, found, counts, made_for)
    assert got.shape == (len(found.asked.counts), 3)
    assert got[:, 0] + got[:, 1] == pytest.approx(got[:, 2])
    for place in range(len(got)):
        wanted = ranked_by_hand(run, found.asked, small, counts, made_for, place)
        assert got[place] == pytest.approx(wanted)
    assert (got[:, 0] >= -1e-12).all()
    assert (got[:, 2] >= -1e-12).all()


def test_the_rule_is_the_run_s_own_and_not_the_posterior_s_mode(trained, small) -> None:
    run, other = trained("emb-cos"), trained("bce")
    found = calibrate(run)
    before = decompose_run(run, found, "tanimoto")
    # Another's posterior of the same lists: what this run ranks first is not its mode.
    theirs = calibrate(other, Scoring(candidates=found.asked.how.candidates))
    assert theirs.asked.candidates.tolist() == found.asked.candidates.tolist()
    got = decompose_run(run, theirs, "tanimoto")
    assert np.abs(got[:, 1]).max() > 0.01
    for place in range(len(got)):
        wanted = ranked_by_hand(run, theirs.asked, small, "tanimoto", "hit", place)
        assert got[place] == pytest.approx(wanted)
    # And with probabilities turned round, the first by score is the last by probability.
    turned = replace(found.asked, probabilities=_turned(found.asked))
    flipped = decompose_run(run, Calibrated(found.val, turned, found.uncalibrated), "hit")
    assert flipped[:, 1].mean() > 0.01
    assert before[:, 1].mean() < flipped[:, 1].mean()


def _turned(posterior) -> np.ndarray:
    """Probabilities of each list, the largest where the smallest were."""
    turned = np.empty_like(posterior.probabilities)
    start = 0
    for count in posterior.counts:
        p = posterior.probabilities[start : start + count]
        turned[start + np.argsort(p, kind="stable")] = np.sort(p)[::-1]
        start += count
    return turned


def test_first_places_that_are_shared_count_by_their_mean(trained, small, monkeypatch) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    from mzseek.evaluation import decomposition

    honest = decomposition.scores_at

    def level(*arguments):
        lists = honest(*arguments)
        return replace(lists, scores=np.zeros_like(lists.scores))

    monkeypatch.setattr(decomposition, "scores_at", level)
    got = decompose_run(run, found, "hit")
    start = 0
    for place, count in enumerate(found.asked.counts):
        rows = small.fingerprint_rows(found.asked.candidates[start : start + count])
        p = found.asked.probabilities[start : start + count]
        parts = [decompose("hit", "hit", rows, p, row).total for row in range(count)]
        assert got[place, 2] == pytest.approx(np.mean(parts))
        start += count


@pytest.mark.parametrize(("loss", "made_for"), [("bce", "bits"), ("iou", "tanimoto")])
def test_a_thresholded_fingerprint_s_regret_is_split_as_by_hand(
    loss: str, made_for: str, trained, small
) -> None:
    run = trained(loss)
    found = calibrate(run)
    got = decompose_run(run, found, "tanimoto")
    assert got[:, 0] + got[:, 1] == pytest.approx(got[:, 2])
    said = Predictions.open(run.predictions(run.best["tanimoto"]["step"], "test"))
    predicted = dict(zip(said.queries.tolist(), binarise(said.fingerprints), strict=True))
    test = found.asked
    for place, (end, count) in enumerate(zip(np.cumsum(test.counts), test.counts, strict=True)):
        rows = small.fingerprint_rows(test.candidates[end - count : end])
        p, bits = test.probabilities[end - count : end], predicted[int(test.queries[place])]
        wanted = decompose("tanimoto", made_for, rows, p, np.asarray(bits, np.uint8), "all")
        assert got[place] == pytest.approx([wanted.bayes, wanted.residual, wanted.total])


def test_some_spectra_are_enough_for_a_split(trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    every, some = (decompose_run(run, found, "hit", "tanimoto", every=n) for n in (1, 3))
    assert some.tolist() == every[::3].tolist()


def test_rules_that_a_run_has_not_are_refused(trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    with pytest.raises(RunError, match="rule 'vote' is unknown, expected one of: rank, threshold"):
        decompose_run(run, found, "hit", "bits", rule="vote")
    with pytest.raises(RunError, match="emb-cos predicts no fingerprint to threshold"):
        decompose_run(run, found, "hit", "bits", rule="threshold")
    other = calibrate(run, Scoring(candidates="formula"))
    mixed = Calibrated(
        found.val, replace(found.asked, candidates=other.asked.candidates), found.val
    )
    with pytest.raises(RunError, match="the posterior is of other lists than the run ranks"):
        decompose_run(run, mixed, "hit")
