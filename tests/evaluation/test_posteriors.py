import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.molecules import MoleculeTable
from mzseek.datasets.prepare import append_segment
from mzseek.datasets.prepared import CandidateLists, Prepared
from mzseek.decision import (
    Calibration,
    calibration_error,
    coverage_range,
    fit_calibration,
    fit_pooling,
    fit_temperature,
    posterior,
)
from mzseek.evaluation.posteriors import (
    Calibrated,
    PooledCalibration,
    Posterior,
    abstentions,
    by_spectrum_count,
    calibrate,
    calibration_lists,
    set_results,
)
from mzseek.evaluation.scored import Scoring, labels_of, pool_lists
from mzseek.metrics import bootstrap
from mzseek.runs.predictions import Predictions
from mzseek.runs.run import Run

from ..conftest import sign

OCTANOIC, NONANOIC = "CCCCCCCC(=O)O", "CCCCCCCCC(=O)O"
HYDROXYPYRIDINE, PYRIDONE = "Oc1ccccn1", "O=c1cccc[nH]1"


def slices(found: Posterior) -> list[slice]:
    ends = np.cumsum(found.counts)
    return [slice(e - c, e) for e, c in zip(ends, found.counts, strict=True)]


def rewrite(run: Run, what: str, change, fold: str = "*") -> None:
    """Another array in every saved list of a fold, made from the old one."""
    for path in run.folder.glob(f"predictions/*/{fold}/*.{what}.npy"):
        np.save(path, change(np.load(path)))
    sign(run.folder)


def reorder(run: Run, truth_first: bool) -> None:
    """The same lists, the truth first or last in each."""
    for folder in run.folder.glob("predictions/*/*"):
        for name, part in Predictions.open(folder).lists.items():
            of_list = np.repeat(np.arange(len(part.counts)), part.counts)
            truth = (part.identity > 0) ^ truth_first
            order = np.lexsort((np.arange(len(of_list)), truth, of_list))
            for what in ("candidates", "identity", "scores"):
                np.save(folder / f"{name}.{what}.npy", np.array(getattr(part, what))[order])
    sign(run.folder)


def same(one: Posterior, other: Posterior) -> bool:
    names = ("queries", "molecule", "counts", "candidates", "labels", "probabilities", "identity")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)


@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_probabilities_are_those_of_the_saved_scores(setting: str, trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run, Scoring(candidates=setting)).evaluated
    part = Predictions.open(run.predictions(found.step, "test")).lists[setting]
    wanted = {}
    for end, count, query in zip(np.cumsum(part.counts), part.counts, part.queries, strict=True):
        here = slice(end - count, end)
        p = found.calibration.posterior(part.scores[here], [count])
        labels = (part.identity[here] & IDENTITY_BITS["fingerprint"]) > 0
        rows = zip(part.candidates[here].tolist(), p, labels, strict=True)
        wanted[int(query)] = sorted(rows)
    for query, here in zip(found.queries, slices(found), strict=True):
        rows = zip(found.candidates[here].tolist(), found.probabilities[here], found.labels[here],
                   strict=True)  # fmt: skip
        for one, other in zip(sorted(rows), wanted.pop(int(query)), strict=True):
            assert one == pytest.approx(other)
    # Left out: lists in which nothing is the truth.
    assert not any(label for rows in wanted.values() for *_, label in rows)


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_probabilities_sum_to_one_and_each_list_has_the_truth(loss: str, trained) -> None:
    found = calibrate(trained(loss))
    for each in (found.val, found.evaluated, found.uncalibrated, found.evaluated.uniform()):
        starts = np.cumsum(each.counts) - each.counts
        assert np.add.reduceat(each.probabilities, starts) == pytest.approx(1)
        assert np.logical_or.reduceat(each.labels, starts).all()
        assert len(each.candidates) == len(each.labels) == len(each.identity) == each.counts.sum()


def test_the_order_of_a_list_does_not_matter(copied) -> None:
    first, last = copied("emb-cos", name="first"), copied("emb-cos", name="last")
    reorder(first, truth_first=True)
    reorder(last, truth_first=False)
    one, other = calibrate(first), calibrate(last)
    assert same(one.evaluated, other.evaluated)
    assert same(one.val, other.val)


def test_the_calibration_is_fitted_on_validation_alone(copied) -> None:
    run, other = copied("emb-cos", name="as it is"), copied("emb-cos", name="changed")
    rewrite(other, "scores", lambda scores: -3 * scores, fold="test")
    one, two = calibrate(run), calibrate(other)
    assert one.evaluated.calibration == one.val.calibration == two.evaluated.calibration
    assert same(one.val, two.val)
    assert not same(one.evaluated, two.evaluated)
    rewrite(other, "scores", lambda scores: -3 * scores, fold="val")
    assert calibrate(other).evaluated.calibration != one.evaluated.calibration


def test_the_checkpoint_is_the_one_under_which_the_truth_is_most_probable(trained) -> None:
    run = trained("emb-cos")
    losses = {}
    for step in {facts["step"] for facts in run.best.values()}:
        part = Predictions.open(run.predictions(step, "val")).lists["mass"]
        labels = (part.identity & 1) > 0
        best = fit_temperature(part.scores, part.counts, labels, part.molecule)
        p = posterior(part.scores, part.counts, best)
        starts = np.cumsum(part.counts) - part.counts
        losses[step] = -np.log(np.add.reduceat(np.where(labels, p, 0), starts)).mean()
    found = calibrate(run)
    assert losses[found.evaluated.step] == pytest.approx(min(losses.values()))
    assert found.evaluated.step == found.val.step == found.uncalibrated.step


def test_uncalibrated_are_the_scores_as_they_were_trained(trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run).uncalibrated
    assert found.calibration.temperature == run.loss.options.temperature
    assert (found.calibration.power, found.calibration.floor) == (0, 0)
    plain = calibrate(trained("bce")).uncalibrated
    assert plain.calibration.temperature == 1  # the loss has none


def in_list_of(found: Posterior, small: Prepared, smiles: str) -> tuple[int, slice]:
    names = [small.smiles[int(m)] for m in found.molecule]
    place = names.index(smiles)
    return place, slices(found)[place]


@pytest.mark.parametrize(("identity", "merged"), [("fingerprint", 1), ("inchikey", 0)])
def test_twins_are_one_answer_by_fingerprint(identity, merged, trained, small) -> None:
    found = calibrate(trained("emb-cos"), Scoring(identity=identity)).evaluated
    place, here = in_list_of(found, small, OCTANOIC)
    p, counts, labels = found.merged()
    assert found.counts[place] - counts[place] == merged
    end = int(np.cumsum(counts)[place])
    inside = slice(end - int(counts[place]), end)
    names = [small.smiles[int(c)] for c in found.candidates[here]]
    truth = found.probabilities[here][names.index(OCTANOIC)]
    twin = found.probabilities[here][names.index(NONANOIC)]
    assert labels[inside].sum() == 1
    assert p[inside][labels[inside]] == pytest.approx(truth + merged * twin)
    assert p[inside].sum() == pytest.approx(1)


def test_a_tautomer_is_the_truth_by_inchikey_alone(trained, small: Prepared) -> None:
    by_block = calibrate(trained("emb-cos"), Scoring(identity="inchikey")).evaluated
    _, here = in_list_of(by_block, small, HYDROXYPYRIDINE)
    names = [small.smiles[int(c)] for c in by_block.candidates[here]]
    assert by_block.labels[here].tolist() == [name == PYRIDONE for name in names]
    by_bits = calibrate(trained("emb-cos")).evaluated
    assert HYDROXYPYRIDINE not in [small.smiles[int(m)] for m in by_bits.molecule]


def test_a_similarity_makes_another_posterior(trained) -> None:
    own, other = (
        calibrate(trained("bce")),
        calibrate(trained("bce"), Scoring(similarity="tanimoto")),
    )
    assert own.evaluated.how.similarity is None
    assert other.evaluated.how.similarity == other.val.how.similarity == "tanimoto"
    assert not np.allclose(own.evaluated.probabilities, other.evaluated.probabilities)


@pytest.mark.parametrize("fold", ["val", "test"])
def test_a_fold_without_the_truth_is_refused(fold: str, copied) -> None:
    run = copied("emb-cos")
    rewrite(run, "identity", np.zeros_like, fold=fold)
    with pytest.raises(RunError, match=f"no {fold} spectrum has its molecule among its mass"):
        calibrate(run)


def test_negatives_that_are_added_change_no_order(trained, small, tmp_path: Path) -> None:
    """Where probabilities are equal, the order of a list decides."""
    folder = Path(shutil.copytree(small.folder, tmp_path / "prepared"))
    before = calibrate(trained("emb-cos"), data=folder).evaluated
    lists = CandidateLists(
        np.array([0, 1]), np.array([len(small.masses)], np.int32), np.array([0], np.uint8),
        np.full(len(small.masses), -1, np.int32),
    )  # fmt: skip
    molecules = MoleculeTable(
        kind="maccs", smiles=["CCO"], formulas=["C2H6O"],
        inchikey14=np.array([b"LFQSCWFLJHTTHZ"], "S14"),
        masses=np.array([46.04]), fingerprint_indptr=np.array([0, 1]),
        fingerprint_bits=np.array([3], np.uint16),
    )  # fmt: skip
    facts = {
        "lists": 1, "candidates": 1, "median": 1.0, "largest": 1, "molecules_without": 0,
        "negatives": {"by": "mass"},
    }  # fmt: skip
    append_segment(Prepared.open(folder), "hard-mass-9", lists, molecules, facts)
    after = calibrate(trained("emb-cos"), data=folder).evaluated
    assert after.candidates.tolist() == before.candidates.tolist()
    assert after.probabilities.tolist() == before.probabilities.tolist()


def lists(p: list[list[float]], truth: list[int], molecule=None, identity=None) -> Posterior:
    """A posterior of lists, with the place of the truth in each."""
    counts = np.array([len(each) for each in p])
    labels = np.concatenate([np.arange(n) == t for n, t in zip(counts, truth, strict=True)])
    flat = (
        np.concatenate([np.arange(n) for n in counts]) if identity is None else np.array(identity)
    )
    return Posterior(
        queries=np.arange(len(p)),
        molecule=np.array(range(len(p)) if molecule is None else molecule, np.int32),
        counts=counts,
        candidates=np.arange(counts.sum(), dtype=np.int32),
        labels=labels,
        probabilities=np.concatenate(p),
        identity=flat,
        calibration=Calibration(1.0),
        step=1,
        how=Scoring(),
    )


def calibrated(val: Posterior, test: Posterior, uncalibrated: Posterior | None = None):
    return Calibrated(val, test, uncalibrated or test)


SURE, UNSURE = [0.7, 0.2, 0.06, 0.04], [0.4, 0.3, 0.2, 0.1]


def test_sets_are_fitted_on_validation_and_measured_on_the_other_fold() -> None:
    # With √4 = 2, the truth's strength is 1.4 six times and 0.4 three times.
    val = lists([SURE] * 9, [0] * 6 + [1] * 3)
    test = lists([UNSURE] * 4, [0, 1, 2, 3])
    low, high, all_of_it = set_results(calibrated(val, test), (0.6, 0.8, 0.99))
    assert (low.threshold, high.threshold, all_of_it.threshold) == (1.4, 0.4, 0)
    # At 1.4 the first is in alone; at 0.4 all of at least 0.2; at 0 all.
    assert [each.mean_size for each in (low, high, all_of_it)] == [1, 3, 4]
    assert [each.covered.mean for each in (low, high, all_of_it)] == [0.25, 0.75, 1]
    assert [each.stated for each in (low, high, all_of_it)] == [0.6, 0.8, 0.99]
    assert high.median_size == 3
    assert high.mean_list == 4
    assert high.covered == bootstrap([1.0, 1.0, 1.0, 0.0])


def test_plain_data_of_sets_say_what_they_were_fitted_on() -> None:
    [found] = set_results(calibrated(lists([SURE] * 9, [0] * 9), lists([SURE], [0])), (0.8,))
    facts = found.to_dict()
    low, high = facts.pop("interval")
    assert 0 < low < 0.05  # of one molecule
    assert high == 1
    assert facts == {
        "stated": 0.8, "covered": 1.0, "threshold": 1.4, "mean_size": 1.0, "median_size": 1.0,
        "mean_list": 4.0, "falls_short": False, "fitted_on_molecules": 9, "everything_in": False,
        "range_by_chance": list(coverage_range(9, 0.8)),
    }  # fmt: skip


def test_coverage_whose_interval_is_below_the_promise_falls_short() -> None:
    val = lists([SURE] * 20, [0] * 20)
    for right, short in ((36, False), (30, False), (20, True), (10, True)):
        test = lists([SURE] * 40, [0] * right + [1] * (40 - right))
        [found] = set_results(calibrated(val, test), (0.8,))
        assert found.covered.mean == right / 40
        assert found.falls_short == found.to_dict()["falls_short"] == short


def test_too_few_molecules_put_everything_in_and_say_so() -> None:
    few = lists([SURE] * 30, [0] * 30, molecule=[*range(15), *range(15)])
    low, high = set_results(calibrated(few, few), (0.8, 0.95))
    assert (low.fitted_on, low.everything, high.everything) == (15, False, True)
    assert (high.mean_size, high.covered.mean, high.by_chance) == (4, 1, (1, 1))
    assert high.to_dict()["everything_in"]


def test_molecules_count_once_in_coverage() -> None:
    val = lists([SURE] * 9, [0] * 9)
    test = lists([SURE] * 4, [0, 1, 1, 1], molecule=[5, 6, 6, 6])
    [found] = set_results(calibrated(val, test), (0.8,))
    assert found.covered.mean == 0.5
    # Nine spectra of one molecule promise no more than one would.
    [alike] = set_results(calibrated(replace(val, molecule=np.zeros(9, np.int32)), test), (0.8,))
    assert alike.threshold == 0


def test_twins_are_one_answer_in_sets_and_confidence() -> None:
    twins = lists([[0.3, 0.3, 0.4]] * 3, [0] * 3, identity=[7, 7, 8] * 3)
    twins = replace(twins, labels=np.array([True, True, False] * 3))
    found = calibrated(twins, twins)
    assert {each.mean_list for each in set_results(found)} == {2}
    assert calibration_error(*twins.merged()) == pytest.approx(0.4)  # 0.6 sure, always right


def test_abstention_is_chosen_on_validation_and_measured_on_the_other_fold() -> None:
    # Above 0.9: one in ten wrong by the careful count; all: ten of nineteen.
    val = lists([[0.9, 0.1]] * 9 + [[0.6, 0.4]] * 9, [0] * 9 + [1] * 9)
    test = lists([[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], [0, 1, 0, 0])
    strict, loose, never = abstentions(calibrated(val, test), (0.1, 0.6, 0.01))
    assert vars(strict) == pytest.approx(
        {"wanted": 0.1, "threshold": 0.9, "answered": 0.5, "wrong": 0.5}
        | dict(zip(("low", "high"), _ends([0.0, 1.0]), strict=True))
    )
    assert (loose.wanted, loose.threshold, loose.answered) == (0.6, 0.6, 0.75)
    assert loose.wrong == pytest.approx(1 / 3)
    assert (never.threshold, never.answered) == (np.inf, 0)
    assert np.isnan(never.wrong)
    assert never.to_dict() == {
        "wanted": 0.01, "threshold": None, "answered": 0.0, "wrong": None, "interval": None,
        "falls_short": False,
    }  # fmt: skip


def _ends(values: list[float]) -> tuple[float, float]:
    found = bootstrap(values)
    return found.low, found.high


def test_more_wrong_answers_than_wanted_are_told_where_the_interval_says_so() -> None:
    val = lists([[0.9, 0.1]] * 30, [0] * 30)
    good, bad = (lists([[0.9, 0.1]] * 30, [0] * n + [1] * (30 - n)) for n in (29, 10))
    for test, short in ((good, False), (bad, True)):
        [found] = abstentions(calibrated(val, test), (0.3,))
        assert found.falls_short == short == found.to_dict()["falls_short"]
        assert found.to_dict()["interval"] == [found.low, found.high]
        assert found.low <= found.wrong <= found.high


def test_each_molecule_of_validation_counts_once(trained) -> None:
    run = trained("emb-cos")
    found = calibrate(run)
    part = Predictions.open(run.predictions(found.val.step, "val")).lists["mass"]
    labels = (part.identity & 1) > 0
    fitted = fit_calibration(part.scores, part.counts, labels, part.molecule)
    assert vars(found.val.calibration) == pytest.approx(vars(fitted), rel=1e-4, abs=1e-4)


def test_probabilities_are_those_of_sums_by_the_calibration_of_single_spectra(trained) -> None:
    run = trained("emb-cos")
    found, alone = calibrate(run, pooled=True), calibrate(run)
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
    random = calibrate(trained("bce", model="random"), pooled=True)  # the baseline, too
    assert len(random.evaluated.counts) == len(sums.counts)


def test_one_spectrum_a_molecule_is_judged_as_it_is_alone(trained) -> None:
    lists = calibration_lists(trained("emb-cos"))
    _, first = np.unique(lists.evaluated.molecule, return_index=True)
    single = lists.evaluated.select(np.isin(np.arange(len(lists.evaluated.counts)), first))
    fitted = PooledCalibration.fit(lists.val, lists.how, pooled=True)
    judged, spectra = fitted.pool(single)
    assert spectra.tolist() == [1] * len(first)
    assert judged.scores.tolist() == single.scores.tolist()
    alone = PooledCalibration.fit(lists.val, lists.how, pooled=False)
    assert alone == PooledCalibration(fitted.calibration)
    assert alone.pool(single)[0] is single


def test_numbers_of_spectra_are_reported_separately(trained) -> None:
    found = calibrate(trained("emb-cos"), pooled=True)
    [only] = by_spectrum_count(found)
    count = len(found.evaluated.counts)
    assert (only.least, only.most, only.lists) == (2, 4, count)
    spectra = np.array([1, 4, 5, 9, 19, 20, 1000, 2][:count], np.int64)
    rows = by_spectrum_count(replace(found, spectra=spectra))
    ranges = [(row.least, row.most) for row in rows]
    assert ranges == [(1, 1), (2, 4), (5, 9), (10, 19), (20, None)]
    assert sum(row.lists for row in rows) == count
    with pytest.raises(RunError, match="of spectra alone"):
        by_spectrum_count(calibrate(trained("emb-cos")))
