"""Process batches in worker processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from mzseek.core.errors import KilledError
from mzseek.parallel.engine import (
    Channel,
    Engine,
    Log,
    MessageFolder,
    Progress,
    in_order,
    no_log,
    silent,
)

_POLL = 0.5  # seconds between looks whether the parent is there
_CLEARING = 2.0  # seconds for the thread that manages workers to end after them


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Start processes in the block with the present mask of blocked signals, and keep that mask.

    Python unblocks two of them when it starts its resource tracker.
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
    """Restore the handler of SIGINT, which RDKit's substructure matching replaces."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def restoring_sigint() -> Iterator[None]:
    """Call RDKit in the block; afterwards the handler of Ctrl-C is what it was."""
    try:
        yield
    finally:
        hear_ctrl_c()


def begin_worker(parent: int) -> None:
    """Initialise a worker: Ctrl-C is left to its parent, and it ends when that ends."""
    if hasattr(signal, "pthread_sigmask"):
        # Blocked, not ignored: RDKit installs its own handler. And before a thread is started,
        # which would receive it otherwise.
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGINT})
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process once its parent has ended, even if that was killed."""
    if os.name == "nt":  # where a process keeps the number of a parent that is gone
        watched = multiprocessing.parent_process()
        if watched is None:
            return
        watched.join()
    while os.name != "nt" and os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(1)


def kill_workers() -> None:
    """Kill the processes of the local engine without waiting."""
    executor = _executor()
    if executor is not None:
        kill_all(executor._processes)


def stop_workers() -> None:
    """Kill the processes of the local engine at once, and clean up."""
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
    """Read what no worker reads any more; otherwise the thread that writes it would not end."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        while calls._reader.poll() and os.read(calls._reader.fileno(), 1 << 20):
            pass


def kill_all(processes: Iterable[int]) -> None:
    """Kill processes by their ids; those that have ended are ignored."""
    for process in list(processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


Resource = TypeVar("Resource")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

# One at a time in each process.
_opened: dict[Hashable, Any] = {}


class OpenedOnce(Generic[Resource, Batch, Result]):
    """Function of a batch that needs a resource, which each process opens once.

    Calls ``work(resource, batch)`` with ``resource = opener(*key)``. A resource stays open for
    calls with the same key, so the key should differ for a folder that replaces another.

    Examples
    --------
    >>> work = OpenedOnce(lambda folder, batch: folder + batch, str.upper, "data/")
    >>> with opened_scope():
    ...     [work(batch) for batch in ("a", "b")]
    ['DATA/a', 'DATA/b']
    """

    def __init__(
        self,
        work: Callable[[Resource, Batch], Result],
        opener: Callable[..., Resource],
        *key: Hashable,
    ) -> None:
        self.work, self.opener, self.key = work, opener, key

    def __call__(self, batch: Batch) -> Result:
        """Return the result of the work for a batch."""
        key = (self.opener, self.key)
        if key not in _opened:
            _opened.clear()
            _opened[key] = self.opener(*self.key)
        return self.work(_opened[key], batch)


@contextmanager
def opened_scope() -> Iterator[None]:
    """Close resources that are opened in the block, and restore those that were open before.

    Work with an open resource may use an engine itself, and would otherwise open its resource anew
    for every batch.
    """
    before = dict(_opened)
    _opened.clear()
    try:
        yield
    finally:
        _opened.clear()
        _opened.update(before)


_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalEngine(Engine):
    """Processes on this machine, one for each core by default; with one, this process works."""

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
            channel = Channel(progress, say)
            yield from _done_here(lambda batch: work(batch, channel), batches)
            return
        with MessageFolder() as messages:
            channel, deliver = messages.channel(), partial(messages.deliver, progress, say)
            yield from self._done_by_processes(lambda batch: work(batch, channel), batches, deliver)

    def _done_by_processes(
        self,
        work: Callable[[Batch], Result],
        batches: Iterable[Batch],
        deliver: Callable[[], None] | None = None,
    ) -> Iterator[Result]:
        """Yield results in order; with ``deliver`` as `Engine.long_results` promises."""
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

        killed_before: set[int] = set()

        def check() -> None:
            # Loky notices a killed worker, but not while it reads a result whose other half never
            # comes: then the worker is still listed at the next check.
            nonlocal killed_before
            processes = list((executor._processes or {}).items())
            killed = {number for number, process in processes if (process.exitcode or 0) < 0}
            if killed & killed_before:
                stop_workers()
                raise BrokenProcessPool
            killed_before = killed

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
            stop_workers()  # nobody waits for their results
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


Item = TypeVar("Item")


def in_batches(
    work: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    size: int,
    jobs: int | None = None,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """Yield each batch of ``items`` with the result of ``work`` for it.

    Takes ``jobs`` processes at the most, all cores by default; this one for a single batch.
    """
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    engine = LocalEngine(1 if len(batches) <= 1 else jobs)
    yield from zip(batches, engine.results(work, batches), strict=True)


def in_threads(work: Callable[[int], None], count: int, threads: int | None = None) -> None:
    """Call ``work`` with 0 to ``count`` − 1 in threads, for functions that release the GIL.

    Takes as many as ``OMP_NUM_THREADS`` allows by default, or else all cores of this process.
    """
    allowed = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if threads is None and allowed.isdecimal():
        threads = max(int(allowed), 1)
    if threads is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        threads = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    if min(threads, count) <= 1:
        for index in range(count):
            work(index)
        return
    with ThreadPoolExecutor(min(threads, count)) as pool:
        list(pool.map(work, range(count)))
