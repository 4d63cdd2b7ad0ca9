"""The short form of ``make fuzz``: the same inputs every time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = 4_000


@pytest.mark.slow
def test_damaged_files_break_no_promise_of_any_reader(tmp_path: Path) -> None:
    """No crash, no hang, no flood of memory, and every record read or set aside."""
    done = subprocess.run(
        [
            sys.executable, ROOT / "benchmarks" / "fuzz", "--inputs", str(INPUTS), "--seed", "7",
            "--one-large-in", "1000000", "--findings", tmp_path / "findings",
            "--json", tmp_path / "report.json",
        ],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["findings"] == [], done.stdout + done.stderr
    assert done.returncode == 0
    assert report["inputs"] == INPUTS
    assert len(report["by_reader"]) >= 15
    assert report["records_read"] > 0
    assert report["records_set_aside"] > 0
