import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mzseek.errors import BusyError, InputError
from mzseek.files import sole_writer

HOLD = """
import sys, time
from pathlib import Path
from mzseek.files import sole_writer
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


def test_another_process_is_told_who_holds_it(tmp_path: Path) -> None:
    with holder_of(tmp_path / "out") as holder:
        with (
            pytest.raises(BusyError, match=f"holding it there .process {holder.pid} on"),
            sole_writer(tmp_path / "out", "trying"),
        ):
            pass
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
    with (
        sole_writer(tmp_path / "out", "first"),
        pytest.raises(BusyError, match=f"process {os.getpid()}"),
        sole_writer(tmp_path / "out", "second"),
    ):
        pass


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
    with (
        pytest.raises(InputError, match="cannot be made"),
        sole_writer(tmp_path / "file" / "out", "trying"),
    ):
        pass
