"""Compiled kernels and their cache on disk."""

import subprocess
import sys
from pathlib import Path

import pytest

from mzseek.core import compiled as compiled_module
from mzseek.core.compiled import has_compiled_cache

KERNEL = """
from typing import NamedTuple
import numpy as np
from mzseek.core.compiled import compiled
class {name}(NamedTuple):
    values: np.ndarray
@compiled
def total(lists):
    result = 0.0
    for value in lists.values:
        result += value
    return result
if __name__ == "__main__":
    import kernel
    print(kernel.total(kernel.{name}(np.arange(4.0))))
"""


@pytest.mark.slow
def test_a_cache_that_names_a_class_that_is_gone_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    printed = []
    for name in ("Peaks", "Peaks", "PeakLists"):
        (tmp_path / "kernel.py").write_text(KERNEL.format(name=name))
        ended = subprocess.run(
            [sys.executable, "kernel.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        printed.append(ended.stdout.strip())
    assert printed == ["6.0"] * 3


def test_a_cache_that_numba_cannot_write_to_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not has_compiled_cache()
    (tmp_path / f"{compiled_module._KERNEL.stem}.f-1.py311.nbi").touch()
    assert has_compiled_cache()
    monkeypatch.setattr("os.access", lambda *_: False)  # as on a disk for reading only
    assert not has_compiled_cache()
