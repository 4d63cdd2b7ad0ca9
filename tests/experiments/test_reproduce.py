import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mzseek.experiments import Claim, Row, experiment_named, scale_named
from mzseek.experiments.claims import UNDECIDED
from mzseek.experiments.kinds import KINDS
from mzseek.experiments.reproduce import reproduce, write_page
from mzseek.experiments.results import Cell
from mzseek.experiments.sweep import plan_jobs, run_jobs
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run
from mzseek.training.train import train_one


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
    [again] = reproduce(
        [experiment], whole, site, tmp_path, engine=LocalEngine(1),
        progress=lambda name, *_: steps.append(name),
    )  # fmt: skip
    assert steps == []
    assert again.results.metadata["trials"] == 14
    assert again.results.cells == done.results.cells
    table = (tmp_path / "two" / "table.md").read_text()
    assert table == (done.folder / "table.md").read_text()


def test_a_failed_trial_is_listed_and_the_rest_is_complete(
    two, whole, site, tmp_path, monkeypatch
) -> None:
    def train_or_fail(task, channel):
        if task[1].loss.name == "bce":
            raise RuntimeError("CUDA out of memory")
        return train_one(task, channel)

    monkeypatch.setattr("mzseek.training.train.train_one", train_or_fail)
    experiment = replace(two, rows=two.rows[:2], columns=two.columns[:1])
    small = replace(whole, seeds=1, lr=(1e-3,), epochs=1, listwise_epochs=1)
    [done] = reproduce([experiment], small, site, tmp_path / "results", engine=LocalEngine(1))
    [(name, why)] = done.results.failed.items()
    assert why == "RuntimeError: CUDA out of memory"
    assert done.results.cell("bce", "hr") is None
    assert len(done.results.cell("emb-cos", "hr").values) == 1
    assert f"- {name}: {why}" in (done.folder / "table.md").read_text()


def test_options_are_tuned_at_one_rate_and_then_the_rate_with_the_best(
    two, whole, site, tmp_path: Path, monkeypatch
) -> None:
    settings = {**two.row("emb-cos").settings, "loss.temperature": (1 / 64, 1.0, 4.0)}
    experiment = replace(
        two, rows=(Row("tuned", "tuned", settings),), columns=two.columns[:1], claims=(),
        published={}, lr=(1e-3, 1e-2, 3e-2), first_lr=1e-2,
    )  # fmt: skip
    small = replace(whole, seeds=1, epochs=2, listwise_epochs=2)
    stages: list[list[tuple[float, float]]] = []

    def noted(jobs, **options):
        stages.append(
            [(job.trial.lr, dict(job.trial.config.parts)["loss.temperature"]) for job in jobs]
        )
        return run_jobs(jobs, **options)

    monkeypatch.setattr("mzseek.experiments.reproduce.run_jobs", noted)
    [done] = reproduce([experiment], small, site, tmp_path / "results", engine=LocalEngine(1))
    first, second = stages
    assert first == [(1e-2, 1 / 64), (1e-2, 1.0), (1e-2, 4.0)]
    chosen = done.results.cell("tuned", "hr").chosen
    best = chosen["loss.temperature"]
    assert second == [(1e-3, best), (3e-2, best)]
    assert done.results.metadata["trials"] == 5
    reached = {}
    for path in site.out.glob("runs/morgan2/*/run.json"):
        run = Run.open(path.parent)
        temperature = run.description.loss.options.temperature
        reached[run.description.options["lr"], temperature] = run.best["hit_rate@1/mass"]["value"]
    assert reached[1e-2, best] == max(reached[point] for point in first)
    assert reached[chosen["lr"], best] == max(reached[point] for point in [(1e-2, best), *second])


def test_rows_that_need_a_database_are_not_run_and_the_others_are(
    two, whole, site, tmp_path: Path
) -> None:
    hard = Row(
        "hard", "hardest 4", {**two.row("emb-cos").settings, "hard_by": "mass", "hard_keep": 4}
    )
    claim = Claim("hard is best.", "best", {"column": "hr", "row": "hard"})
    experiment = replace(
        two,
        rows=(hard, two.row("random")),
        claims=(claim,),
        published={"hard": {"hr": (30.0, None)}},
    )
    small = replace(whole, seeds=1, lr=(1e-3,))
    [done] = reproduce(
        [experiment], small, site, tmp_path / "results" / "paper", engine=LocalEngine(1)
    )
    note = "not run: needs a database (--database DB): hardest 4"
    assert done.results.cell("random", "hr").values
    assert done.results.failed == {}
    assert done.results.to_dict()["not_run"] == {"hard": "needs a database (--database DB)"}
    assert [verdict.state for verdict in done.verdicts] == [UNDECIDED]
    assert "needs a database" in done.verdicts[0].because
    table = (done.folder / "table.md").read_text()
    assert note in table
    assert "| hardest 4 | not run (30.00) | not run |" in table
    page = write_page(tmp_path).read_text()
    assert note in page
    assert "not\u00a0run" in page


@pytest.mark.parametrize("scale", ["paper", "laptop", "smoke"])
def test_an_experiment_of_hard_negatives_alone_is_not_run_without_a_database(
    scale: str, site, tmp_path: Path
) -> None:
    experiment = experiment_named("hard-negatives")
    [done] = reproduce([experiment], scale_named(scale), site, tmp_path / "results")
    assert set(done.results.not_run) == {row.key for row in done.results.experiment.rows}
    assert (done.folder / "figure.svg").exists()
    assert {verdict.state for verdict in done.verdicts} == {UNDECIDED}
    assert not (site.out / "runs").exists()


def test_a_trial_that_cannot_be_measured_is_skipped(two, whole, site, tmp_path) -> None:
    column = replace(two.column("hr"), candidates="none such")
    experiment = replace(two, rows=two.rows[:1], columns=(column, two.column("tanimoto")))
    small = replace(whole, seeds=1, lr=(1e-3,))
    cells = KINDS["runs"].plan(experiment, small)
    outcomes = run_jobs(plan_jobs(cells.values(), site), engine=LocalEngine(1))
    assert [bool(outcome.failed) for outcome in outcomes] == [True]
    cells, _ = KINDS["runs"].measure(experiment, small, site)
    assert cells["bce"]["hr"] == Cell()
    assert len(cells["bce"]["tanimoto"].values) == 1


def test_the_page_has_every_experiment_and_needs_no_network(ran, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "paper" / "two"
    shutil.copytree(ran[2].folder, folder)
    (folder / "figure.svg").write_text('<?xml version="1.0"?>\n<svg id="here"></svg>')
    text = write_page(tmp_path).read_text()
    assert text.count("<h2 ") == 1
    assert "Two losses" in text
    assert '<svg id="here">' in text
    assert "<?xml" not in text
    assert "10.00\u00a0±\u00a00.50" in text
    assert "One of the two is best." in text
    assert not re.findall(r"(?:src|href)=\"(?!#)[^\"]*", text)


def test_what_failed_and_names_with_markup_are_shown_as_they_are(ran, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "paper" / "two"
    shutil.copytree(ran[2].folder, folder)
    numbers = json.loads((folder / "results.json").read_text())
    numbers |= {"failed": {"a": "broke <b>"}, "title": "<script>"}
    (folder / "results.json").write_text(json.dumps(numbers))
    text = write_page(tmp_path).read_text()
    assert "broke &lt;b&gt;" in text
    assert "1 trials failed" in text
    assert "<script>" not in text
