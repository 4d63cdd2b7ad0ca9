import csv
import json
from dataclasses import replace

import pytest

from mzseek.experiments import scale_named
from mzseek.experiments.kinds import KINDS
from mzseek.experiments.reproduce import planned, reproduce
from mzseek.experiments.results import Cell
from mzseek.experiments.sweep import jobs_of, run_jobs
from mzseek.parallel import LocalEngine


def test_every_file_of_an_experiment_is_there(ran) -> None:
    _, experiment, done = ran
    files = {path.name for path in done.folder.iterdir()}
    assert files == {"table.md", "table.tex", "table.csv", "results.json"}  # it has no figure
    numbers = json.loads((done.folder / "results.json").read_text())
    assert numbers["cells"]["bce"]["hr"]["values"] == list(done.results.cell("bce", "hr").values)
    assert (numbers["experiment"], numbers["scale"], numbers["failed"]) == ("two", "paper", {})
    assert numbers["trials"] == 14  # two seeds: bce by 2 rates, emb-cos by 2 and 2 lists, random
    assert [claim["says"] for claim in numbers["claims"]] == [c.says for c in experiment.claims]
    with (done.folder / "table.csv").open(newline="") as file:
        assert {line["row"] for line in csv.DictReader(file)} == {
            row.key for row in experiment.rows
        }


def test_all_is_there_the_second_time(ran, whole, tmp_path) -> None:
    site, experiment, done = ran
    steps: list[str] = []
    heard: list[int] = []
    [again] = reproduce(
        [experiment], whole, site, tmp_path, engine=LocalEngine(1),
        progress=lambda name, *_: steps.append(name), begins=lambda jobs: heard.append(len(jobs)),
    )  # fmt: skip
    assert steps == []
    assert heard == [14]
    assert again.results.cells == done.results.cells
    table = (tmp_path / "two" / "table.md").read_text()
    assert table == (done.folder / "table.md").read_text()


def test_without_data_there_is_nothing_to_train(ran) -> None:
    assert planned([ran[1]], scale_named("paper"), None) == []


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_experiments_share_their_runs(scale: str) -> None:
    from mzseek.experiments import experiment_named
    from mzseek.experiments.kinds import kind_named

    def trials(name: str) -> set[str]:
        cut, here = experiment_named(name).at(scale_named(scale))
        asked = kind_named(cut.kind).asked(cut, here)
        return {trial.name for cell in asked.values() for trial in cell.trials}

    for name in ("front", "retrieval-function", "transfer"):
        assert trials(name) <= trials("main")


def test_a_trial_that_cannot_be_measured_is_set_aside(two, whole, site, tmp_path) -> None:
    column = replace(two.column("hr"), candidates="none such")
    experiment = replace(two, rows=two.rows[:1], columns=(column, two.column("tanimoto")))
    small = replace(whole, seeds=1, lr=(1e-3,))
    cells = KINDS["runs"].asked(experiment, small)
    failed = run_jobs(jobs_of(cells.values(), site), engine=LocalEngine(1))
    assert len(failed) == 1
    cells, _ = KINDS["runs"].measure(experiment, small, site)
    assert cells["bce"]["hr"] == Cell()
    assert len(cells["bce"]["tanimoto"].values) == 1
