"""Engines that process batches: the interface, the order of results, and progress from workers."""

import contextlib
import ctypes
import json
import os
import platform
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from multiprocessing import util
from pathlib import Path
from typing import Any, Protocol, TypeVar

Log = Callable[[str], None]  # gets a line at a time
Message = tuple[Any, ...]  # a method of a channel, and its arguments


class Progress(Protocol):
    """Called with the stage's name, what is done, and the total where it is known."""

    def __call__(self, stage: str, done: int, total: int | None = None) -> None:
        """Show or note it."""


def silent(stage: str, done: int, total: int | None = None) -> None:
    """Show no progress."""


def no_log(line: str) -> None:
    """Drop the line."""


_INTERVAL = 0.1  # seconds between two messages about one stage: nobody can read them faster


class Channel:
    """Progress and log of long work: callables of this process, unless ``is_elsewhere``."""

    is_elsewhere = False  # whether the work is done in a process that was made for it

    def __init__(self, progress: Progress, say: Log) -> None:
        self._progress, self._say = progress, say

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """Report how far a stage has got."""
        self._progress(stage, done, total)

    def say(self, line: str) -> None:
        """Report a line."""
        self._say(line)


class Sender(Channel):
    """Channel of a worker process: ``send`` gets ten messages a second and stage at the most."""

    is_elsewhere = True

    def __init__(self, send: Callable[[Message], object]) -> None:
        self._send = send
        self._sent: dict[str, float] = {}

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """See `Channel.progress`."""
        now = time.monotonic()
        if done == total or now - self._sent.get(stage, 0.0) >= _INTERVAL:
            self._sent[stage] = now
            self._send(("progress", stage, done, total))

    def say(self, line: str) -> None:
        """See `Channel.say`."""
        self._send(("say", line))


def dispatch(message: Sequence[Any], progress: Progress, say: Log) -> None:
    """Call ``progress`` or ``say`` with a message of a `Sender`.

    Examples
    --------
    >>> dispatch(("say", "warning: slow"), lambda *_: None, print)
    warning: slow
    """
    kind, *arguments = message
    (progress if kind == "progress" else say)(*arguments)


class MessageFolder:
    """Messages of worker processes of this machine, in a temporary folder while it is entered.

    Each process appends lines of JSON to a file of its own: one that is killed while it writes
    disturbs no other.
    """

    def __enter__(self) -> "MessageFolder":
        # Below a folder that is removed also when this process ends at once.
        self._folder = Path(tempfile.mkdtemp(dir=util.get_temp_dir()))
        self._read: Counter[str] = Counter()  # bytes of each file
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def channel(self) -> Sender:
        """Return a channel for workers."""
        return Sender(partial(_append, self._folder))

    def deliver(self, progress: Progress, say: Log) -> None:
        """Dispatch the messages that have arrived."""
        for path in sorted(self._folder.iterdir()):
            with path.open("rb") as file:
                file.seek(self._read[path.name])
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path.name] += len(whole)
            for line in whole.splitlines():
                with contextlib.suppress(ValueError):  # cut by a full disk
                    dispatch(json.loads(line), progress, say)


def _append(folder: Path, message: Message) -> None:
    """Append a message to the file of this process; work goes on where nobody reads any more."""
    with contextlib.suppress(OSError), (folder / str(os.getpid())).open("ab") as file:
        file.write(json.dumps(message).encode() + b"\n")


# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Ask the C library to reuse large blocks instead of returning them to the system.

    By default glibc maps every tensor above 32 MB anew, and the system fills it with zeros page by
    page: that made a gradient of 41 MB cost 25 ms where writing it takes 1. Memory stays with the
    process until it ends, and its peak is higher by a few of the largest tensors.

    Returns whether this C library could be asked; elsewhere nothing changes but the speed.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 64 << 20))
    return all(mallopt(name, value) for name, value in settings)


Batch = TypeVar("Batch")
Result = TypeVar("Result")

AHEAD = 4  # batches a process that are begun before their results are needed
_POLL = 0.2  # seconds between two deliveries of messages
_CHECK = 2.0  # seconds between two checks whether results can come at all


class Engine(ABC):
    """Runs a function on batches, in worker processes or on a cluster."""

    name: str
    stands_for: str
    shares_files: bool = True  # whether workers see the temporary files of this process

    @abstractmethod
    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """Yield the result of ``work`` for each batch, in order."""

    @abstractmethod
    def long_results(
        self,
        work: Callable[[Batch, Channel], Result],
        batches: Iterable[Batch],
        *,
        progress: Progress = silent,
        say: Log = no_log,
    ) -> Iterator[Result]:
        """Yield the result of each of a few batches that take long, such as training a run.

        ``work`` gets a channel beside its batch, whose messages are passed to ``progress`` and
        ``say`` while results are waited for. A worker has one batch at a time. A failure is raised
        at once: no other batch is begun, and those at work are ended.
        """


def in_order(
    submit: Callable[[Batch], "Future[Result]"],
    batches: Iterable[Batch],
    jobs: int,
    deliver: Callable[[], None] | None = None,
    check: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """Yield results in the order of their batches, which are submitted as there is room for them.

    Parameters
    ----------
    submit : callable of a batch
        Begins it and returns its future.
    jobs : int
        Batches that are worked on at a time.
    deliver : callable, optional
        Called while results are waited for. With it the work is taken to be long: none is begun
        before a worker is free, and a failure is raised at once instead of in its turn.
    check : callable, optional
        Called every few seconds without a result; raises if none can come.
    """
    pending: deque[Future[Result]] = deque()
    source = iter(batches)
    checked = time.monotonic()
    is_over, at_once = False, AHEAD * jobs if deliver is None else jobs

    def failed() -> "Future[Result] | None":
        ended = (future for future in pending if future.done())
        return next((future for future in ended if future.exception() is not None), None)

    def can_submit() -> bool:
        at_work = sum(not future.done() for future in pending)
        return len(pending) < AHEAD * jobs and at_work < at_once and failed() is None

    try:
        while True:
            while not is_over and can_submit():
                try:
                    batch = next(source)
                except StopIteration:
                    is_over = True
                else:
                    pending.append(submit(batch))
            if not pending:
                return
            is_done, failure = pending[0].done(), failed()
            if deliver is not None:
                deliver()
                if failure is not None:
                    failure.result()
            if is_done:
                yield pending.popleft().result()
            else:
                at_work = [future for future in pending if not future.done()]
                ended, _ = wait(at_work, _CHECK if deliver is None else _POLL, FIRST_COMPLETED)
                if check is not None and not ended and time.monotonic() - checked > _CHECK:
                    check()
                    checked = time.monotonic()
    finally:
        for future in pending:
            future.cancel()
