import json
from pathlib import Path

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


def test_a_grid_of_one_s_own_is_trained_and_the_best_is_shown(
    mzseek, small_set, tmp_path: Path
) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text(GRID)
    out = tmp_path / "tuned"
    status, text, _ = mzseek(
        "tune", grid, "--data", small_set.folder.parent, "--out", out, "--jobs", "1"
    )
    assert status == 0
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
