from dataclasses import replace

import pytest

from mzseek.experiments import Experiment, Scale
from mzseek.experiments.site import Site
from mzseek.experiments.sweep import Ended, jobs_of, measured_file, opened, run_folder, run_jobs
from mzseek.experiments.trials import asked_of
from mzseek.work import LocalEngine, engine_named

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
