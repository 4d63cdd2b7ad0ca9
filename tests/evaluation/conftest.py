import shutil
from pathlib import Path

import pytest

from mzseek.runs.run import Run


@pytest.fixture
def copied(trained, tmp_path: Path):
    """A copy of a trained run, which a test may change."""

    def copy(loss: str = "bce", name: str = "run", **changes) -> Run:
        shutil.copytree(trained(loss, **changes).folder, tmp_path / name)
        return Run.open(tmp_path / name)

    return copy
