import os
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
from mzseek.parallel.engine import in_order

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


def test_no_batches_give_no_results(engine: Engine) -> None:
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


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        InputError("library.smi: line 3", "has no molecule"),
        DatabaseError("store: is no molecule database"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_the_work_come_through_as_they_are(engine: Engine, error: Exception) -> None:
    def fails_late(batch: int) -> int:
        if batch == 5:
            raise error
        return batch

    got: list[int] = []
    with pytest.raises(type(error)) as caught:
        got.extend(engine.results(fails_late, range(20)))
    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)


def test_errors_of_the_batches_come_through(engine: Engine) -> None:
    def batches() -> Iterator[int]:
        yield 1
        raise InputError("molecules.smi", "is damaged")

    with pytest.raises(InputError, match=r"molecules\.smi: is damaged"):
        list(engine.results(lambda batch: batch, batches()))


# Long work.


def counts(batch: int, channel: Channel) -> int:
    """Says how far it has got, to where it was asked from."""
    for done in range(1, 4):
        channel.progress(f"piece {batch}", done, 3)
    channel.say(f"piece {batch} is done")
    return batch * batch


def test_long_work_gives_results_in_order_and_tells_of_itself(engine: Engine) -> None:
    told: list[tuple] = []
    lines: list[str] = []
    found = engine.long_results(
        counts, range(5), progress=lambda *facts: told.append(facts), say=lines.append
    )
    assert list(found) == [0, 1, 4, 9, 16]
    assert {facts for facts in told if facts[1] == 3} == {(f"piece {n}", 3, 3) for n in range(5)}
    assert sorted(lines) == [f"piece {n} is done" for n in range(5)]


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


def test_long_work_needs_not_watch(engine: Engine) -> None:
    assert list(engine.long_results(counts, range(3))) == [0, 1, 4]
    assert list(engine.long_results(counts, [])) == []


# The order, without processes.


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
