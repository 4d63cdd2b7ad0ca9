import json
from pathlib import Path

import pytest

from mzseek.evaluation.evaluate import evaluate


@pytest.mark.slow
def test_runs_are_compared_and_the_page_is_named(mzseek, trained, tmp_path: Path) -> None:
    run, control = trained("bce"), trained("emb-cos", model="blind")
    out = tmp_path / "report"
    text = mzseek.ok("report", run.folder, control.folder, "--out", out)
    assert "test fold, mass candidates" in text
    assert f"{100 * evaluate(run).intervals()['hit_rate@1'].mean:.1f}" in text
    assert "No run here does without the spectrum" not in text
    assert f"Look at {out / 'index.html'}" in text.replace("\n", "")
    assert {path.name for path in out.iterdir()} == {
        "index.html", "data.html", "numbers.json", "manifest.json",
    }  # fmt: skip


@pytest.mark.slow
def test_without_a_control_it_is_said_that_one_is_missing(mzseek, trained, tmp_path: Path) -> None:
    out = tmp_path / "report"
    text = mzseek.ok("report", trained("bce").folder, "--out", out, "--no-decode")
    assert "No run here does without the spectrum" in text
    assert "Decoded" not in text


@pytest.mark.slow
def test_json_says_where_it_is_and_which_are_controls(mzseek, trained, tmp_path: Path) -> None:
    out = tmp_path / "report"
    folders = [trained("bce").folder, trained("emb-cos", model="blind").folder]
    status, text, _ = mzseek(
        "report", *folders, "--out", out, "--candidates", "formula", "--no-decode", "--json"
    )
    facts = json.loads(text.splitlines()[-1])
    assert status == 0
    assert facts["page"] == str(out / "index.html")
    assert list(facts["runs"].values()) == [False, True]
    numbers = json.loads((out / "numbers.json").read_text())
    assert {each["candidates"] for each in numbers.values()} == {"formula"}
