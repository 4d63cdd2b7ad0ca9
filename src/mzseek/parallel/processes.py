"""Process batches in worker processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from mzseek.core.errors import KilledError
from mzseek.parallel.engine import (
    Channel,
    Engine,
    LocalChannel,
    Log,
    MessageServer,
    Progress,
    SocketChannel,
    in_order,
    no_log,
    silent,
)

_POLL = 0.5  # seconds between looks whether the parent is there
_CLEARING = 2.0  # seconds for the thread that manages workers to end after them


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Start processes in the block; signals that are blocked here are so there, and stay so.

    Python lets two of them through again when it starts the process that clears up after others.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear_ctrl_c() -> None:
    """Undo what RDKit's matching of substructures leaves behind: its own handler of SIGINT."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def restoring_sigint() -> Iterator[None]:
    """Call RDKit in the block; Ctrl-C does afterwards what it did before."""
    try:
        yield
    finally:
        hear_ctrl_c()


def begin_worker(parent: int) -> None:
    """Make a process ready to work for another: Ctrl-C is for that one, whose end is its end."""
    if hasattr(signal, "pthread_sigmask"):
        # Blocked, not ignored: RDKit puts a handler of its own in the place of any other. And
        # before a thread is started, which would else be there to get it.
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGINT})
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process once its parent has, even if that was killed and could tell nobody."""
    if os.name == "nt":  # where a process keeps the number of a parent that is gone
        watched = multiprocessing.parent_process()
        if watched is None:
            return
        watched.join()
    while os.name != "nt" and os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(1)


def kill_workers() -> None:
    """End the processes of the local engine, and wait for nothing."""
    executor = _executor()
    if executor is not None:
        kill_all(executor._processes)


def stop_workers() -> None:
    """End the processes of the local engine at once, whatever they are at, and clear up."""
    executor = _executor()
    if executor is None:
        return
    manager, calls = executor._executor_manager_thread, executor._call_queue
    # Told to kill them itself, loky's thread stumbles over what they had not begun.
    kill_all(executor._processes)
    if executor._result_queue is not None:
        # A worker that dies while it sends a result leaves half of it in the pipe, and loky's
        # thread would wait for the other half: as long as this end is open, somebody may write.
        executor._result_queue._writer.close()
    executor.shutdown(wait=False)
    until = time.monotonic() + _CLEARING
    while manager is not None and manager.is_alive() and time.monotonic() < until:
        manager.join(0.01)
        _drain(calls)


def _executor() -> Any:
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    return None if loky is None else loky._executor


def _drain(calls: Any) -> None:
    """Read what no worker reads any more: the thread that writes it would not end."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        while calls._reader.poll() and os.read(calls._reader.fileno(), 1 << 20):
            pass


class Watch:
    """Looks whether workers are alive, while their results are waited for.

    Loky notices by itself that a worker was killed, but not while it reads a result of which the
    other half never comes.
    """

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._seen: set[int] = set()

    def has_lost_one(self) -> bool:
        """Whether a worker was killed some looks ago, and loky has not said so meanwhile."""
        killed = {
            number
            for number, process in list((self._executor._processes or {}).items())
            if (process.exitcode or 0) < 0
        }
        lost, self._seen = killed & self._seen, killed
        return bool(lost)


def kill_all(processes: Iterable[int]) -> None:
    """End processes by their numbers; those that have ended are no matter."""
    for process in list(processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


Thing = TypeVar("Thing")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

# One at a time in each process: what comes next is another folder, and the one before is done with.
_kept: dict[Hashable, Any] = {}


class OpenedOnce(Generic[Thing, Batch, Result]):
    """Work for an engine that reads something which each process opens once.

    Parameters
    ----------
    work : callable of (thing, batch)
    opener : callable
        Opens the thing.
    key : hashable values
        What the opener gets. A thing that is opened already is taken again for the same key, so
        that it should tell a folder from one made anew in its place.

    Examples
    --------
    >>> work = OpenedOnce(lambda folder, batch: folder + batch, str.upper, "data/")
    >>> with opened_scope():
    ...     [work(batch) for batch in ("a", "b")]
    ['DATA/a', 'DATA/b']
    """

    def __init__(
        self,
        work: Callable[[Thing, Batch], Result],
        opener: Callable[..., Thing],
        *key: Hashable,
    ) -> None:
        self.work, self.opener, self.key = work, opener, key

    def __call__(self, batch: Batch) -> Result:
        """What the work makes of a batch."""
        key = (self.opener, self.key)
        if key not in _kept:
            _kept.clear()
            _kept[key] = self.opener(*self.key)
        return self.work(_kept[key], batch)


@contextmanager
def opened_scope() -> Iterator[None]:
    """Whatever is opened within is let go at the end, and what was open before is open again.

    Work that has something open may itself hand out work: to lose the first at the end of the
    second would open it anew for every batch.
    """
    before = dict(_kept)
    _kept.clear()
    try:
        yield
    finally:
        _kept.clear()
        _kept.update(before)


_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalEngine(Engine):
    """Processes on this machine.

    Parameters
    ----------
    jobs : int, optional
        All cores by default; with one, all is done in this process.
    """

    name = "local"
    stands_for = "processes of this machine"

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or os.cpu_count() or 1

    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """See `Engine.results`."""
        if self.jobs == 1:
            yield from _done_here(work, batches)
        else:
            yield from self._done_by_processes(work, batches)

    def long_results(
        self,
        work: Callable[[Batch, Channel], Result],
        batches: Iterable[Batch],
        *,
        progress: Progress = silent,
        say: Log = no_log,
    ) -> Iterator[Result]:
        """See `Engine.long_results`."""
        if self.jobs == 1:
            yield from _done_here(partial(_told_here, work, LocalChannel(progress, say)), batches)
            return
        with MessageServer() as post:
            deliver = partial(post.deliver, progress, say)
            telling = partial(_told_by_socket, work, post.channel())
            yield from self._done_by_processes(telling, batches, deliver)

    def _done_by_processes(
        self,
        work: Callable[[Batch], Result],
        batches: Iterable[Batch],
        deliver: Callable[[], None] | None = None,
    ) -> Iterator[Result]:
        """Results in order; work that delivers something meanwhile is long."""
        from joblib.externals.loky import BrokenProcessPool, get_reusable_executor

        threads = str(max((os.cpu_count() or 1) // self.jobs, 1))
        env = {name: os.environ.get(name, threads) for name in _THREADS}
        with signals_kept():
            executor = get_reusable_executor(
                max_workers=self.jobs, timeout=300, env=env,
                initializer=begin_worker, initargs=(os.getpid(),),
            )  # fmt: skip

        def submit(batch: Batch) -> Any:
            with signals_kept():  # processes are started here, and now and then anew
                return executor.submit(work, batch)

        watch = Watch(executor)

        def check() -> None:
            if watch.has_lost_one():
                stop_workers()
                raise BrokenProcessPool

        ended = False
        try:
            yield from in_order(submit, batches, self.jobs, deliver, check)
            ended = True
        except BrokenProcessPool as error:
            raise KilledError(
                f"one of {self.jobs} processes was killed from outside (is there enough memory? "
                "fewer processes take less)"
            ) from error
        except KeyboardInterrupt:
            stop_workers()  # nobody waits for what they are at
            raise
        finally:
            if deliver is not None and not ended:
                stop_workers()


def _done_here(work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
    with opened_scope():
        for batch in batches:
            try:
                done = work(batch)
            finally:
                hear_ctrl_c()
            yield done


def _told_here(work: Callable[[Batch, Channel], Result], channel: Channel, batch: Batch) -> Result:
    return work(batch, channel)


def _told_by_socket(
    work: Callable[[Batch, Channel], Result], channel: SocketChannel, batch: Batch
) -> Result:
    try:
        return work(batch, channel)
    finally:
        channel.close()


Item = TypeVar("Item")


def in_batches(
    work: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    size: int,
    jobs: int | None = None,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """Each batch of ``items`` with what ``work`` made of it.

    ``jobs`` processes at the most, all cores by default; a single batch is done here.
    """
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    engine = LocalEngine(1 if len(batches) <= 1 else jobs)
    yield from zip(batches, engine.results(work, batches), strict=True)
