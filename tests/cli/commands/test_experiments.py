import json
import shutil
from pathlib import Path

import pytest
import torch

from mzseek.datasets.files import find_dataset
from mzseek.datasets.get import FILES
from mzseek.experiments import names
from mzseek.training.train import train_one


def test_every_experiment_is_listed_with_its_place_in_the_paper(mzseek) -> None:
    text = mzseek.ok("reproduce", "--list")
    for name in names():
        assert f"\n{name} " in f"\n{text}"
    assert "Table 1 " in text
    assert "tab:" not in text


@pytest.mark.slow
def test_bundled_spectra_have_their_molecules_and_no_run_is_run_again(
    mzseek, tmp_path: Path
) -> None:
    out = tmp_path / "made"
    words = ("reproduce", "hard-negatives", "--out", out, "--json")
    status, text, _ = mzseek(*words)
    results = json.loads(text.splitlines()[-1])["results"]
    assert status == 0
    for name, of in results.items():
        assert (of["failed"], of["not_run"]) == ({}, {}), name
        assert all(cell["values"] for row in of["cells"].values() for cell in row.values())
        for file in ("table.md", "table.tex", "table.csv", "results.json"):
            assert (out / "results" / "smoke" / name / file).stat().st_size > 100
    assert "bundled spectra" in (out / "index.html").read_text()
    runs = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*/run.json")}
    assert len(runs) == 2 * 3  # by three temperatures
    status, text, _ = mzseek(*words)
    again = json.loads(text.splitlines()[-1])["results"]
    assert [of["cells"] for of in again.values()] == [of["cells"] for of in results.values()]
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*/run.json")} == runs


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["mian"], "experiment 'mian' is unknown, expected one of: main, front"),
        (["gamma", "--scale", "large"], "scale 'large' is unknown, expected one of: paper"),
        (["gamma", "--data", "nowhere"], "nowhere: no such file"),
        (["gamma", "--engine", "slurm"], "engine 'slurm' is unknown"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    mzseek, tmp_path: Path, words: list[str], reason: str
) -> None:
    status, _, err = mzseek("reproduce", *words, "--out", tmp_path / "made")
    assert status == 2
    assert reason in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_without_a_database_hard_negatives_are_not_run_and_the_rest_is(
    mzseek, small_set, tmp_path: Path
) -> None:
    text = mzseek.ok(
        "reproduce", "toy", "hard-negatives", "--scale", "paper", "--data", small_set.folder.parent,
        "--out", tmp_path / "made", "--jobs", "1",
    )  # fmt: skip
    assert "not run: needs a database (--database DB): hardest 64 of equal mass" in " ".join(
        text.split()
    )
    assert "all are equal" in text  # the example of decisions was run


@pytest.mark.slow
def test_all_tables_are_made_of_a_download_without_a_database_and_with_a_trial_that_fails(
    mzseek, small_set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, here = tmp_path / "massspecgym", find_dataset(small_set.folder.parent)
    sources = {"spectra": here.spectra, **here.candidates}
    for part, name in FILES["1"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources[part], folder / name)
    mzseek.ok("data", "get", "massspecgym", "--dir", folder)

    def train_or_fail(job, channel):
        if getattr(job[1].loss.options, "gamma", None) == 10:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return train_one(job, channel)

    monkeypatch.setattr("mzseek.training.train.train_one", train_or_fail)
    words = ("--data", folder, "--variant", "published", "--out", tmp_path / "made", "--jobs", "1")
    status, text, err = mzseek("reproduce", *words, "--json")
    assert status == 0, err
    results = json.loads(text.splitlines()[-1])["results"]
    assert list(results) == list(names())
    for name, of in results.items():
        assert (tmp_path / "made/results/smoke-published" / name / "table.md").exists()
        assert bool(of["not_run"]) == (name == "hard-negatives")
        assert bool(of["failed"]) == (name == "gamma")
        empty = {
            row
            for row, cells in of["cells"].items()
            if not all(cell["values"] or cell.get("text") for cell in cells.values())
        }
        assert empty == ({"10"} if name == "gamma" else set())
    [reason] = results["gamma"]["failed"].values()
    assert reason.startswith("OutOfMemoryError: CUDA out of memory")
    page = (tmp_path / "made" / "index.html").read_text()
    assert "Protocol variant published: the encoder has two blocks" in page


def test_a_plan_is_printed_and_nothing_is_started(mzseek, small_set, tmp_path: Path) -> None:
    words = ("reproduce", "main", "front", "hard-negatives", "--scale", "paper", "--plan")
    where = ("--data", small_set.folder.parent, "--out", tmp_path / "made")
    text = mzseek.ok(*words, *where)
    assert "all, shared runs once" in text
    assert "core-hours" in text
    status, text, _ = mzseek(*words, *where, "--json")
    plan = json.loads(text.splitlines()[-1])["plan"]
    assert status == 0
    assert plan["hard-negatives"]["runs"] == 0  # there is no database
    assert plan["all, shared runs once"]["runs"] == plan["main"]["runs"] > 100
    assert "194,119 training and 19,429 validation spectra (MassSpecGym's)" in mzseek.ok(*words)
    assert not (tmp_path / "made").exists()


def test_a_folder_of_something_else_is_left_alone(mzseek, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    status, _, err = mzseek("reproduce", "toy", "--out", tmp_path)
    assert status == 2
    assert "exists and holds no experiments; name another --out" in err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


GRID = """
title: Width and rate
paper: mine
kind: runs
fold: test
protocol: {lr: [1.0e-3, 1.0e-2], seeds: 1, epochs: 3, select: hit_rate@1}
rows:
  small: {loss: bce, encoder.width: [8, 16], encoder.blocks: 1}
columns:
  hr: {label: HR@1, metric: hit_rate@1, candidates: mass}
"""


@pytest.mark.slow
def test_a_grid_of_one_s_own_is_trained_and_the_best_is_shown(
    mzseek, small_set, tmp_path: Path
) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text(GRID)
    out = tmp_path / "tuned"
    text = mzseek.ok("tune", grid, "--data", small_set.folder.parent, "--out", out, "--jobs", "1")
    assert "Width and rate" in text
    assert len(list(out.glob("runs/morgan2/*/run.json"))) == 4
    numbers = json.loads((out / "results" / "tune" / "grid" / "results.json").read_text())
    cell = numbers["cells"]["small"]["hr"]
    assert set(cell["chosen"]) == {"lr", "encoder.width"}
    assert len(cell["values"]) == 1
    best = max(
        json.loads(path.read_text())["best"]["hit_rate@1/mass"]["value"]
        for path in out.glob("runs/morgan2/*/run.json")
    )
    chosen = [
        json.loads(path.read_text())["best"]["hit_rate@1/mass"]["value"]
        for path in out.glob(f"runs/morgan2/*lr{cell['chosen']['lr']:g}-*/run.json")
    ]
    assert best in chosen


def test_a_grid_that_cannot_be_read_is_told_in_a_line(mzseek, small_set, tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text(GRID.replace("loss: bce", "loss: bcd"))
    words = ("--data", small_set.folder.parent, "--out", tmp_path / "tuned")
    status, _, err = mzseek("tune", grid, *words)
    assert status == 2
    assert "loss 'bcd' is unknown" in err
    assert err.count("\n") == 1
