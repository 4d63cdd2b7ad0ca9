import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mzseek.core.errors import BusyError, WriteError
from mzseek.io import sole_writer

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

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert taken > 10


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(tmp_path / "file" / "out", r"out: cannot be made \(.*file is a file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("place", ["/proc/out", "/proc/none/out", "/dev/null/out"])
def test_places_that_take_no_file_are_refused_at_once(place: str) -> None:
    assert_refused(Path(place), f"^{place}: cannot be made")


def test_a_disk_for_reading_only_is_refused(small_disk) -> None:
    disk = small_disk(100, "ro")
    assert_refused(disk / "out", r"out: cannot be made \(Read-only file system\)")


def test_a_disk_without_room_for_a_line_is_refused(small_disk) -> None:
    disk = small_disk(40)
    (disk / "filler").write_bytes(bytes(40_960))
    assert_refused(disk / "out", r"out: cannot be written \(No space left on device\)")
    assert [path.name for path in disk.iterdir()] == ["filler"]


def test_long_names_are_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / ("ü" * 101), "its name is longer than 200 bytes")


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
