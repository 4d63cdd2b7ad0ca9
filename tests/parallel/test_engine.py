import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import DatabaseError, InputError
from mzseek.parallel import Channel, Engine, LocalEngine, RayEngine
from mzseek.parallel import engine as module
from mzseek.parallel.engine import MessageFolder, Sender, in_order

RAY = pytest.mark.slow  # a cluster takes seconds to start

ENGINES: dict[str, Callable[[], Engine]] = {
    "one process": lambda: LocalEngine(1),
    "two processes": lambda: LocalEngine(2),
    "ray": lambda: RayEngine(2),
}


@pytest.fixture(params=["one process", "two processes", pytest.param("ray", marks=RAY)])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return ENGINES[request.param]()


def test_results_come_in_the_order_of_the_batches(engine: Engine) -> None:
    def slow_at_first(batch: int) -> int:
        time.sleep(0.2 if batch == 0 else 0.001)
        return batch * batch

    assert list(engine.results(slow_at_first, range(30))) == [n * n for n in range(30)]
    assert list(engine.results(len, [])) == []


def test_batches_are_taken_a_few_ahead_at_the_most(engine: Engine) -> None:
    taken: list[int] = []
    lock = threading.Lock()

    def batches() -> Iterator[int]:
        for number in count():
            with lock:
                taken.append(number)
            yield number

    results = engine.results(lambda batch: batch, batches())
    assert list(islice(results, 3)) == [0, 1, 2]
    time.sleep(0.3)
    assert len(taken) <= 3 + 2 * module.AHEAD * 2
    assert next(results) == 3
    results.close()


def test_errors_of_the_work_and_of_the_batches_come_through(engine: Engine) -> None:
    for error in (ValueError("plain"), InputError("library.smi: line 3", "has no molecule")):

        def fails_late(batch: int, error: Exception = error) -> int:
            if batch == 5:
                raise error
            return batch

        with pytest.raises(type(error)) as caught:
            list(engine.results(fails_late, range(20)))
        assert type(caught.value) is type(error)
        assert str(caught.value) == str(error)

    def batches() -> Iterator[int]:
        yield 1
        raise InputError("molecules.smi", "is damaged")

    with pytest.raises(InputError, match=r"molecules\.smi: is damaged"):
        list(engine.results(lambda batch: batch, batches()))


def counts(batch: int, channel: Channel) -> int:
    for done in range(1, 4):
        channel.progress(f"piece {batch}", done, 3)
    channel.say(f"piece {batch} is done")
    return batch * batch


def test_long_work_gives_results_in_order_and_reports_its_progress(engine: Engine) -> None:
    calls: list[tuple] = []
    lines: list[str] = []
    results = engine.long_results(
        counts, range(5), progress=lambda *call: calls.append(call), say=lines.append
    )
    assert list(results) == [0, 1, 4, 9, 16]
    assert {call for call in calls if call[1] == 3} == {(f"piece {n}", 3, 3) for n in range(5)}
    assert sorted(lines) == [f"piece {n} is done" for n in range(5)]
    assert list(engine.long_results(counts, [])) == []


def test_long_work_is_heard_before_it_ends(engine: Engine, tmp_path: Path) -> None:
    """It ends when its own word has come back to it."""

    def waits(name: str, channel: Channel) -> bool:
        channel.progress(name, 1, 10)
        until = time.monotonic() + 60
        while not (tmp_path / name).exists() and time.monotonic() < until:
            time.sleep(0.02)
        return (tmp_path / name).exists()

    def note(stage: str, done: int, total: int | None = None) -> None:
        (tmp_path / stage).touch()

    assert list(engine.long_results(waits, ["a", "b", "c"], progress=note)) == [True] * 3


@pytest.mark.slow
def test_when_long_work_fails_no_other_is_begun(engine: Engine, tmp_path: Path) -> None:
    """Also where an earlier piece takes its time."""
    here = os.getpid()

    def fails(batch: int, channel: Channel) -> int:
        (tmp_path / str(batch)).touch()
        if batch == 1:
            raise DatabaseError("runs/one: has failed")
        if os.getpid() != here:
            time.sleep(60 if batch == 0 else 0.1)
        return batch

    begun = time.monotonic()
    with pytest.raises(DatabaseError, match="runs/one: has failed"):
        list(engine.long_results(fails, range(6)))
    assert time.monotonic() - begun < 30
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1"}
    assert list(engine.results(abs, [-1, 2])) == [1, 2]


def submitted(batch: int) -> Future[int]:
    future: Future[int] = Future()
    if batch >= 0:
        future.set_result(batch)
    else:
        future.set_exception(ValueError(f"batch {batch}"))
    return future


@given(st.lists(st.integers(0, 9)), st.integers(1, 5), st.booleans())
def test_results_are_those_of_the_batches_in_order(batches, jobs: int, is_long: bool) -> None:
    deliver = (lambda: None) if is_long else None
    assert list(in_order(submitted, batches, jobs, deliver)) == batches


def test_after_a_failure_nothing_is_begun_and_what_came_before_is_given() -> None:
    taken: list[int] = []

    def submit(batch: int) -> Future[int]:
        taken.append(batch)
        return submitted(batch)

    found: list[int] = []
    with pytest.raises(ValueError, match="batch -3"):
        found.extend(in_order(submit, [5, 6, -3, 7, 8, 9], 2))
    assert found in ([], [5, 6])  # `extend` may lose what it was given before an error
    assert taken == [5, 6, -3]


def test_long_work_is_begun_when_a_worker_is_free() -> None:
    futures: list[Future[int]] = []
    at_once: list[int] = []

    def submit(batch: int) -> Future[int]:
        futures.append(Future())
        return futures[-1]

    def deliver() -> None:
        """As time goes by: the last of those at work ends."""
        at_work = [future for future in futures if not future.done()]
        at_once.append(len(at_work))
        if at_work:
            at_work[-1].set_result(len(futures))

    assert len(list(in_order(submit, range(7), 2, deliver))) == 7
    assert max(at_once) == 2
    assert at_once[:5] == [2] * 5  # though the first of them is at work all the while


def received(messages: MessageFolder) -> tuple[list[tuple], list[str]]:
    calls: list[tuple] = []
    lines: list[str] = []
    messages.deliver(lambda *call: calls.append(call), lines.append)
    return calls, lines


def test_a_channel_of_this_process_calls_at_once() -> None:
    calls: list[object] = []
    channel = Channel(lambda *call: calls.append(call), calls.append)
    channel.progress("training", 3, 10)
    channel.say("warning: slow")
    assert calls == [("training", 3, 10), "warning: slow"]
    assert not channel.is_elsewhere


def test_a_stage_is_reported_ten_times_a_second_and_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    messages: list[tuple] = []
    channel = Sender(messages.append)
    for done in range(1, 101):
        channel.progress("a", done, 100)
        channel.progress("b", done)
        clock[0] += 0.001
    assert [message[1:] for message in messages] == [("a", 1, 100), ("b", 1, None), ("a", 100, 100)]
    assert channel.is_elsewhere


def test_messages_arrive_whole_in_order_and_once(tmp_path: Path) -> None:
    with MessageFolder() as messages:
        channel = pickle.loads(pickle.dumps(messages.channel()))
        for number in range(500):
            channel.say(str(number))
        assert received(messages) == ([], [str(number) for number in range(500)])
        channel.progress('über, "run"\n', 1, 1)
        assert received(messages) == ([('über, "run"\n', 1, 1)], [])
        assert received(messages) == ([], [])
        (messages._folder / "1").write_bytes(b'["say", "a full di\n["say", "b"]\n["say", "no')
        assert received(messages) == ([], ["b"])
        folder = messages._folder
    assert not folder.exists()
    channel.say("nobody reads it")  # and nothing is raised


def test_several_threads_report_at_once() -> None:
    def report(name: str) -> None:
        channel = messages.channel()
        for number in range(100):
            channel.say(f"{name}{number}")

    with MessageFolder() as messages:
        threads = [threading.Thread(target=report, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = received(messages)[1]
    assert len(lines) == 400
    for name in "abcd":
        assert [line for line in lines if line[0] == name] == [f"{name}{n}" for n in range(100)]


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


@pytest.mark.parametrize("library", ["", "musl", "glibc"])
def test_a_c_library_that_cannot_be_asked_is_no_error(library: str, monkeypatch) -> None:
    def fail(name: str) -> None:
        assert library == "glibc"
        raise OSError("absent")

    monkeypatch.setattr(module.platform, "libc_ver", lambda: (library, "2.36"))
    monkeypatch.setattr(module.ctypes, "CDLL", fail)
    assert module.keep_freed_memory() is False


@pytest.mark.skipif(module.platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.slow
def test_freed_memory_is_used_again() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PAGE_FAULTS],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(result.stdout) < 1000  # anew each time it would be 12,000 pages a tensor
