import errno
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mzseek.core.errors import BusyError, WriteError
from mzseek.io import atomic_directory, atomic_file, sole_writer
from mzseek.io.writing import disk_error_reason, disk_errors, publish, remove_leftovers


def put(target: Path, text: str) -> None:
    """Write a text file, or a folder of two where ``target`` is not called .txt."""
    if target.suffix == ".txt":
        target.write_text(text)
        return
    target.mkdir(exist_ok=True)
    for name in "ab":
        (target / name).write_text(text)


def found(target: Path) -> str | None:
    """Return the text of `put`; None where there is nothing."""
    if not target.exists():
        return None
    files = [target] if target.is_file() else sorted(target.iterdir())
    assert len(files) == (1 if target.is_file() else 2)
    (text,) = {file.read_text() for file in files}
    return text


def run_threads(works) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("make", "name"), [(atomic_file, "out.txt"), (atomic_directory, "out")])
def test_an_output_appears_when_done_and_an_error_leaves_the_old(
    make, name: str, tmp_path: Path
) -> None:
    target = tmp_path / name
    for text, before in (("old", None), ("new", "old")):
        with pytest.raises(RuntimeError), make(target) as partial:
            put(partial, text)
            raise RuntimeError
        assert found(target) == before
        with make(target) as partial:
            put(partial, text)
            assert found(target) == before
        assert found(target) == text
        assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_process_leaves_no_half_made_folder(tmp_path: Path, kind: signal.Signals) -> None:
    target = tmp_path / "made"
    code = (
        "import sys, time; from pathlib import Path; from mzseek.io import atomic_directory\n"
        f"with atomic_directory(Path({str(target)!r})) as partial:\n"
        "    (partial / 'a').write_text('x'); print('ready', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(kind)
        process.wait(10)
    assert not target.exists()
    if kind == signal.SIGTERM:
        assert list(tmp_path.iterdir()) == []
    # Whatever kill -9 left is cleared away by the next one.
    with atomic_directory(target) as partial:
        (partial / "b").write_text("y")
    assert list(tmp_path.iterdir()) == [target]


def test_another_process_at_work_is_left_alone(tmp_path: Path) -> None:
    busy = tmp_path / f".made.partial-{os.getppid()}-abc"
    busy.mkdir()
    with atomic_directory(tmp_path / "made"):
        pass
    assert busy.exists()


def test_what_a_killed_process_had_moved_away_is_put_back(tmp_path: Path) -> None:
    # Killed between its two renames: the old folder has another name, the new one has none.
    put(tmp_path / ".made[1].partial-999999999-abc-old", "old")
    (tmp_path / ".made[1].partial-999999999-abc").mkdir()
    target = tmp_path / "made[1]"
    with pytest.raises(RuntimeError), atomic_directory(target):
        assert found(target) == "old"
        raise RuntimeError
    assert found(target) == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_in_the_place_of_a_file_is_noticed_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out.svg").mkdir()
    with (
        pytest.raises(WriteError, match=r"out\.svg: is a folder, expected a file to write"),
        atomic_file(tmp_path / "out.svg"),
    ):
        pytest.fail("worked")
    assert (tmp_path / "out.svg").is_dir()


@pytest.mark.parametrize("make", [atomic_file, atomic_directory])
def test_a_place_that_cannot_be_written_is_noticed_before_the_work(make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="out: cannot be made"), make(tmp_path / "file" / "out"):
        pytest.fail("worked")


def test_threads_that_write_one_file_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"

    def write(letter: str) -> None:
        for _ in range(50):
            with atomic_file(target) as path, path.open("w") as stream:
                for _ in range(50):
                    stream.write(letter * 100)

    run_threads(functools.partial(write, letter) for letter in "abcd")
    assert target.read_text() in {letter * 5_000 for letter in "abcd"}
    assert list(tmp_path.iterdir()) == [target]


def test_suffixes_stay_and_long_names_fit(tmp_path: Path) -> None:
    with atomic_file(tmp_path / ("x" * 190 + ".tsv.gz")) as partial:
        assert partial.name.endswith(".tsv.gz")
        partial.touch()


@pytest.mark.parametrize("process", [999_999_999, 10**30])
def test_leftovers_of_dead_processes_are_removed(tmp_path: Path, process: int) -> None:
    (tmp_path / f".out.partial-{process}-x").touch()
    (tmp_path / f".out.partial-{process}-y").mkdir()
    with atomic_file(tmp_path / "out") as partial:
        partial.touch()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# A process that is killed outright at a step of `publish`: as the system exchanges folders, or as
# where it cannot, so that the old one is renamed first.
_KILLED = """
import os, signal, sys
from pathlib import Path
from mzseek.io import atomic_directory, atomic_file
from mzseek.io import writing as atomic

target, step, portable = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "portable"
if portable:
    atomic._exchange = lambda one, other: False

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if step == "-old":  # the old folder has another name, the new one has none yet
    rename = Path.rename
    def renamed(path, other):
        rename(path, other)
        if str(other).endswith(step):
            kill()
    Path.rename = renamed
elif step == "discard":  # the new one is there, the old one is not removed
    atomic.discard = kill
elif step == "rmtree":  # the old one is half removed
    def half(folder, **_):
        next(folder.iterdir()).unlink()
        kill()
    atomic.shutil.rmtree = half
elif step == "replace":  # a file, before its rename
    Path.replace = kill

if target.suffix:
    with atomic_file(target) as partial:
        partial.write_text("new")
else:
    with atomic_directory(target) as partial:
        (partial / "a").write_text("new")
        (partial / "b").write_text("new")
"""


@pytest.mark.parametrize(
    ("name", "step", "way", "there", "next_sees"),
    [
        ("out", "discard", "exchange", "new", "new"),
        ("out", "rmtree", "exchange", "new", "new"),
        ("out", "-old", "portable", None, "old"),
        ("out", "discard", "portable", "new", "new"),
        ("out", "rmtree", "portable", "new", "new"),
        ("out.txt", "replace", "exchange", "old", "old"),
    ],
)
def test_a_kill_inside_of_publishing_loses_nothing(
    tmp_path: Path, name: str, step: str, way: str, there: str | None, next_sees: str
) -> None:
    target = tmp_path / name
    put(target, "old")
    ended = subprocess.run([sys.executable, "-c", _KILLED, target, step, way], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert found(target) == there
    make = atomic_file if target.suffix else atomic_directory
    with pytest.raises(RuntimeError), make(target):
        assert found(target) == next_sees
        raise RuntimeError
    assert found(target) == next_sees
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_whose_exchange_fails_stays(tmp_path: Path) -> None:
    put(tmp_path / "out", "old")
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "none", tmp_path / "out")
    assert found(tmp_path / "out") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_old_folder_is_put_back_whoever_has_the_number_of_its_process(tmp_path: Path) -> None:
    # In a container every process may have the same number.
    put(tmp_path / f".out.partial-{os.getpid()}-abc-old", "old")
    remove_leftovers(tmp_path / "out")
    assert found(tmp_path / "out") == "old"


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


@pytest.mark.slow
def test_every_library_that_writes_is_understood_on_a_full_disk(small_disk) -> None:
    disk = small_disk(1_000)
    done = subprocess.run([sys.executable, "-c", REAL, str(disk)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = ("safetensors", "numpy", "arrow", "parquet", "text", "zipped")
    expected = [f"{disk / name}: cannot be written ({os.strerror(28)})" for name in names]
    assert done.stdout.splitlines() == expected
    assert list(disk.iterdir()) == []


HOLD = """
import sys, time
from pathlib import Path
from mzseek.io import sole_writer
with sole_writer(Path(sys.argv[1]), "holding it"):
    print("held", flush=True)
    time.sleep(60)
"""


def holder_of(target: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def assert_refused(target: Path, reason: str, error: type[Exception] = WriteError) -> None:
    with pytest.raises(error, match=reason), sole_writer(target, "trying"):
        pass


def test_another_process_is_told_who_holds_it(tmp_path: Path) -> None:
    with holder_of(tmp_path / "out") as holder:
        reason = f"holding it there .process {holder.pid} on"
        assert_refused(tmp_path / "out", reason, BusyError)
        holder.kill()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_ends_with_its_process(tmp_path: Path, end: signal.Signals) -> None:
    with holder_of(tmp_path / "out") as holder:
        holder.send_signal(end)
        holder.wait(10)
    with sole_writer(tmp_path / "out", "trying"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    with sole_writer(tmp_path / "out", "first"):
        assert_refused(tmp_path / "out", f"process {os.getpid()}", BusyError)


def test_never_two_at_a_time_though_lock_files_come_and_go(tmp_path: Path) -> None:
    inside, most, taken = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, taken
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                with sole_writer(tmp_path / "out", "racing"):
                    inside += 1
                    most = max(most, inside)
                    time.sleep(0.0005)
                    inside -= 1
                    taken += 1
            except BusyError:
                pass

    run_threads([work] * 8)
    assert most == 1
    assert taken > 10


def test_places_that_take_no_file_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(tmp_path / "file" / "out", r"out: cannot be made \(.*file is a file")
    for place in ("/proc/out", "/proc/none/out", "/dev/null/out"):
        assert_refused(Path(place), f"^{place}: cannot be made")
    assert_refused(tmp_path / ("ü" * 101), "its name is longer than 200 bytes")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_for_reading_only_is_refused(small_disk) -> None:
    disk = small_disk(100, "ro")
    assert_refused(disk / "out", r"out: cannot be made \(Read-only file system\)")


def test_a_disk_without_room_for_a_line_is_refused(small_disk) -> None:
    disk = small_disk(40)
    (disk / "filler").write_bytes(bytes(40_960))
    assert_refused(disk / "out", r"out: cannot be written \(No space left on device\)")
    assert [path.name for path in disk.iterdir()] == ["filler"]


def test_folders_made_for_it_go_unless_something_is_in_them(tmp_path: Path) -> None:
    with sole_writer(tmp_path / "a" / "b" / "out", "trying"):
        assert (tmp_path / "a" / "b").is_dir()
    assert list(tmp_path.iterdir()) == []
    with sole_writer(tmp_path / "a" / "b" / "out", "trying"):
        (tmp_path / "a" / "kept").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["kept"]


def test_what_a_link_in_its_place_points_to_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    (tmp_path / ".out.lock").symlink_to(tmp_path / "precious")
    assert_refused(tmp_path / "out", "cannot be made")
    assert (tmp_path / "precious").read_text() == "x"


FORK = """
import multiprocessing, os, sys, time
from pathlib import Path
from mzseek.io import sole_writer

def linger():
    print(os.getpid(), flush=True)  # by then it has let go of what it was forked with
    time.sleep(60)

if __name__ == "__main__":
    with sole_writer(Path(sys.argv[1]), "forking"):
        child = multiprocessing.get_context("fork").Process(target=linger)
        child.start()
        time.sleep(60)
"""


def test_a_lock_does_not_live_on_in_processes_that_were_forked_off(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORK, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        assert_refused(tmp_path / "out", "forking", BusyError)
        holder.kill()
        holder.wait(10)
    os.kill(child, 0)  # it is there
    try:
        with sole_writer(tmp_path / "out", "trying"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
