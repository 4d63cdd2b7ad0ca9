"""Library calls leave the process that they run in as they found it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("process_state.py")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_process_is_left_as_it_was(jobs: int, small_set, tmp_path: Path) -> None:
    """Settings that outlive a call are the command line's, or those of processes of our own."""
    (tmp_path / "set").mkdir()
    for path in small_set.folder.parent.glob("*.*s*"):
        shutil.copy(path, tmp_path / "set")
    result = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "set"), str(tmp_path), str(jobs)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    changed = json.loads(result.stdout.splitlines()[-1])
    assert changed == {}
