import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mzseek.core.errors import MzseekError
from mzseek.parallel import Channel, LocalEngine


def test_one_job_works_in_this_process() -> None:
    assert set(LocalEngine(1).results(lambda _: os.getpid(), range(3))) == {os.getpid()}
    assert os.getpid() not in set(LocalEngine(2).results(lambda _: os.getpid(), range(3)))
    assert LocalEngine().jobs == os.cpu_count()


def test_a_process_that_is_killed_is_told_in_words() -> None:
    def dies(batch: int) -> int:
        if batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    with pytest.raises(MzseekError, match="one of 2 processes was killed from outside"):
        list(LocalEngine(2).results(dies, range(6)))
    assert list(LocalEngine(2).results(abs, [-1, 2])) == [1, 2]


def test_a_process_that_is_killed_while_it_sends_its_result_is_told_in_words() -> None:
    def dies(batch: int) -> bytes:
        main = threading.main_thread().ident

        def kill() -> None:
            while sys._current_frames()[main].f_code.co_name != "_send":
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        return b"x" * 500_000_000

    begun = time.monotonic()
    with pytest.raises(MzseekError, match="one of 2 processes was killed from outside"):
        list(LocalEngine(2).results(dies, range(1)))
    assert time.monotonic() - begun < 30
    assert list(LocalEngine(2).results(abs, [-1, 2])) == [1, 2]


def test_long_work_that_is_killed_is_told_in_words() -> None:
    def dies(batch: int, channel: Channel) -> int:
        if batch == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        return batch

    begun = time.monotonic()
    with pytest.raises(MzseekError, match="one of 2 processes was killed from outside"):
        list(LocalEngine(2).long_results(dies, range(2)))
    assert time.monotonic() - begun < 30
    assert list(LocalEngine(2).results(abs, [-1, 2])) == [1, 2]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_the_processes_whatever_they_are_at() -> None:
    list(LocalEngine(2).results(lambda _: os.getpid(), range(4)))
    workers = {child.pid for child in multiprocessing.active_children()}
    assert len(workers) == 2
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(LocalEngine(2).results(time.sleep, [60] * 20))
    assert time.monotonic() - begun < 10
    until = time.monotonic() + 5
    while any(is_running(worker) for worker in workers if worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(is_running(worker) for worker in workers if worker)
    assert list(LocalEngine(2).results(abs, [-1, 2, -3])) == [1, 2, 3]


def test_ctrl_c_ends_long_work_within_two_seconds() -> None:
    workers: list[str] = []

    def sleeps(batch: int, channel: Channel) -> None:
        channel.say(str(os.getpid()))
        time.sleep(60)

    def note(line: str) -> None:
        workers.append(line)
        if len(workers) == 2:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            workers.append(str(time.monotonic()))

    with pytest.raises(KeyboardInterrupt):
        list(LocalEngine(2).long_results(sleeps, range(4), say=note))
    assert time.monotonic() - float(workers.pop()) < 2
    assert not any(is_running(int(worker)) for worker in workers)


ORPHANS = """
import os, sys, time
from mzseek.parallel import LocalEngine

def sleeps(batch, channel):
    channel.say(str(os.getpid()))
    time.sleep(60)

for _ in LocalEngine(2).long_results(sleeps, range(2), say=lambda line: print(line, flush=True)):
    pass
"""


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
def test_no_process_outlives_the_one_that_began_it_even_if_that_is_killed() -> None:
    """Nor does a script need to guard its beginning."""
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while any(not is_gone(worker) for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
