import json
import shutil
from pathlib import Path

import pytest

from mzseek.errors import CacheError, RunError
from mzseek.prepared import Prepared
from mzseek.runs.options import Options
from mzseek.runs.run import FORMAT_VERSION, KIND, Run


@pytest.fixture
def run(small: Prepared, tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", Options().resolved(), small)


def edit(folder: Path, **changes: object) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(facts | changes))


def test_a_new_run_says_what_made_it(run: Run, small: Prepared) -> None:
    facts = json.loads((run.folder / "run.json").read_text())
    assert (facts["kind"], facts["format_version"]) == (KIND, FORMAT_VERSION)
    assert facts["options"] == Options().resolved().to_dict()
    assert facts["options"]["seed"] == 0
    assert facts["data"]["key"] == small.manifest["key"]
    assert Path(facts["data"]["folder"]) == small.folder.resolve()
    assert facts["data"]["fingerprint"] == "maccs"
    assert facts["status"] == "training"
    for name in ("mzseek", "python", "torch", "numpy", "rdkit"):
        assert facts["versions"][name][0].isdigit()
    assert set(facts["machine"]) == {"platform", "threads", "device"}


def test_a_run_opens_as_it_was_saved(run: Run) -> None:
    run.facts["best"] = {"tanimoto": {"step": 3, "value": 0.5}}
    run.save()
    found = Run.open(run.folder)
    assert found.facts == run.facts
    assert found.options == Options().resolved()
    assert found.best == {"tanimoto": {"step": 3, "value": 0.5}}
    assert not found.finished
    assert Run.open(str(run.folder)).folder == run.folder


def test_an_empty_folder_may_be_taken(small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert Run.create(tmp_path / "run", Options(), small).folder == tmp_path / "run"


def test_folders_of_others_are_refused_and_left_alone(small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("chapter 1")
    (tmp_path / "file").write_text("x")
    for name in ("mine", "file"):
        with pytest.raises(RunError, match=f"{name}: exists and is no run; name another --out"):
            Run.create(tmp_path / name, Options(), small)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_run_is_not_overwritten(run: Run, small: Prepared) -> None:
    with pytest.raises(RunError, match="holds a run already; go on with --resume"):
        Run.create(run.folder, Options(), small)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no run folder .run.json is missing"),
        ("{", "run.json: is damaged"),
        ("[1, 2]", "run.json: holds a list, expected a JSON object"),
        ('"text"', "run.json: holds a str, expected a JSON object"),
        ("{}", "is no run folder .run.json does not say what it is"),
        ('{"kind": "prepared folder"}', "is a prepared folder, expected a run folder"),
        (f'{{"kind": "{KIND}", "format_version": 99}}', "written in format 99, expected 1"),
        (f'{{"kind": "{KIND}", "format_version": 1}}', "run.json: lacks 'data'"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path, content, message: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=message) as refused:
        Run.open(tmp_path)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_data_are_found_again(run: Run, small: Prepared, tmp_path: Path) -> None:
    assert run.open_data().manifest["key"] == small.manifest["key"]
    shutil.copytree(small.folder, tmp_path / "moved")
    assert run.open_data(tmp_path / "moved").folder == tmp_path / "moved"


def test_changed_data_are_refused(run: Run, small: Prepared, tmp_path: Path) -> None:
    shutil.copytree(small.folder, tmp_path / "other")
    manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
    key = "0" * len(manifest["key"])
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(manifest | {"key": key}))
    with pytest.raises(RunError, match=r"holds other data than .* was trained on \(key 0000"):
        run.open_data(tmp_path / "other")


def test_data_that_are_gone_are_said_to_be(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="nowhere: is no prepared folder"):
        run.open_data(tmp_path / "nowhere")


def test_history_comes_back_whole(run: Run) -> None:
    assert run.history() == []
    rows = [{"step": 1, "loss": 0.1 + 0.2}, {"step": 2, "loss": 1e-300, "tanimoto": 1 / 3}]
    run.write_history(rows)
    assert run.history() == rows


def test_a_history_with_two_columns_of_one_name_is_refused(run: Run) -> None:
    (run.folder / "history.csv").write_text("step,loss,hit,loss\n1,0.5,0.1,0.7\n")
    with pytest.raises(RunError, match=r"columns 2 \('loss'\) and 4 \('loss'\) have one name"):
        run.history()


@pytest.mark.parametrize("metric", ["hit_rate@1/mass", "tanimoto", "hit_rate@20/my-lists"])
def test_every_metric_has_a_file_of_its_own(run: Run, metric: str) -> None:
    path = run.checkpoint(metric)
    assert path.parent == run.folder / "checkpoints"
    assert path.suffix == ".safetensors"
    assert run.checkpoint("hit_rate@1/formula") != path


def test_options_of_another_version_are_refused(run: Run) -> None:
    edit(run.folder, options={"colour": "red"})
    with pytest.raises(RunError, match="options do not fit"):
        _ = Run.open(run.folder).options


def test_options_with_a_line_break_in_a_name_are_one_line(run: Run) -> None:
    edit(run.folder, options={"c\ndidates": "mass"})
    with pytest.raises(RunError, match=r"run\.json: options do not fit") as refused:
        Run.open(run.folder)
    assert "\n" not in str(refused.value)
