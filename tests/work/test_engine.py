import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import pytest

from mzseek.chem import standardise
from mzseek.database import Database, build_database, parts
from mzseek.database.inputs import file_sources
from mzseek.database.negatives import Truth, mine
from mzseek.datasets.demo.molecules import demo_molecules
from mzseek.errors import DatabaseError, InputError, MzseekError
from mzseek.work import Engine, LocalEngine, RayEngine, engine_named
from mzseek.work import engine as module
from mzseek.work.engine import stop_workers

RAY = pytest.mark.slow  # a cluster takes seconds to start


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray cluster of two workers on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


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
    assert len(taken) <= 3 + 2 * module._AHEAD * 2
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


def test_one_job_works_in_this_process() -> None:
    assert set(LocalEngine(1).results(lambda _: os.getpid(), range(3))) == {os.getpid()}
    assert os.getpid() not in set(LocalEngine(2).results(lambda _: os.getpid(), range(3)))
    assert LocalEngine().jobs == os.cpu_count()


def test_engines_by_name() -> None:
    assert isinstance(engine_named("local", 3), LocalEngine)
    ray = engine_named("ray", 3, "somewhere:6379")
    assert isinstance(ray, RayEngine)
    assert (ray.jobs, ray.address) == (3, "somewhere:6379")
    with pytest.raises(MzseekError, match="engine 'dask' is unknown, expected one of: local, ray"):
        engine_named("dask")
    with pytest.raises(MzseekError, match="engine 'local' has no address"):
        engine_named("local", address="somewhere:6379")


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MzseekError, match=r"Ray is not installed: pip install 'mzseek\[cluster\]'"):
        list(RayEngine().results(len, ["a"]))


# A cluster gives the same bytes as this process.


@pytest.fixture
def molecules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parts, "BATCH", 10)
    monkeypatch.setattr(parts, "CHUNK", 40)
    path = tmp_path / "molecules.smi"
    path.write_text("".join(f"{each.smiles}\n" for each in demo_molecules(0, 200)))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def mined(database: Database, engine: Engine) -> list[tuple]:
    table = database.query("SELECT mass, formula, key, fingerprint FROM molecules")
    truths = [Truth(number, *row.values()) for number, row in enumerate(table.to_pylist())]
    return [(each.number, each.rows.tobytes(), each.similarities.tobytes(), each.total)
            for each in mine(database, truths, keep=8, ppm=2e4, engine=engine)]  # fmt: skip


@RAY
@pytest.mark.usefixtures("cluster")
def test_a_build_and_its_negatives_on_a_cluster_are_those_of_this_process(
    molecules: Path, tmp_path: Path
) -> None:
    sources = file_sources([molecules])
    here = build_database(sources, tmp_path / "here", engine=LocalEngine(1))
    there = build_database(sources, tmp_path / "there", engine=RayEngine())
    assert contents(there.folder) == contents(here.folder)
    assert mined(there, RayEngine()) == mined(here, LocalEngine(1))


class Deadly(RayEngine):
    """A cluster on which the worker that gets the sixth batch is killed at the first try."""

    def __init__(self, marker: Path) -> None:
        super().__init__(2)
        self.marker = marker

    def results(self, work, batches):
        marker = self.marker

        def task(numbered):
            number, batch = numbered
            if number == 5 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(batch)

        yield from super().results(task, enumerate(batches))


@RAY
@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_does_not_change_the_results(molecules: Path, tmp_path: Path) -> None:
    sources = file_sources([molecules])
    here = build_database(sources, tmp_path / "here", engine=LocalEngine(1))
    there = build_database(sources, tmp_path / "there", engine=Deadly(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert contents(there.folder) == contents(here.folder)


@RAY
@pytest.mark.usefixtures("cluster")
def test_a_cluster_that_runs_is_left_running() -> None:
    import ray

    assert list(RayEngine().results(len, ["a", "bb"])) == [1, 2]
    assert ray.is_initialized()


def test_a_process_that_is_killed_is_told_in_words() -> None:
    def dies(batch: int) -> int:
        if batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    with pytest.raises(MzseekError, match="one of 2 processes was killed from outside"):
        list(LocalEngine(2).results(dies, range(6)))
    assert list(LocalEngine(2).results(abs, [-1, 2])) == [1, 2]


# Ctrl-C.


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


def test_processes_leave_ctrl_c_to_the_one_that_they_work_for() -> None:
    def blocked(_: int) -> set[int]:
        from mzseek.chem import standardise

        standardise("CC(=O)[O-].[Na+]")  # RDKit puts a handler of its own in place
        os.kill(os.getpid(), signal.SIGINT)
        return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}

    assert list(LocalEngine(2).results(blocked, range(4))) == [{signal.SIGINT}] * 4


def test_signals_that_are_blocked_stay_so_while_processes_are_started() -> None:
    stop_workers()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        list(LocalEngine(2).results(abs, [-1, 2, -3]))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_work_leaves_no_handler_of_signals_behind() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    list(LocalEngine(1).results(standardise, ["CC(=O)[O-].[Na+]", "C[NH3+].[Cl-]"]))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(KeyboardInterrupt):  # not lost to the handler that RDKit has put in place
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
