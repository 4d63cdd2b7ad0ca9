import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from mzseek.experiments import scale_named
from mzseek.experiments.kinds import KINDS
from mzseek.experiments.reproduce import plan_trials, reproduce, write_page
from mzseek.experiments.results import Cell
from mzseek.experiments.sweep import plan_jobs, run_jobs
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
    assert plan_trials([ran[1]], scale_named("paper"), None) == []


def test_a_trial_that_cannot_be_measured_is_skipped(two, whole, site, tmp_path) -> None:
    column = replace(two.column("hr"), candidates="none such")
    experiment = replace(two, rows=two.rows[:1], columns=(column, two.column("tanimoto")))
    small = replace(whole, seeds=1, lr=(1e-3,))
    cells = KINDS["runs"].plan(experiment, small)
    failed = run_jobs(plan_jobs(cells.values(), site), engine=LocalEngine(1))
    assert len(failed) == 1
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
