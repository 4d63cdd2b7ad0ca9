"""From a prepared folder to a fitted run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import BusyError, CacheError, EvidenceError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.leaderboard import leaderboard_row
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.posteriors import calibrate, calibration_lists, fitted_on
from mzseek.evaluation.scored import Scoring
from mzseek.evidence.fitting import EvidenceModel, FitOptions, fit
from mzseek.evidence.queries import queries_from
from mzseek.evidence.registry import channels_from
from mzseek.io import sole_writer
from mzseek.runs.predictions import CROSSFITTED_TRAIN, Predictions, label_of
from mzseek.runs.run import Run

from ...conftest import sign


def test_a_fitted_run_is_a_run_like_any_other(fitted_run: Run, small: Prepared) -> None:
    assert fitted_run.finished
    assert fitted_run.description.name == "fragments + analogs"
    assert fitted_run.description.model_name == "logit"
    assert fitted_run.description.sees_spectrum
    for setting in ("mass", "formula"):
        found = evaluate(fitted_run, Scoring("test", setting))
        assert set(found.values) == {"hit_rate@1", "hit_rate@5", "hit_rate@20"}
        assert found.no_fingerprint == "fragments + analogs predicts none"
    beliefs = posterior_report(fitted_run, Scoring("test", "mass"))
    assert beliefs.sets
    row = leaderboard_row(fitted_run, evaluate(fitted_run, Scoring("test", "mass")))
    assert "fragments + analogs fitted on mass candidates" in row["Comment"]


def test_its_validation_is_what_evaluating_says(fitted_run: Run) -> None:
    found = evaluate(fitted_run, Scoring("val", "mass"))
    for name, values in found.values.items():
        assert fitted_run.best[f"{name}/mass"]["value"] == pytest.approx(values.mean())
    assert fitted_run.history()[0]["hit_rate@1/mass"] == pytest.approx(
        found.values["hit_rate@1"].mean()
    )


def test_parts_of_channels_stand_beside_scores(fitted_run: Run) -> None:
    for fold in ("val", "test"):
        label = label_of(fitted_run, 0, fold)
        said = Predictions.open(fitted_run.predictions(0, fold), label)
        for lists in said.lists.values():
            assert lists.parts is not None
            assert lists.parts.shape == (len(lists.scores), 2)
            assert np.allclose(lists.parts.sum(1), lists.scores, atol=1e-5)


def test_it_says_nothing_of_what_it_learned_from(fitted_run: Run) -> None:
    with pytest.raises(RunError, match="has no predictions of the train fold; `mzseek fit` makes"):
        evaluate(fitted_run, Scoring("train", "mass"))


def test_lists_that_came_later_need_a_new_fit(fitted_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    for path in folder.rglob("formula.*.npy"):
        path.unlink()
    sign(folder)
    with pytest.raises(RunError, match="formula lists were drawn after it was fitted"):
        evaluate(Run.open(folder), Scoring("test", "formula"))


def test_it_has_no_loss_and_no_network(fitted_run: Run) -> None:
    with pytest.raises(RunError, match=r"was fitted .fragments . analogs., expected a trained run"):
        fitted_run.loss.name  # noqa: B018
    with pytest.raises(RunError, match="has no model"):
        fitted_run.model  # noqa: B018


def test_a_second_fit_is_the_same(fitted_run: Run, small: Prepared, tmp_path: Path) -> None:
    again = fit(small, channels_from("fragments,analogs"), tmp_path / "again", jobs=1)
    assert again.identity == fitted_run.identity
    for fold in ("val", "test"):
        one, other = (
            Predictions.open(run.predictions(0, fold)).lists["mass"].scores
            for run in (fitted_run, again)
        )
        assert np.array_equal(one, other)


def test_with_a_trained_run_the_ranker_is_fitted_on_val(
    small: Prepared, trained, tmp_path: Path
) -> None:
    network = trained("emb-cos")
    said: list[str] = []
    run = fit(
        small, channels_from(f"analogs,run:{network.folder}"), tmp_path / "run", jobs=1,
        say=said.append,
    )  # fmt: skip
    assert said == [
        "The ranker is fitted on val.",
        "1 of 8 molecules are like those that run:emb-cos-mlp was trained on: not fitted on",
    ]
    assert run.description.fitted.labels == ("analogs", f"run:{network.folder.name}")
    assert run.description.fitted.ranker["molecules"]["positive"] == 7
    with pytest.raises(
        EvidenceError, match=r"run:emb-cos-mlp has learned from \d+ of the mol.*val"
    ):
        fit(
            small, channels_from(f"run:{network.folder}"), tmp_path / "unfair",
            FitOptions(fit_on=("train",)), jobs=1,
        )  # fmt: skip
    assert not (tmp_path / "unfair").exists()


def test_blind_channels_make_a_control(small: Prepared, trained, tmp_path: Path) -> None:
    blind = trained("emb-cos", model="blind")
    run = fit(small, channels_from(f"run:{blind.folder}"), tmp_path / "run", jobs=1)
    assert not run.description.sees_spectrum


def test_swapped_spectra_are_predicted_from_alone(
    fitted_run: Run, small: Prepared, tmp_path: Path
) -> None:
    control = fit(
        small, channels_from("fragments,analogs"), tmp_path / "control",
        FitOptions(spectra="swapped"), jobs=1,
    )  # fmt: skip
    assert control.made.fitted.ranker == fitted_run.description.fitted.ranker
    assert control.identity != fitted_run.identity
    one, other = (
        Predictions.open(run.predictions(0, "test")).lists["mass"] for run in (fitted_run, control)
    )
    assert np.array_equal(one.candidates, other.candidates)
    assert not np.array_equal(one.scores, other.scores)


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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


def test_run_json_can_be_read_by_people(fitted_run: Run) -> None:
    facts = json.loads(fitted_run.path.read_text())
    assert facts["loss"] is None
    weights = facts["model"]["ranker"]["weights"]["positive"]
    assert set(weights) == {"fragments", "analogs"}
    assert all(isinstance(value, float) for own in weights.values() for value in own.values())
    assert facts["options"]["candidates"] == "mass"


def test_some_of_train_is_kept_by_what_learned_without_it(fitted_run: Run, small: Prepared) -> None:
    folder = fitted_run.predictions(0, CROSSFITTED_TRAIN)
    said = Predictions.open(folder, label_of(fitted_run, 0, CROSSFITTED_TRAIN))
    said.check_against(small, CROSSFITTED_TRAIN, folder)
    lists = said.lists["mass"]
    assert np.isin(lists.queries, small.in_fold("train")).all()
    assert np.unique(lists.molecule, return_counts=True)[1].max() <= FitOptions().spectra_each
    whole, _ = queries_from(small, lists.queries, "mass", jobs=1)
    assert np.array_equal(whole.counts, lists.counts)
    assert not np.allclose(EvidenceModel.open(fitted_run).scores(whole), lists.scores, atol=1e-3)


def test_calibration_is_fitted_on_it_too(fitted_run: Run, tmp_path: Path) -> None:
    found = calibration_lists(fitted_run, Scoring("test", "mass"))
    taught = Predictions.open(fitted_run.predictions(0, CROSSFITTED_TRAIN)).lists["mass"]
    added = found.fit.molecule[len(found.val.molecule) :]
    assert np.isin(added, taught.molecule).all()
    assert len(added) > 0
    assert found.fit.counts.sum() == len(found.fit.scores) == len(found.fit.candidates)
    assert calibrate(fitted_run, found.how).evaluated.calibration == fitted_on(found.fit, found.how)
    folder = tmp_path / "run"
    shutil.copytree(fitted_run.folder, folder)
    shutil.rmtree(folder / "predictions" / "step-0" / CROSSFITTED_TRAIN)
    without = calibration_lists(Run.open(folder), Scoring("test", "mass"))
    assert np.array_equal(without.fit.scores, found.val.scores)


def test_nothing_of_train_is_kept_where_a_channel_cannot_do_without(
    small: Prepared, trained, tmp_path: Path
) -> None:
    network = trained("emb-cos")
    run = fit(small, channels_from(f"run:{network.folder}"), tmp_path / "run", jobs=1)
    assert not run.predictions(0, CROSSFITTED_TRAIN).exists()
    none = FitOptions(calibrated_on=0)
    run = fit(small, channels_from("analogs"), tmp_path / "none", none, jobs=1)
    assert not run.predictions(0, CROSSFITTED_TRAIN).exists()


def test_the_control_is_fitted_alike_and_predicts_from_other_spectra(
    fitted_run: Run, small: Prepared, tmp_path: Path
) -> None:
    channels, how = channels_from("fragments,analogs"), FitOptions(spectra="swapped")
    control = fit(small, channels, tmp_path / "swapped", how, jobs=1)
    assert control.made.fitted.ranker == fitted_run.description.fitted.ranker
    assert control.made.options["spectra"] == "swapped"
    for fold in ("val", "test", CROSSFITTED_TRAIN):
        own, swapped = (
            Predictions.open(run.predictions(0, fold)).lists["mass"]
            for run in (fitted_run, control)
        )
        assert not np.array_equal(own.scores, swapped.scores)


def test_channels_have_names_of_their_own(small: Prepared, tmp_path: Path) -> None:
    twice = [*channels_from("analogs"), *channels_from("analogs")]
    with pytest.raises(EvidenceError, match="two channels are called analogs"):
        fit(small, twice, tmp_path / "x")
    with pytest.raises(EvidenceError, match="no channels, expected one or more"):
        fit(small, [], tmp_path / "x")
    assert not (tmp_path / "x").exists()
