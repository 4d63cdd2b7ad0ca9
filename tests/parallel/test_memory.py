import subprocess
import sys

import pytest

from mzseek.parallel import engine as memory

PAGE_FAULTS = """
import resource
import torch
from mzseek.parallel.engine import keep_freed_memory
assert keep_freed_memory()
for _ in range(20):  # until freed blocks fit
    torch.ones(12_000_000)  # 48 MB, above what the C library would keep by itself
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(12_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize("library", ["", "musl"])
def test_elsewhere_than_on_glibc_nothing_is_asked(library: str, monkeypatch) -> None:
    monkeypatch.setattr(memory.platform, "libc_ver", lambda: (library, ""))
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: pytest.fail("loaded"))
    assert memory.keep_freed_memory() is False


@pytest.mark.parametrize("error", [OSError("absent"), AttributeError("no mallopt")])
def test_a_library_that_cannot_be_asked_is_no_error(error: Exception, monkeypatch) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(memory.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(memory.ctypes, "CDLL", fail)
    assert memory.keep_freed_memory() is False


@pytest.mark.skipif(memory.platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.slow
def test_freed_memory_is_used_again() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PAGE_FAULTS],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(result.stdout) < 1000  # anew each time it would be 12,000 pages a tensor
