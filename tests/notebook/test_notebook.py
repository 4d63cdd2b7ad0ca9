"""The notebook of the docs does what it shows."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"


@pytest.mark.slow
def test_every_cell_runs() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--only-run"], capture_output=True, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    count = len(json.loads((FOLDER / "first.ipynb").read_text("utf-8"))["cells"])
    assert done.stdout == f"{count} cells\n"


def test_the_page_is_the_notebook() -> None:
    spec = importlib.util.spec_from_file_location("run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    notebook = json.loads((FOLDER / "first.ipynb").read_text("utf-8"))
    assert (FOLDER / "first.md").read_text("utf-8") == tool.page(notebook)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 8
    assert all(cell["execution_count"] for cell in code)
