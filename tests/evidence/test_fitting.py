"""Cross-fitting, fitted runs and their predictions."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import BusyError, CacheError, EvidenceError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.information_gain import information_gain
from mzseek.evaluation.leaderboard import leaderboard_row
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.posteriors import PooledCalibration, calibrate, calibration_lists
from mzseek.evaluation.scored import Scoring
from mzseek.evidence import channel_from, channels_from, fitting
from mzseek.evidence.fitting import (
    MIN_TANIMOTO,
    CrossFittedChannel,
    FitOptions,
    StructureGroups,
    fit,
    fit_rankers,
    structure_groups_from,
    swapped,
    with_corrupted,
)
from mzseek.evidence.model import Channel, ChannelState, EvidenceModel
from mzseek.evidence.prepared_queries import merged_queries, queries_from, queries_with_truth
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.evidence.ranker import fit_ranker
from mzseek.io import sole_writer
from mzseek.runs.predictions import CROSSFITTED_TRAIN, Predictions, label_of
from mzseek.runs.run import Run
from mzseek.similarity import tanimoto_blocks

from ..conftest import sign


class Memory(Channel):
    """Knows by heart which molecules it was shown: the worst that a channel can do."""

    name = "memory"
    feature_names: ClassVar[tuple[str, ...]] = ("seen",)

    def fit(self, training_set: TrainingSet, progress=None) -> ChannelState:
        shown = [training_set.molecules.smiles[m] for m in np.unique(training_set.molecule)]
        return ChannelState({}, {"shown": shown}, training_set.molecules_used)

    def features(self, state: ChannelState, queries: Queries) -> np.ndarray:
        shown = set(state.metadata["shown"])
        seen = [queries.molecules.smiles[row] in shown for row in queries.candidates]
        return np.array(seen, np.float32)[:, None]


class Pretrained(Memory):
    """The same, but what it was shown cannot be taken away."""

    pretrained = True


def groups_of(training_set: TrainingSet, number: int, order: np.ndarray | None = None):
    rows = fingerprints(list(training_set.molecules.smiles))
    order = np.arange(rows.shape[0]) if order is None else order
    return StructureGroups.of(training_set.inchikey14[order], rows[order], number)


@pytest.fixture(scope="module")
def groups(training_set: TrainingSet) -> StructureGroups:
    return groups_of(training_set, 4)


def test_groups_hold_whole_clusters_in_any_order(
    training_set: TrainingSet, groups: StructureGroups
) -> None:
    rows = fingerprints(list(training_set.molecules.smiles))
    cluster = groups.cluster[groups.indices(training_set.inchikey14)]
    assert len(np.unique(groups.group)) == 4
    similar = np.vstack([block for _, block in tanimoto_blocks(rows, rows)]) >= MIN_TANIMOTO
    for one, other in zip(*np.nonzero(similar), strict=True):
        assert cluster[one] == cluster[other]
    assert similar.sum() > len(cluster)
    for number in np.unique(groups.cluster):
        assert len(np.unique(groups.group[groups.cluster == number])) == 1
    again = groups_of(training_set, 4, np.random.default_rng(0).permutation(len(cluster)))
    assert np.array_equal(again.inchikey14, groups.inchikey14)
    assert np.array_equal(again.group, groups.group)
    with pytest.raises(EvidenceError, match="in no group"):
        groups.indices(np.array([b"X" * 14]))


def test_forms_of_one_skeleton_are_one_molecule() -> None:
    keys = np.array([b"A" * 14, b"A" * 14, b"B" * 14])
    found = StructureGroups.of(keys, fingerprints(["CCO", "c1ccccc1", "CCCCN"]), 2)
    assert found.inchikey14.tolist() == [b"A" * 14, b"B" * 14]


def test_memorised_molecules_do_not_help(
    queries: Queries, training_set: TrainingSet, groups: StructureGroups
) -> None:
    fitted = CrossFittedChannel(Memory(), training_set, groups)
    assert Memory().features(fitted.state, queries)[queries.labels].all()
    crossfitted = fitted.features(queries)
    assert not crossfitted[queries.labels].any()
    assert crossfitted.any()  # others, of other groups, were shown


def test_molecules_outside_the_training_set_are_scored_by_the_whole(
    queries: Queries, training_set: TrainingSet, groups: StructureGroups
) -> None:
    gone = groups.inchikey14[groups.group == 0]
    fitted = CrossFittedChannel(Memory(), training_set.without(gone), groups)
    some = queries.only(np.flatnonzero(np.isin(queries.inchikey14, gone)))
    assert np.array_equal(fitted.features(some), Memory().features(fitted.state, some))


def test_features_of_seen_molecules_are_refused(
    queries: Queries, training_set: TrainingSet, groups: StructureGroups
) -> None:
    with pytest.raises(EvidenceError, match="memory was trained on 40 of the molecules that"):
        CrossFittedChannel(Pretrained(), training_set, groups).features(queries)
    leaky = CrossFittedChannel(Memory(), training_set, groups)
    leaky.training_set = replace(training_set)
    object.__setattr__(leaky.training_set, "without", lambda keys: training_set)
    with pytest.raises(EvidenceError, match="memory was trained on"):
        leaky.features(queries)
    # Also a molecule of the same cluster.
    first, second = np.flatnonzero(groups.cluster == np.bincount(groups.cluster).argmax())[:2]
    state = ChannelState(inchikey14=groups.inchikey14[[first]])
    with pytest.raises(EvidenceError, match=r"on 1 of the molecules .* or on near-duplicates"):
        leaky.check_unseen(state, groups.inchikey14[[second]])
    leaky.check_unseen(state, groups.inchikey14[groups.cluster != groups.cluster[first]])
    one = StructureGroups.of(
        training_set.inchikey14, fingerprints(["CCO"] * len(training_set.inchikey14)), 2
    )
    with pytest.raises(EvidenceError, match=r"nothing to learn from: all molecules .* are alike"):
        CrossFittedChannel(Memory(), training_set, one).features(queries)


@pytest.mark.slow
def test_each_ranker_is_fitted_without_its_group(
    queries: Queries, training_set: TrainingSet
) -> None:
    groups, labels = groups_of(training_set, 3), ["analogs", "prior"]
    fitted = [CrossFittedChannel(channel_from(n, {}), training_set, groups) for n in labels]
    features = [own.features(queries) for own in fitted]
    rankers = fit_rankers(fitted, queries, groups, 3, l2=0.1)
    assert set(rankers) == {None, 0, 1, 2}
    group = groups.groups_of(queries.inchikey14)
    names = [own.channel.feature_names for own in fitted]
    for number, ranker in rankers.items():
        own = np.arange(len(queries)) if number is None else np.flatnonzero(group != number)
        values = [column[queries.rows(own)] for column in features]
        expected = fit_ranker(labels, names, values, queries.only(own), l2=0.1)
        assert np.array_equal(ranker.weights["positive"], expected.weights["positive"])
    assert not np.array_equal(rankers[0].weights["positive"], rankers[None].weights["positive"])
    alike = replace(groups, group=np.zeros_like(groups.group))
    with pytest.raises(EvidenceError, match="all molecules to fit on are alike: none are left"):
        fit_rankers(fitted[1:], queries, alike, 3)


def test_merged_lists_hold_those_of_each_setting(small: Prepared) -> None:
    spectra = small.in_fold("val")[::-1]
    merged, table = merged_queries(small, spectra, ["mass", "formula"], jobs=1)
    assert [small.smiles[number] for number in table] == list(merged.molecules.smiles)
    for setting in ("mass", "formula"):
        usable = queries_with_truth(small, spectra, setting, "fingerprint")
        here = np.flatnonzero(np.isin(spectra, usable))
        own, _ = queries_from(small, spectra[here], setting, jobs=1)
        expected = [own.molecules.smiles[row] for row in own.candidates]
        named = np.array([merged.molecules.smiles.index(smiles) for smiles in expected])
        rows = merged.find_rows(here, own.counts, named)
        assert np.array_equal(merged.candidates[rows], named)
        assert np.array_equal(merged.ragged.list_index[rows], np.repeat(here, own.counts))
    once, twice = (merged_queries(small, spectra[:3], ["mass"] * n, jobs=1)[0] for n in (1, 2))
    assert twice.members.tolist() == once.members.tolist()
    for members in np.split(once.members, once.pointers[1:-1]):
        assert len(np.unique(members)) == len(members)


def test_spectra_are_swapped_with_the_nearest_of_another_cluster(small: Prepared) -> None:
    spectra, mz = small.in_fold("train"), small.precursor_mz
    found = swapped(small, spectra)
    groups = structure_groups_from(small, np.unique(small.molecule[spectra]), 1)
    cluster, other = (
        groups.cluster[groups.indices(small.inchikey14[small.molecule[own]])]
        for own in (spectra, found)
    )
    assert (other != cluster).all()
    for number, (own, taken) in enumerate(zip(spectra, found, strict=True)):
        free = spectra[cluster != cluster[number]]
        assert abs(mz[taken] - mz[own]) <= np.abs(mz[free] - mz[own]).min() + 1e-3
    order = np.random.default_rng(0).permutation(len(spectra))
    assert np.array_equal(swapped(small, spectra[order]), found[order])
    with pytest.raises(EvidenceError, match=r"no spectrum of \[M\+H\]\+ of another molecule"):
        swapped(small, spectra[:2])  # two spectra of one molecule


def test_a_fitted_run_is_a_run_like_any_other(fitted_run: Run, small: Prepared) -> None:
    assert fitted_run.finished
    assert fitted_run.description.name == "fragments + analogs"
    assert fitted_run.description.model_name == "logit"
    assert fitted_run.description.sees_spectrum
    for setting in ("mass", "formula"):
        found = evaluate(fitted_run, Scoring("test", setting))
        assert set(found.values) == {"hit_rate@1", "hit_rate@5", "hit_rate@20"}
        assert found.no_fingerprint == "fragments + analogs predicts none"
    assert posterior_report(fitted_run, Scoring("test", "mass")).sets
    row = leaderboard_row(fitted_run, evaluate(fitted_run, Scoring("test", "mass")))
    assert "fragments + analogs fitted on mass candidates" in row["Comment"]


def test_pooled_spectra_and_information_gain_take_a_fitted_run(fitted_run: Run) -> None:
    pooled = calibrate(fitted_run, pooled=True).evaluated
    assert len(evaluate(fitted_run, pooled=True).spectra) == len(pooled.counts)
    assert pooled.probabilities.sum() == pytest.approx(len(pooled.counts))
    found = information_gain(fitted_run, pooled=True)
    assert len(found.truth.uniform) == len(pooled.counts)


def test_its_validation_is_what_evaluating_says(fitted_run: Run) -> None:
    found = evaluate(fitted_run, Scoring("val", "mass"))
    for name, values in found.values.items():
        assert fitted_run.best[f"{name}/mass"]["value"] == pytest.approx(values.mean())
    assert fitted_run.history()[0]["hit_rate@1/mass"] == pytest.approx(
        found.values["hit_rate@1"].mean()
    )


@pytest.mark.slow
def test_with_a_trained_run_the_ranker_is_fitted_on_val(
    small: Prepared, trained, tmp_path: Path
) -> None:
    network = trained("emb-cos")
    lines: list[str] = []
    run = fit(
        small, channels_from(f"analogs,run:{network.folder}"), tmp_path / "run", jobs=1,
        say=lines.append,
    )  # fmt: skip
    assert lines == [
        "The ranker is fitted on val.",
        "1 of 8 molecules are like those that run:emb-cos-mlp was trained on: not fitted on",
    ]
    assert run.description.fitted.labels == ("analogs", f"run:{network.folder.name}")
    assert run.description.fitted.ranker["molecules"]["positive"] == 7
    assert not run.predictions(0, CROSSFITTED_TRAIN).exists()  # the network has seen it
    with pytest.raises(EvidenceError, match=r"run:emb-cos-mlp was trained on \d+ of the mol.*val"):
        fit(
            small, channels_from(f"run:{network.folder}"), tmp_path / "unfair",
            FitOptions(fit_on=("train",)), jobs=1,
        )  # fmt: skip
    assert not (tmp_path / "unfair").exists()


def test_blind_channels_make_a_control(small: Prepared, trained, tmp_path: Path) -> None:
    blind = trained("emb-cos", model="blind")
    run = fit(small, channels_from(f"run:{blind.folder}"), tmp_path / "run", jobs=1)
    assert not run.description.sees_spectrum


def test_train_is_not_predicted_where_nothing_is_calibrated_on_it(small, tmp_path: Path) -> None:
    none = FitOptions(calibrated_on=0)
    run = fit(small, channels_from("prior"), tmp_path / "none", none, jobs=1)
    assert not run.predictions(0, CROSSFITTED_TRAIN).exists()


def test_what_cannot_be_fitted_is_refused(small: Prepared, tmp_path: Path) -> None:
    channels = channels_from("analogs")
    with pytest.raises(CacheError, match="has no candidates 'none'"):
        fit(small, channels, tmp_path / "x", FitOptions(candidates="none"))
    with pytest.raises(EvidenceError, match="spectra 'others' is unknown, expected one of: own"):
        fit(small, channels, tmp_path / "x", FitOptions(spectra="others"))
    with pytest.raises(EvidenceError, match="--fit-on 'test' is unknown, expected one of: train"):
        fit(small, channels, tmp_path / "x", FitOptions(fit_on=("test",)))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    with pytest.raises(RunError, match="exists already"):
        fit(small, channels, tmp_path / "there")
    with sole_writer(tmp_path / "x", "fitting evidence"), pytest.raises(BusyError, match="fitting"):
        fit(small, channels, tmp_path / "x")
    with pytest.raises(EvidenceError, match="two channels are called analogs"):
        fit(small, [*channels, *channels_from("analogs")], tmp_path / "x")
    with pytest.raises(EvidenceError, match="no channels, expected one or more"):
        fit(small, [], tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


def test_some_of_train_is_kept_by_what_learned_without_it(fitted_run: Run, small: Prepared) -> None:
    folder = fitted_run.predictions(0, CROSSFITTED_TRAIN)
    features = Predictions.open(folder, label_of(fitted_run, 0, CROSSFITTED_TRAIN))
    features.check_against(small, CROSSFITTED_TRAIN, folder)
    lists = features.lists["mass"]
    assert np.isin(lists.queries, small.in_fold("train")).all()
    assert np.unique(lists.molecule, return_counts=True)[1].max() <= FitOptions().spectra_each
    whole, _ = queries_from(small, lists.queries, "mass", jobs=1)
    assert np.array_equal(whole.counts, lists.counts)
    assert not np.allclose(EvidenceModel.open(fitted_run).scores(whole), lists.scores, atol=1e-3)


def test_calibration_is_fitted_on_it_too(fitted_run: Run, tmp_path: Path) -> None:
    found = calibration_lists(fitted_run, Scoring("test", "mass"))
    crossfitted = Predictions.open(fitted_run.predictions(0, CROSSFITTED_TRAIN)).lists["mass"]
    added = found.fit.molecule[len(found.val.molecule) :]
    assert np.isin(added, crossfitted.molecule).all()
    assert len(added) > 0
    assert found.fit.counts.sum() == len(found.fit.scores) == len(found.fit.candidates)
    fitted = PooledCalibration.fit(found.fit, found.how, pooled=False)
    assert calibrate(fitted_run, found.how).evaluated.calibration == fitted.calibration
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    shutil.rmtree(folder / "predictions" / "step-0" / CROSSFITTED_TRAIN)
    without = calibration_lists(Run.open(folder), Scoring("test", "mass"))
    assert np.array_equal(without.fit.scores, found.val.scores)


@pytest.mark.slow
def test_the_control_is_fitted_alike_and_predicts_from_other_spectra(
    fitted_run: Run, small: Prepared, tmp_path: Path
) -> None:
    channels, how = channels_from("fragments,analogs"), FitOptions(spectra="swapped")
    control = fit(small, channels, tmp_path / "swapped", how, jobs=1)
    assert control.description.fitted.ranker == fitted_run.description.fitted.ranker
    assert control.description.options["spectra"] == "swapped"
    for fold in ("val", "test", CROSSFITTED_TRAIN):
        own, swapped = (
            Predictions.open(run.predictions(0, fold)).lists["mass"]
            for run in (fitted_run, control)
        )
        assert not np.array_equal(own.scores, swapped.scores)


@pytest.mark.parametrize("setting", ["mass", "formula"])
def test_predictions_are_those_of_the_model_or_cross_fitted(
    fitted_run: Run, small: Prepared, setting: str
) -> None:
    model = EvidenceModel.open(fitted_run)
    for fold in ("test", "val"):
        predictions = Predictions.open(
            fitted_run.predictions(0, fold), label_of(fitted_run, 0, fold)
        )
        predictions.check_against(small, fold, fitted_run.folder)
        lists = predictions.lists[setting]
        assert lists.parts is not None
        assert lists.parts.shape == (len(lists.scores), 2)
        assert np.allclose(lists.parts.sum(1), lists.scores, atol=1e-5)
        queries, identity = queries_from(small, lists.queries, setting, jobs=1)
        assert np.array_equal(queries.counts, lists.counts)
        assert np.array_equal(identity, lists.identity)
        # Validation is scored by rankers that have not seen it.
        tolerance = 1e-5 if fold == "test" else 1e-3
        same = np.allclose(model.scores(queries), lists.scores, atol=tolerance)
        assert same == (fold == "test")


def test_folds_without_cross_fitted_scores_are_not_evaluated(
    fitted_run: Run, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="has no predictions of the train fold; `mzseek fit` makes"):
        evaluate(fitted_run, Scoring("train", "mass"))
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    for path in folder.rglob("formula.*.npy"):
        path.unlink()
    sign(folder)
    with pytest.raises(RunError, match="formula lists were drawn after it was fitted"):
        evaluate(Run.open(folder), Scoring("test", "formula"))
    with pytest.raises(RunError, match=r"was fitted .fragments . analogs., expected a trained run"):
        fitted_run.loss.name  # noqa: B018
    with pytest.raises(RunError, match="has no model"):
        fitted_run.model  # noqa: B018


@pytest.mark.slow
def test_a_second_fit_in_small_batches_is_the_same(
    fitted_run: Run, small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "_MAX_CANDIDATES", 10)
    again = fit(small, channels_from("fragments,analogs"), tmp_path / "again", jobs=1)
    assert again.identity == fitted_run.identity
    for fold in ("val", "test"):
        first, second = (Predictions.open(run.predictions(0, fold)) for run in (fitted_run, again))
        for setting, lists in first.lists.items():
            assert np.array_equal(lists.queries, second.lists[setting].queries)
            assert np.array_equal(lists.scores, second.lists[setting].scores)


def test_corrupted_copies_keep_candidates_and_labels_and_their_pool(queries: Queries) -> None:
    pool = np.arange(len(queries)) % 2
    both = with_corrupted(queries, pool, 2)
    assert len(both) == 3 * len(queries)
    np.testing.assert_array_equal(both.labels, np.tile(queries.labels, 3))
    np.testing.assert_array_equal(both.candidates, np.tile(queries.candidates, 3))
    np.testing.assert_array_equal(both.inchikey14, np.tile(queries.inchikey14, 3))
    assert all(
        own is first
        for own, first in zip(both.spectra[: len(queries)], queries.spectra, strict=True)
    )
    changed = [
        not np.array_equal(copy.mz, queries.spectra[n % len(queries)].mz)
        for n, copy in enumerate(both.spectra[len(queries) :])
    ]
    assert np.mean(changed) > 0.9
    # A spectrum's copies do not change with the spectra of another pool.
    alone = with_corrupted(queries.only(np.flatnonzero(pool == 1)), pool[pool == 1], 1)
    copies = [both.spectra[len(queries) + n] for n in np.flatnonzero(pool == 1)]
    for copy, other in zip(copies, alone.spectra[int((pool == 1).sum()) :], strict=True):
        np.testing.assert_array_equal(copy.mz, other.mz)
        np.testing.assert_array_equal(copy.intensities, other.intensities)


def test_fit_uses_corrupted_copies_and_says_so(small: Prepared, tmp_path: Path) -> None:
    channels = channels_from("fragments", ["fragments.epochs=1"])
    plain, augmented = (
        fit(small, channels, tmp_path / str(n), FitOptions(augment=n, fit_on=("val",)), jobs=1)
        for n in (0, 1)
    )
    assert augmented.description.options["augment"] == 1
    first, second = (EvidenceModel.open(run).states[0].arrays for run in (plain, augmented))
    assert any((first[name] != second[name]).any() for name in first)


def test_a_channel_that_re_ranks_scores_shortlists(
    small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mzseek.evidence.ranker.SHORTLIST", 2)
    channels = channels_from("intensities,fragments", ["intensities.epochs=1"])
    assert [channel.name for channel in channels] == ["fragments", "intensities"]
    run = fit(small, channels, tmp_path / "run", FitOptions(), jobs=1)
    model = EvidenceModel.open(run)
    assert [channel.name for channel in model.first_stage.channels] == ["fragments"]
    lists = Predictions.open(run.predictions(0, "test"), label_of(run, 0, "test")).lists["mass"]
    queries, _ = queries_from(small, lists.queries, "mass", jobs=1)
    assert np.allclose(model.contributions(queries), lists.parts, atol=1e-5)
    ranked_again = queries.ragged.sum(lists.parts[:, 1] != 0, np.int64)
    assert ranked_again.max() == 2
    assert queries.counts.max() > 2
