from pathlib import Path

import pytest

from mzseek.experiments import experiment_named, names, scale_named
from mzseek.experiments.cost import MASSSPECGYM, RunSize, count_runs, estimate, fold_sizes


def test_a_run_of_the_paper_is_50_epochs_with_a_validation_every_1000_steps() -> None:
    size = RunSize("bce", 253, 50, "paper")
    assert size.steps(MASSSPECGYM["train"]) == 151_700
    assert size.hours(MASSSPECGYM, 1.0, 0.0) == pytest.approx(151_700 / 3600)
    assert size.hours(MASSSPECGYM, 0.0, 1.0) == pytest.approx(151 * 19_429 / 3600)
    short = RunSize("bce", 253, 3, "auto")
    assert short.hours({"train": 64, "val": 10}, 0.0, 1.0) == pytest.approx(6 * 10 / 3600)


def test_longer_lists_cost_more_where_a_loss_reads_them() -> None:
    seconds = [RunSize("emb-cos", length, 1, "paper").step_seconds for length in (64, 253, 1024)]
    assert seconds == sorted(seconds)
    assert seconds[1] == pytest.approx(0.122)
    assert RunSize("bce", 64, 1, "paper").step_seconds == pytest.approx(0.080)


def test_shared_runs_count_once_and_mined_rows_need_molecules() -> None:
    paper = scale_named("paper")
    main = count_runs([experiment_named("main")], paper)
    assert count_runs(map(experiment_named, ("main", "front")), paper) == main
    assert count_runs([experiment_named("toy")], paper) == {}
    hard = [experiment_named("hard-negatives")]
    assert {size.length for size in count_runs(hard, paper)} == {64, 128, 256, 512, 1024}
    assert set(count_runs(hard, paper).values()) == {2 * 35}  # by mass and by formula
    assert count_runs(hard, paper, can_mine=False) == {}


def test_all_costs_are_summed() -> None:
    runs = count_runs(map(experiment_named, names()), scale_named("paper"))
    cost = estimate(runs, MASSSPECGYM)
    assert cost.runs == runs.total()
    assert cost.disk == cost.runs * 10**9
    assert 0 < cost.longest < cost.hours
    assert estimate(runs, MASSSPECGYM, drop_models=True).disk < cost.disk / 1000
    assert estimate({}, MASSSPECGYM).longest == 0


def test_folds_are_counted_in_the_table(small_set, tmp_path: Path) -> None:
    sizes = fold_sizes(small_set.folder.parent)
    assert sizes["train"] > sizes["val"] > 0
    table = tmp_path / "set.tsv"
    table.write_text("smiles\tmzs\n" + "C\t1\n" * 20)
    assert fold_sizes(table) == {"train": 20, "val": 2}
    assert sum(fold_sizes(None).values()) < 1_500
