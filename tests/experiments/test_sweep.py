from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mzseek.core.errors import DatasetError, ExperimentError, LossError
from mzseek.database import build_database, file_sources
from mzseek.experiments import Experiment, Row, Scale, experiment_named, scale_named, sweep
from mzseek.experiments.sweep import (
    CellPlan,
    Trial,
    TrialOutcome,
    TrialSetup,
    Workspace,
    best_trials,
    mark_folder,
    measured_file,
    opened,
    plan_cell,
    plan_jobs,
    run_folder,
    run_jobs,
)
from mzseek.parallel import LocalEngine, engine_named
from mzseek.training.train import train_one

PAPER = Scale("paper", seeds=1, lr=(1e-3,), protocol="auto")
WHOLE = Scale("paper")


def plan(two: Experiment, row: str, column: str = "hr"):
    cell = plan_cell(two, two.row(row), two.column(column), PAPER, two.column(column).metric)
    assert cell is not None
    return cell


def test_a_trial_that_cells_share_is_one_job(two: Experiment, site: Workspace) -> None:
    cells = [plan(two, "bce", column) for column in ("hr", "formula", "tanimoto")]
    [job] = plan_jobs(cells, site)
    assert job.measures == (
        ("hit_rate@1", "mass", "test", None),
        ("hit_rate@1", "formula", "test", None),
        ("tanimoto", "mass", "test", None),
    )
    assert job.out == run_folder(site, job.trial).resolve()
    assert len(plan_jobs([*cells, plan(two, "emb-cos")], site)) == 2


def test_what_has_ended_is_never_run_again(two: Experiment, site: Workspace) -> None:
    jobs = plan_jobs([plan(two, "bce")], site)
    assert opened(site, jobs[0].trial) is None
    steps: list[str] = []
    note = lambda name, *_: steps.append(name)  # noqa: E731
    ended = [TrialOutcome(jobs[0].trial.name)]
    assert run_jobs(jobs, engine=LocalEngine(1), progress=note) == ended
    assert set(steps) == {f"trial 1 of 1: {jobs[0].trial.name}"}
    run = opened(site, jobs[0].trial)
    assert run is not None
    weights = {path: path.stat().st_mtime_ns for path in run[0].folder.rglob("*")}
    numbers = measured_file(site, jobs[0].trial).stat().st_mtime_ns
    steps.clear()
    assert run_jobs(jobs, engine=LocalEngine(1), progress=note) == ended
    assert steps == []
    assert {path: path.stat().st_mtime_ns for path in run[0].folder.rglob("*")} == weights
    assert measured_file(site, jobs[0].trial).stat().st_mtime_ns == numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray"])
def test_a_trial_that_fails_does_not_stop_the_others(
    two: Experiment, site: Workspace, name: str
) -> None:
    if name == "ray":
        pytest.importorskip("ray", reason="needs mzseek[cluster]")
    first, second = plan_jobs([plan(two, "bce"), plan(two, "emb-cos")], site)
    bad = replace(first, measures=(("hit_rate@1", "no such lists", "test", None),))
    outcomes = run_jobs([bad, second], engine=engine_named(name, 2))
    failed = {outcome.name: outcome.failed for outcome in outcomes if outcome.failed}
    assert list(failed) == [first.trial.name]
    assert "no candidates 'no such lists', it has: formula, mass" in failed[first.trial.name]
    assert opened(site, second.trial) is not None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("CUDA out of memory.\n Tried 2 GiB"),
         "RuntimeError: CUDA out of memory. Tried 2 GiB"),
        (MemoryError(), "MemoryError:"),
    ],
)  # fmt: skip
def test_any_exception_ends_its_trial_alone(
    two: Experiment, site: Workspace, monkeypatch, error: Exception, reason: str
) -> None:
    def train_or_fail(task, channel):
        if task[1].loss.name == "bce":
            raise error
        return train_one(task, channel)

    monkeypatch.setattr("mzseek.training.train.train_one", train_or_fail)
    first, second = plan_jobs([plan(two, "bce"), plan(two, "emb-cos")], site)
    said: list[str] = []
    outcomes = run_jobs([first, second], engine=LocalEngine(1), say=said.append)
    assert [outcome.failed for outcome in outcomes] == [reason, ""]
    assert said == [f"{first.trial.name} has failed: {reason}"]
    assert opened(site, first.trial) is None
    assert opened(site, second.trial) is not None


def test_a_trial_that_was_cut_off_goes_on(two: Experiment, site: Workspace) -> None:
    [job] = plan_jobs([plan(two, "bce")], site)

    def stop(name: str, done: int, total: int | None = None) -> None:
        if done == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([job], engine=LocalEngine(1), progress=stop)
    assert opened(site, job.trial) is None
    steps: list[int] = []
    run_jobs([job], engine=LocalEngine(1), progress=lambda _, done, __=None: steps.append(done))
    assert steps[0] > 1  # not from the beginning
    assert opened(site, job.trial) is not None


# Validation HR@20 by trial; None for one that has not ended.
REACHED = {"a1": 0.1, "a2": 0.5, "b1": 0.35, "b2": 0.35, "c1": 0.9, "c2": None}


@dataclass
class Reached:
    best: dict[str, Any]


@pytest.fixture
def grid_of(monkeypatch) -> Any:
    def opened(_, trial):
        value = REACHED[trial]
        return value and (Reached({"hit_rate@20/mass": {"value": value}}), f"numbers of {trial}")

    monkeypatch.setattr(sweep, "opened", opened)
    return lambda *grid: CellPlan(grid, "tanimoto", "mass", "test")


def test_the_point_of_the_best_mean_is_chosen_not_that_of_the_best_seed(grid_of) -> None:
    found = best_trials(grid_of(("a1", "a2"), ("b1", "b2")), "hit_rate@20", None)
    assert [one.trial for one in found] == ["b1", "b2"]
    assert [one.numbers for one in found] == ["numbers of b1", "numbers of b2"]


def test_a_point_with_a_run_missing_is_not_compared(grid_of) -> None:
    found = best_trials(grid_of(("c1", "c2"), ("a1", "a2")), "hit_rate@20", None)
    assert [one.trial for one in found] == ["a1", "a2"]
    assert best_trials(grid_of(("c1", "c2")), "hit_rate@20", None) == ()


def test_models_go_once_they_are_measured_if_that_is_asked_for(
    two: Experiment, site: Workspace
) -> None:
    cell = plan(two, "bce")
    [job] = plan_jobs([cell], site, drop_models=True)
    [kept] = plan_jobs([cell, replace(cell, keeps_models=True)], site, drop_models=True)
    assert (job.drops_model, kept.drops_model) == (True, False)
    run_jobs([job], engine=LocalEngine(1))
    run, numbers = opened(site, job.trial) or pytest.fail("it has not ended")
    assert {path.name for path in run.folder.iterdir()} == {"run.json", "history.csv"}
    assert 0 <= (numbers.value("hit_rate@1", "mass", "test") or 0.0) <= 1
    assert [outcome.failed for outcome in run_jobs([job], engine=LocalEngine(1))] == [""]
    with pytest.raises(ExperimentError, match="not measured before its weights were dropped"):
        numbers.value("hit_rate@1", "formula", "val")


def cell(experiment: Experiment, row: str, column: str, scale: Scale = WHOLE):
    return plan_cell(
        experiment, experiment.row(row), experiment.column(column), scale,
        experiment.column(column).metric,
    )  # fmt: skip


def test_the_main_table_is_five_rates_of_five_seeds_for_each_cell() -> None:
    main = experiment_named("main")
    plan = cell(main, "emb-cos", "mass/hit_rate@1")
    assert [len(seeds) for seeds in plan.grid] == [5] * 5
    assert {trial.lr for trial in plan.trials} == set(main.lr)
    assert {trial.seed for trial in plan.trials} == {0, 1, 2, 3, 4}
    assert (plan.metric, plan.candidates, plan.fold) == ("hit_rate@1", "mass", "test")
    options = plan.trials[0].options()
    found = (options.epochs, options.batch_size, options.warmup, options.bias)
    assert found == (50, 64, 500, "zero")
    found = (options.validate_every, options.clip, options.loss.options.temperature)
    assert found == (1000, 1, 1 / 64)


def test_listwise_losses_are_trained_for_each_kind_of_lists_and_others_once() -> None:
    main = experiment_named("main")
    names = {
        loss: {
            trial.name
            for key in ("mass", "formula")
            for trial in cell(main, loss, f"{key}/hit_rate@1").trials
        }
        for loss in ("bce", "emb-cos")
    }
    assert {loss: len(found) for loss, found in names.items()} == {"bce": 25, "emb-cos": 50}


def test_the_footnote_of_fp_cos_is_another_run() -> None:
    main = experiment_named("main")
    ranked, similar = (cell(main, "fp-cos", key) for key in ("mass/hit_rate@1", "tanimoto"))
    assert ranked.trials[0].options().loss.options.temperature == 1 / 256
    assert similar.trials[0].options().loss.options.temperature == 4


def test_a_default_that_is_written_out_is_the_same_run() -> None:
    plan = cell(experiment_named("gamma"), "2", "tanimoto")
    main = cell(experiment_named("main"), "focal", "tanimoto")
    assert {t.name for t in plan.trials} == {t.name for t in main.trials if t.lr == 7e-5}
    other = cell(experiment_named("gamma"), "5", "tanimoto")
    assert not {t.name for t in other.trials} & {t.name for t in main.trials}


def test_values_in_a_list_are_tuned_together_with_the_learning_rate() -> None:
    plan = cell(experiment_named("hard-negatives"), "formula 128", "mass/hit_rate@5")
    points = {(seeds[0].lr, seeds[0].config.parts) for seeds in plan.grid}
    assert len(points) == 15
    assert plan.trials[0].config.hard == ("formula", 128)
    assert plan.trials[0].config.candidates == "hard-formula-128"
    assert plan.candidates == "mass"


def test_literature_and_missing_cells_have_no_runs() -> None:
    main = experiment_named("main")
    assert cell(main, "mist", "mass/hit_rate@1") is None
    assert cell(main, "fp-mlp", "tanimoto") is None


def test_a_row_may_be_scaled_by_itself() -> None:
    main = experiment_named("main")
    cut, here = main.at(scale_named("laptop"))
    assert len(cell(cut, "fp-mlp", "mass/hit_rate@1", here).trials) == 1
    assert len(cell(cut, "emb-mlp", "mass/hit_rate@1", here).trials) == 2
    assert cell(cut, "emb-mlp", "mass/hit_rate@1", here).trials[0].config.epochs == 2
    assert cell(cut, "bce", "mass/hit_rate@1", here).trials[0].config.epochs == 3


def test_options_of_a_scale_are_given_to_parts_that_have_them() -> None:
    cut, here = experiment_named("main").at(scale_named("smoke"))
    options = cell(cut, "bce", "tanimoto", here).trials[0].options()
    assert options.encoder.options.width == 32
    blind = cell(cut, "blind", "mass/hit_rate@1", here).trials[0].options()
    assert blind.model == "blind"


def test_what_a_loss_does_not_have_is_refused(two: Experiment) -> None:
    column = two.column("hr")
    with pytest.raises(ExperimentError, match="setting 'gama' is unknown, expected one of: loss"):
        plan_cell(two, Row("x", "x", {"loss": "bce", "gama": 1}), column, WHOLE, "tanimoto")
    with pytest.raises(ExperimentError, match="loss is missing"):
        plan_cell(two, Row("x", "x", {}), column, WHOLE, "tanimoto")
    plan = plan_cell(
        two, Row("x", "x", {"loss": "bce", "loss.gamma": 1.0}), column, WHOLE, "tanimoto"
    )
    with pytest.raises(LossError, match="'gamma' is unknown"):
        plan.trials[0].options()


def test_names_of_folders_are_plain_and_differ() -> None:
    config = TrialSetup(
        "fp-cos", "mlp", "morgan2", "my list/../x", None, (("loss.temperature", 0.5),), 3, "auto"
    )
    names = {Trial(config, lr, seed).name for lr in (1e-4, 3e-4) for seed in (0, 1)}
    assert len(names) == 4
    assert all("/" not in name and " " not in name for name in names)


def test_data_are_prepared_once_for_each_fingerprint(site: Workspace) -> None:
    first = site.prepared("maccs")
    assert site.prepared("maccs") is first
    assert site.prepared("morgan2").folder != first.folder
    assert site.metadata() == {"spectra": "spectra.tsv"}
    again = Workspace.at(site.out, site.files.spectra)  # by its table
    assert again.prepared("maccs").manifest == first.manifest


def test_negatives_are_mined_once(site: Workspace, tmp_path: Path, small_set) -> None:
    with pytest.raises(ExperimentError, match="hard negatives need molecules: give --database"):
        site.lists("morgan2", ("mass", 4))
    molecules = tmp_path / "molecules.smi"
    molecules.write_text("\n".join(dict.fromkeys(small_set.smiles.values())))
    build_database(file_sources([molecules]), tmp_path / "db")
    site = Workspace.at(site.out, site.files.spectra, tmp_path / "db")
    assert "hard-mass-4" in site.lists("morgan2", ("mass", 4)).settings
    manifest = site.prepared("morgan2").manifest
    assert site.lists("morgan2", ("mass", 4)).manifest == manifest


def test_a_data_set_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        Workspace.at(tmp_path, tmp_path / "none.tsv")


def test_only_a_folder_of_experiments_is_used(tmp_path: Path) -> None:
    mark_folder(tmp_path / "new")
    mark_folder(tmp_path / "new")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(ExperimentError, match="exists and holds no experiments"):
        mark_folder(tmp_path / "other")
    with pytest.raises(ExperimentError, match="is a file"):
        mark_folder(tmp_path / "other" / "thesis.txt")
