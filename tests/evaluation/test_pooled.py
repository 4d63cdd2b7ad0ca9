import json
from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import CacheError, RunError
from mzseek.decision import Calibration, Pooling, fit_pooling
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.pooled import (
    PooledCalibration,
    by_spectrum_count,
    calibrate_pooled,
    evaluate_pooled,
    molecule_groups,
    pool_lists,
)
from mzseek.evaluation.posterior_report import report_calibrated
from mzseek.evaluation.posteriors import calibrate, calibration_lists
from mzseek.evaluation.scored import Scoring, labels_of
from mzseek.metrics import bootstrap_difference, hit_rate
from mzseek.runs.predictions import ListScores, Predictions


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


def some(lists: ListScores, which: list[int]) -> ListScores:
    """Lists in another order."""
    ends = np.cumsum(lists.counts)
    inside = np.concatenate([np.arange(ends[i] - lists.counts[i], ends[i]) for i in which])
    return ListScores(
        **{name: getattr(lists, name)[which] for name in ("queries", "molecule", "counts")},
        **{name: getattr(lists, name)[inside] for name in ("candidates", "identity", "scores")},
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


def test_the_order_of_spectra_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    rows = [(m, [1, 2, 3, 4], rng.normal(size=4).tolist()) for m in (1, 2, 3) for _ in range(7)]
    lists = lists_of(rows)
    order = rng.permutation(len(rows)).tolist()
    one, spectra = pool_lists(lists, Pooling(0.4))
    other, again = pool_lists(some(lists, order), Pooling(0.4))
    place = np.argsort(other.molecule)
    sums = other.scores.reshape(-1, 4)[place]
    assert sums.tobytes() == one.scores.reshape(-1, 4)[np.argsort(one.molecule)].tobytes()
    assert again[place].tolist() == spectra.tolist() == [7, 7, 7]


@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_hit_rates_are_those_of_sums_over_a_molecule(setting: str, trained) -> None:
    run = trained("emb-cos")
    found = evaluate_pooled(run, Scoring(candidates=setting))
    part = Predictions.open(run.predictions(found.steps["hit_rate@1"], "test")).lists[setting]
    ends = np.cumsum(part.counts)
    sums: dict[int, np.ndarray] = {}
    labels: dict[int, np.ndarray] = {}
    for end, count, molecule in zip(ends, part.counts, part.molecule.tolist(), strict=True):
        here = slice(end - count, end)
        sums[molecule] = sums.get(molecule, 0) + part.scores[here].astype(float)
        labels[molecule] = (part.identity[here] & 1) > 0
    usable = [m for m in sums if labels[m].any()]
    wanted = {m: hit_rate(sums[m], [len(sums[m])], labels[m], 1)[0] for m in usable}
    assert sorted(found.molecule["hit_rate@1"].tolist()) == sorted(wanted)
    got = dict(zip(found.molecule["hit_rate@1"].tolist(), found.values["hit_rate@1"], strict=True))
    assert got == pytest.approx(wanted)
    assert found.spectra.tolist() == [2] * len(wanted)
    alone = evaluate(run, Scoring(candidates=setting))
    assert found.steps == {name: alone.steps[name] for name in found.steps}
    assert len(alone.values["hit_rate@1"]) == found.spectra.sum()


def test_probabilities_are_those_of_sums_by_the_calibration_of_single_spectra(trained) -> None:
    run = trained("emb-cos")
    found, alone = calibrate_pooled(run), calibrate(run)
    assert found.evaluated.calibration == alone.evaluated.calibration
    lists = calibration_lists(run)
    assert found.evaluated.step == alone.evaluated.step == lists.step
    labels = labels_of(lists.val, lists.how.identity)
    fitted = fit_pooling(
        lists.val.scores, lists.val.counts, labels, lists.val.molecule, alone.evaluated.calibration
    )
    assert found.pooling == fitted
    sums, spectra = pool_lists(lists.evaluated, fitted)
    p = alone.evaluated.calibration.posterior(sums.scores, sums.counts)
    assert found.evaluated.probabilities.tolist() == p.tolist()
    assert found.spectra.tolist() == spectra.tolist()
    assert alone.pooling is alone.spectra is None
    bare, _ = pool_lists(lists.evaluated)
    plain = Calibration(run.loss.options.temperature).posterior(bare.scores, bare.counts)
    assert found.uncalibrated.probabilities.tolist() == plain.tolist()


def test_one_spectrum_a_molecule_is_judged_as_it_is_alone(trained) -> None:
    lists = calibration_lists(trained("emb-cos"))
    _, first = np.unique(lists.evaluated.molecule, return_index=True)
    single = some(lists.evaluated, first.tolist())
    fitted = PooledCalibration.fit(lists.val, lists.how, pooled=True)
    judged, spectra = fitted.pool(single)
    assert spectra.tolist() == [1] * len(first)
    assert judged.scores.tolist() == single.scores.tolist()
    alone = PooledCalibration.fit(lists.val, lists.how, pooled=False)
    assert alone.pooling is None
    assert alone.calibration == fitted.calibration
    assert alone.pool(single)[0] is single


def test_beliefs_and_plain_data_of_spectra_together(trained) -> None:
    run = trained("emb-cos")
    found = calibrate_pooled(run)
    beliefs = report_calibrated(found, run)
    facts = json.loads(json.dumps(beliefs.to_dict(), allow_nan=False))
    assert facts["calibration"]["dependence"] == found.pooling.dependence
    assert facts["calibration"]["worst_bin"] is None  # eight molecules fill no bin
    assert sum(each["lists"] for each in facts["calibration"]["bins"]) == len(
        found.evaluated.counts
    )
    together = json.loads(json.dumps(evaluate_pooled(run).to_dict(), allow_nan=False))
    assert together["molecules"] == together["lists"] == len(found.evaluated.counts)
    assert (together["spectra"], together["median_spectra"]) == (2 * together["lists"], 2)


def test_numbers_of_spectra_are_told_apart(trained) -> None:
    found = calibrate_pooled(trained("emb-cos"))
    [only] = by_spectrum_count(found)
    assert (only.least, only.most, only.lists) == (2, 4, len(found.evaluated.counts))
    count = len(found.evaluated.counts)
    spectra = np.array([1, 4, 5, 9, 19, 20, 1000, 2][:count], np.int64)
    rows = by_spectrum_count(replace(found, spectra=spectra))
    assert [(row.least, row.most) for row in rows] == [
        (1, 1), (2, 4), (5, 9), (10, 19), (20, None),
    ]  # fmt: skip
    assert sum(row.lists for row in rows) == count
    with pytest.raises(RunError, match="of spectra alone"):
        by_spectrum_count(calibrate(trained("emb-cos")))


def test_the_gain_over_a_control_is_paired_by_molecule(trained) -> None:
    own, blind = (
        evaluate_pooled(trained("emb-cos")),
        evaluate_pooled(trained("emb-cos", model="blind")),
    )
    gain = own.gain_over(blind)["hit_rate@5"]
    assert gain == bootstrap_difference(
        own.values["hit_rate@5"], blind.values["hit_rate@5"], own.molecule["hit_rate@5"]
    )
    with pytest.raises(RunError, match="other spectra"):
        own.gain_over(replace(blind, spectra=blind.spectra + 1))


def test_a_table_of_them_has_a_row_for_each_hit_rate(trained) -> None:
    found = evaluate_pooled(trained("bce"))
    assert found.to_table().columns["metric"] == ["HR@1", "HR@5", "HR@20"]


def test_the_random_baseline_is_scored_together(trained) -> None:
    run = trained("bce", model="random")
    assert len(evaluate_pooled(run).spectra) == len(calibrate_pooled(run).evaluated.counts)


@pytest.mark.parametrize("call", [evaluate_pooled, calibrate_pooled])
def test_what_cannot_be_scored_is_refused(call, trained) -> None:
    with pytest.raises(CacheError, match="no candidates 'hard'"):
        call(trained("bce"), Scoring(candidates="hard"))
    with pytest.raises(RunError, match="needs a predicted fingerprint"):
        call(trained("emb-cos"), Scoring(similarity="cosine"))
