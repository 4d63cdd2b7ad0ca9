from dataclasses import dataclass, replace
from typing import Any

import pytest

from mzseek.core.errors import ExperimentError
from mzseek.experiments import Experiment, Scale, sweep
from mzseek.experiments.sweep import (
    Asked,
    Ended,
    Site,
    asked_of,
    chosen_runs,
    jobs_of,
    measured_file,
    opened,
    run_folder,
    run_jobs,
)
from mzseek.parallel import LocalEngine, engine_named

PAPER = Scale("paper", seeds=1, lr=(1e-3,), protocol="auto")


def asked(two: Experiment, row: str, column: str = "hr"):
    cell = asked_of(two, two.row(row), two.column(column), PAPER)
    assert cell is not None
    return cell


def test_a_trial_that_cells_share_is_one_job(two: Experiment, site: Site) -> None:
    cells = [asked(two, "bce", column) for column in ("hr", "formula", "tanimoto")]
    [job] = jobs_of(cells, site)
    assert job.wanted == (
        ("hit_rate@1", "mass", "test", None),
        ("hit_rate@1", "formula", "test", None),
        ("tanimoto", "mass", "test", None),
    )
    assert job.out == run_folder(site, job.trial).resolve()
    assert len(jobs_of([*cells, asked(two, "emb-cos")], site)) == 2


def test_what_has_ended_is_never_run_again(two: Experiment, site: Site) -> None:
    jobs = jobs_of([asked(two, "bce")], site)
    assert opened(site, jobs[0].trial) is None
    steps: list[str] = []
    ended: list[Ended] = []
    assert run_jobs(
        jobs, engine=LocalEngine(1), progress=lambda name, *_: steps.append(name),
        ended=ended.append,
    ) == {}  # fmt: skip
    assert steps
    assert ended == [Ended(jobs[0].trial.name)]
    run = opened(site, jobs[0].trial)
    assert run is not None
    weights = {path: path.stat().st_mtime_ns for path in run[0].folder.rglob("*")}
    numbers = measured_file(site, jobs[0].trial).stat().st_mtime_ns
    steps.clear()
    assert run_jobs(jobs, engine=LocalEngine(1), progress=lambda name, *_: steps.append(name)) == {}
    assert steps == []
    assert {path: path.stat().st_mtime_ns for path in run[0].folder.rglob("*")} == weights
    assert measured_file(site, jobs[0].trial).stat().st_mtime_ns == numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray"])
def test_a_trial_that_fails_does_not_stop_the_others(
    two: Experiment, site: Site, name: str
) -> None:
    if name == "ray":
        pytest.importorskip("ray", reason="needs mzseek[cluster]")
    first, second = jobs_of([asked(two, "bce"), asked(two, "emb-cos")], site)
    bad = replace(first, wanted=(("hit_rate@1", "no such lists", "test", None),))
    failed = run_jobs([bad, second], engine=engine_named(name, 2))
    assert list(failed) == [first.trial.name]
    assert "no candidates 'no such lists', it has: formula, mass" in failed[first.trial.name]
    assert opened(site, second.trial) is not None


def test_a_trial_that_was_cut_off_goes_on(two: Experiment, site: Site) -> None:
    [job] = jobs_of([asked(two, "bce")], site)

    class Cut(Exception):
        pass

    def stop(name: str, done: int, total: int | None = None) -> None:
        if done == 15:
            raise Cut

    with pytest.raises(Cut):
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
    return lambda *grid: Asked(grid, "tanimoto", "mass", "test")


def test_the_point_of_the_best_mean_is_chosen_not_that_of_the_best_seed(grid_of) -> None:
    found = chosen_runs(grid_of(("a1", "a2"), ("b1", "b2")), "hit_rate@20", None)
    assert [one.trial for one in found] == ["b1", "b2"]
    assert [one.numbers for one in found] == ["numbers of b1", "numbers of b2"]


def test_a_point_with_a_run_missing_is_not_compared(grid_of) -> None:
    found = chosen_runs(grid_of(("c1", "c2"), ("a1", "a2")), "hit_rate@20", None)
    assert [one.trial for one in found] == ["a1", "a2"]
    assert chosen_runs(grid_of(("c1", "c2")), "hit_rate@20", None) == ()


def test_models_go_once_they_are_measured_if_that_is_asked_for(two: Experiment, site: Site) -> None:
    cell = asked(two, "bce")
    [job] = jobs_of([cell], site, drop_models=True)
    [kept] = jobs_of([cell, replace(cell, keeps_models=True)], site, drop_models=True)
    assert (job.drops_model, kept.drops_model) == (True, False)
    assert run_jobs([job], engine=LocalEngine(1)) == {}
    run, numbers = opened(site, job.trial) or pytest.fail("it has not ended")
    assert {path.name for path in run.folder.iterdir()} == {"run.json", "history.csv"}
    assert 0 <= (numbers.value("hit_rate@1", "mass", "test") or 0.0) <= 1
    assert run_jobs([job], engine=LocalEngine(1)) == {}  # there is nothing left to do
    with pytest.raises(ExperimentError, match="not measured before its weights were dropped"):
        numbers.value("hit_rate@1", "formula", "val")
