import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mzseek.core.errors import WriteError
from mzseek.io.writing import disk_error_reason, disk_errors


class SafetensorError(Exception):
    """As the library has it: an error of its own, with the system's words in it."""


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left"),
        SafetensorError("Error while serializing: I/O error: No space left (os error 28)"),
    ],
)
def test_a_full_disk_is_said_of_the_output_in_the_systems_words(error: Exception) -> None:
    with pytest.raises(WriteError) as caught, disk_errors(Path("out")):
        raise error
    assert str(caught.value) == "out: cannot be written (No space left on device)"


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file"),
        PermissionError(errno.EACCES, "Permission denied"),
        OSError("without a number"),
        ValueError("(os error 2)"),
        KeyError("x"),
    ],
)
def test_what_is_not_of_the_disk_stays_what_it_is(error: Exception) -> None:
    assert disk_error_reason(error) is None
    with pytest.raises(type(error)) as caught, disk_errors(Path("out")):
        raise error
    assert caught.value is error


def test_a_part_with_a_hidden_name_is_told_as_the_whole() -> None:
    inner = WriteError("/x/.out.partial-1/data.npy", "cannot be written (File too large)")
    with pytest.raises(WriteError) as caught, disk_errors(Path("out")):
        raise inner
    assert str(caught.value) == "out: cannot be written (File too large)"


REAL = """
import sys, torch, numpy as np, pyarrow as pa, gzip
from pathlib import Path
from safetensors.torch import save_file
from mzseek.core.errors import WriteError
from mzseek.io import atomic_file
from mzseek.io.arrays import save_array

def safetensors(path):
    save_file({"a": torch.zeros(400_000)}, path)
def numpy(path):
    save_array(path, np.zeros(400_000))
def arrow(path):
    table = pa.table({"a": np.zeros(400_000)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
def parquet(path):
    import pyarrow.parquet as pq
    pq.write_table(pa.table({"a": np.random.default_rng(0).random(400_000)}), path)
def text(path):
    path.write_text("x" * 2_000_000)
def zipped(path):
    with gzip.open(path, "wb") as file:
        file.write(np.random.default_rng(0).bytes(2_000_000))

for write in (safetensors, numpy, arrow, parquet, text, zipped):
    try:
        with atomic_file(Path(sys.argv[1]) / write.__name__) as partial:
            write(partial)
    except WriteError as error:
        print(error)
"""


def test_every_library_that_writes_is_understood_on_a_full_disk(small_disk) -> None:
    disk = small_disk(1_000)
    done = subprocess.run([sys.executable, "-c", REAL, str(disk)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = ("safetensors", "numpy", "arrow", "parquet", "text", "zipped")
    expected = [f"{disk / name}: cannot be written ({os.strerror(28)})" for name in names]
    assert done.stdout.splitlines() == expected
    assert list(disk.iterdir()) == []
