import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.chem import standardise
from mzseek.core.errors import MzseekError
from mzseek.parallel import Channel, LocalEngine, OpenedOnce, in_batches
from mzseek.parallel import processes as module
from mzseek.parallel.processes import stop_workers


def assert_gone(processes: Iterable[int]) -> None:
    """Every process ends, or has ended, within ten seconds."""
    until = time.monotonic() + 10
    for process in processes:
        with suppress(OSError):
            while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                assert time.monotonic() < until
                time.sleep(0.05)


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


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_sends_its_result_is_told_in_words() -> None:
    def dies(batch: int) -> bytes:
        main = threading.main_thread().ident

        def kill() -> None:
            while sys._current_frames()[main].f_code.co_name != "_send":
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        return b"x" * 100_000_000

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


def test_ctrl_c_ends_the_processes_whatever_they_are_at() -> None:
    list(LocalEngine(2).results(lambda _: os.getpid(), range(4)))
    workers = {child.pid for child in multiprocessing.active_children()}
    assert len(workers) == 2
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(LocalEngine(2).results(time.sleep, [60] * 20))
    assert time.monotonic() - begun < 10
    assert_gone(worker for worker in workers if worker)
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
    assert_gone(map(int, workers))


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
    assert_gone(workers)


def test_processes_leave_ctrl_c_to_the_one_that_they_work_for() -> None:
    def blocked(_: int) -> set[int]:
        from mzseek.chem import standardise

        standardise("CC(=O)[O-].[Na+]")  # RDKit puts a handler of its own in place
        os.kill(os.getpid(), signal.SIGINT)
        return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}

    assert list(LocalEngine(2).results(blocked, range(4))) == [{signal.SIGINT}] * 4


@pytest.mark.slow
def test_signals_that_are_blocked_stay_so_while_processes_are_started() -> None:
    stop_workers()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        list(LocalEngine(2).results(abs, [-1, 2, -3]))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def large(size: int) -> bytes:
    return b"x" * size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "batches", "after"),
    [
        (large, [50_000_000] * 8, 0.0),  # half of a result is in the pipe then
        (large, [50_000_000] * 8, 0.05),
        (len, [b"x" * 10_000_000] * 40, 0.0),  # half of a batch is
    ],
    ids=["result", "later result", "batch"],
)
def test_workers_end_in_the_middle_of_a_transfer(work, batches, after: float) -> None:
    results = LocalEngine(2).results(work, batches)
    next(results)
    time.sleep(after)
    begun = time.monotonic()
    stop_workers()
    assert time.monotonic() - begun < 2
    assert list(LocalEngine(2).results(abs, [-1, 2, -3])) == [1, 2, 3]


def test_work_leaves_no_handler_of_signals_behind() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    list(LocalEngine(1).results(standardise, ["CC(=O)[O-].[Na+]", "C[NH3+].[Cl-]"]))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(KeyboardInterrupt):  # not lost to the handler that RDKit has put in place
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def note_and_open(folder: Path, version: int) -> tuple[Path, int]:
    """Opens, and leaves a mark that it has."""
    (folder / f"{os.getpid()}-{version}-{len(list(folder.iterdir()))}").touch()
    return folder, version


def scaled(thing: tuple[Path, int], batch: int) -> int:
    return thing[1] * batch


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_process_opens_once(jobs: int, tmp_path: Path) -> None:
    work = OpenedOnce(scaled, note_and_open, tmp_path, 3)
    assert list(LocalEngine(jobs).results(work, range(12))) == [3 * n for n in range(12)]
    openings = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert len(openings) == len(set(openings)) <= jobs
    assert (str(os.getpid()) in openings) == (jobs == 1)


def test_another_key_is_opened_anew_and_the_first_let_go(tmp_path: Path) -> None:
    for version in (1, 2, 1):
        assert OpenedOnce(scaled, note_and_open, tmp_path, version)(10) == 10 * version
        assert len(module._opened) == 1
    assert len(list(tmp_path.iterdir())) == 3
    module._opened.clear()


def test_nothing_stays_open_in_this_process(tmp_path: Path) -> None:
    work = OpenedOnce(scaled, note_and_open, tmp_path, 1)
    list(LocalEngine(1).results(work, range(3)))
    assert module._opened == {}
    results = LocalEngine(1).results(work, range(3))
    next(results)
    results.close()
    assert module._opened == {}


def test_what_cannot_be_opened_is_told_and_tried_again() -> None:
    def refuse() -> None:
        raise FileNotFoundError("gone")

    work = OpenedOnce(lambda thing, batch: batch, refuse)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="gone"):
            work(1)


def scaled_by_others(thing: tuple[Path, int], batch: int) -> int:
    """Hands out work of its own, that opens something too."""
    work = OpenedOnce(scaled, note_and_open, thing[0] / "inner", thing[1])
    return sum(LocalEngine(1).results(work, [batch, batch]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_that_hands_out_work_keeps_what_it_has_open(jobs: int, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    work = OpenedOnce(scaled_by_others, note_and_open, tmp_path, 3)
    assert list(LocalEngine(jobs).results(work, range(6))) == [6 * n for n in range(6)]
    openings = [path.name.partition("-")[0] for path in tmp_path.iterdir() if path.is_file()]
    assert len(openings) == len(set(openings)) <= jobs
    assert module._opened == {}


@given(st.lists(st.integers(), max_size=30), st.integers(1, 12))
def test_batches_hold_all_items_in_order(items: list[int], size: int) -> None:
    found = list(in_batches(sum, items, size, jobs=1))
    assert [item for batch, _ in found for item in batch] == items
    assert all(result == sum(batch) for batch, result in found)
    assert all(len(batch) == size for batch, _ in found[:-1])


def test_several_processes_give_the_same() -> None:
    items = list(range(50))
    assert list(in_batches(sum, items, 7, jobs=2)) == list(in_batches(sum, items, 7, jobs=1))


def test_a_single_batch_is_done_here() -> None:
    assert [pid for _, pid in in_batches(lambda _: os.getpid(), [1, 2], 5)] == [os.getpid()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_come_through(jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_batches(lambda batch: 1 // batch[0], [1, 0, 2], 1, jobs=jobs))
