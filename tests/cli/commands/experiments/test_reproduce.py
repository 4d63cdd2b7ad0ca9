import json
from pathlib import Path

import pytest

from mzseek.experiments import names


def test_every_experiment_is_listed_with_its_place_in_the_paper(mzseek) -> None:
    status, text, err = mzseek("reproduce", "--list")
    assert (status, err) == (0, "")
    for name in names():
        assert f"\n{name} " in f"\n{text}"
    assert "Table 1 " in text
    assert "tab:" not in text


@pytest.mark.slow
def test_every_experiment_runs_to_its_end_on_the_embedded_set(mzseek, tmp_path: Path) -> None:
    out = tmp_path / "made"
    status, text, _ = mzseek("reproduce", "--out", out, "--json")
    facts = json.loads(text.splitlines()[-1])
    assert status == 0
    assert list(facts["results"]) == list(names())
    for name, results in facts["results"].items():
        assert results["failed"] == {}, name
        rows = results["cells"]
        assert rows
        filled = [cell for row in rows.values() for cell in row.values()]
        assert all(cell["values"] or cell.get("text") for cell in filled), name
        folder = out / "results" / "smoke" / name
        for file in ("table.md", "table.tex", "table.csv", "results.json"):
            assert (folder / file).stat().st_size > 100
    assert {"bce", "mist"} <= set(facts["results"]["main"]["cells"])
    page = Path(facts["page"]).read_text()
    assert "Simulated" in page
    # Whoever asks again gets the same, without a run.
    runs = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*/run.json")}
    assert len(runs) > 30
    status, text, _ = mzseek("reproduce", "gamma", "--out", out, "--json")
    again = json.loads(text.splitlines()[-1])["results"]["gamma"]["cells"]
    assert (status, again) == (0, facts["results"]["gamma"]["cells"])
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


def test_a_folder_of_something_else_is_left_alone(mzseek, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    status, _, err = mzseek("reproduce", "toy", "--out", tmp_path)
    assert status == 2
    assert "exists and holds no experiments; name another --out" in err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
