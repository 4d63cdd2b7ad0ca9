"""Engines that process batches: the interface, the order of results, and progress from workers."""

import contextlib
import ctypes
import json
import platform
import queue
import secrets
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Protocol, TypeVar

Log = Callable[[str], None]  # gets a line at a time


class Progress(Protocol):
    """Called with the stage's name, what is done, and the total where it is known."""

    def __call__(self, stage: str, done: int, total: int | None = None) -> None:
        """Show or note it."""


def silent(stage: str, done: int, total: int | None = None) -> None:
    """Show no progress."""


def no_log(line: str) -> None:
    """Drop the line."""


_INTERVAL = 0.1  # seconds between two messages about one stage: nobody can read them faster
_BACKLOG = 128  # workers that may connect at the same moment
_CLOSING = 5.0  # seconds in which the last messages must have arrived


class Channel:
    """What long work reports to: callables of this process, unless ``is_elsewhere``."""

    is_elsewhere = False  # whether the work is done in a process that was made for it

    def __init__(self, progress: Progress, say: Log) -> None:
        self._progress, self._say = progress, say

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """Report how far a stage has got."""
        self._progress(stage, done, total)

    def say(self, line: str) -> None:
        """Report a line."""
        self._say(line)


class Sender(Channel, ABC):
    """Channel to another process, as lines of JSON; ten a second and stage at the most."""

    is_elsewhere = True

    def __init__(self) -> None:
        self._sent: dict[str, float] = {}

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """See `Channel.progress`."""
        now = time.monotonic()
        if done == total or now - self._sent.get(stage, 0.0) >= _INTERVAL:
            self._sent[stage] = now
            self.send(json.dumps(["progress", stage, done, total]))

    def say(self, line: str) -> None:
        """See `Channel.say`."""
        self.send(json.dumps(["say", line]))

    @abstractmethod
    def send(self, message: str) -> None:
        """Send a message."""

    @abstractmethod
    def close(self) -> None:
        """Wait until all that was sent has arrived."""


def dispatch(message: str, progress: Progress, say: Log) -> None:
    """Call ``progress`` or ``say`` with a message of a `Sender`.

    Examples
    --------
    >>> dispatch('["say", "warning: slow"]', lambda *_: None, print)
    warning: slow
    """
    kind, *arguments = json.loads(message)
    (progress if kind == "progress" else say)(*arguments)


class SocketChannel(Sender):
    """Channel to the `MessageServer` of another process of this machine.

    Each process has its own connection: one that is killed while sending blocks no other.
    """

    def __init__(self, address: Any, key: bytes) -> None:
        super().__init__()
        self._address, self._key = address, key
        self._connection: Connection[Any, Any] | None = None

    def send(self, message: str) -> None:
        """Send a message; the work goes on where nobody listens any more."""
        with contextlib.suppress(OSError, EOFError):
            if self._connection is None:
                self._connection = Client(self._address)
                self._connection.send_bytes(self._key)
            self._connection.send_bytes(message.encode())

    def close(self) -> None:
        """See `Sender.close`."""
        if self._connection is None:
            return
        with contextlib.suppress(OSError, EOFError):
            self._connection.send_bytes(b"")
            if self._connection.poll(_CLOSING):
                self._connection.recv_bytes()
        self._connection.close()
        self._connection = None


class MessageServer:
    """Receives the messages of worker processes while it is entered.

    Threads only gather them: callbacks are called by `deliver`, in the caller's thread.
    """

    def __init__(self) -> None:
        # On Linux a name without a file, of which nothing is left if this process is killed.
        name = f"\0mzseek-{secrets.token_hex(8)}" if sys.platform == "linux" else None
        self._key = secrets.token_bytes(32)
        self._listener = Listener(name, backlog=_BACKLOG)
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_closed = False

    def __enter__(self) -> "MessageServer":
        threading.Thread(target=self._accept, name="messages", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):  # wakes the thread that waits
            Client(self._listener.address).close()
        self._listener.close()

    def channel(self) -> SocketChannel:
        """Return a channel for a worker."""
        return SocketChannel(self._listener.address, self._key)

    def deliver(self, progress: Progress, say: Log) -> None:
        """Dispatch the messages that have arrived."""
        with contextlib.suppress(queue.Empty):
            while True:
                dispatch(self._messages.get_nowait(), progress, say)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            if self._is_closed:
                connection.close()
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: "Connection[Any, Any]") -> None:
        with contextlib.suppress(OSError, EOFError), connection:
            if not secrets.compare_digest(connection.recv_bytes(len(self._key)), self._key):
                return  # another program's
            while message := connection.recv_bytes():
                self._messages.put(message.decode())
            connection.send_bytes(b"all is here")


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
    """Something that works on batches."""

    name: str
    stands_for: str

    @abstractmethod
    def results(
        self, work: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[Result]:
        """Yield what ``work`` makes of each batch, in order."""

    @abstractmethod
    def long_results(
        self,
        work: Callable[[Batch, Channel], Result],
        batches: Iterable[Batch],
        *,
        progress: Progress = silent,
        say: Log = no_log,
    ) -> Iterator[Result]:
        """As `results`, for few batches that take long, such as training a run.

        ``work`` gets a channel beside its batch; what it reports there reaches ``progress`` and
        ``say`` while results are waited for. A worker has one batch at a time. When one fails, that
        is raised at once, no other is begun, and those at work are ended.
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
