"""Processes that work for this one: how they begin, and how they end."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

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
def ctrl_c_kept() -> Iterator[None]:
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
