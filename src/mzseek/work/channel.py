"""How work that is done elsewhere tells whoever watches how far it has got.

Work gets a `Channel` beside its batch. In this process it calls back at once. From a process of
this machine it sends lines of JSON through a socket, and from a cluster to a mailbox there.
"""

import contextlib
import json
import queue
import secrets
import sys
import threading
import time
from abc import ABC, abstractmethod
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from mzseek.work.progress import Progress, Say

_APART = 0.1  # seconds between two messages about one stage: nobody can read them faster
_BACKLOG = 128  # workers that may begin to tell at the same moment
_PATIENCE = 5.0  # seconds in which what was told last must have arrived


class Channel(ABC):
    """What long work is given to tell of itself.

    Attributes
    ----------
    is_elsewhere : bool
        Whether the work is done in a process that was made for it.
    """

    is_elsewhere = True

    @abstractmethod
    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """Tell how far a stage has got."""

    @abstractmethod
    def say(self, line: str) -> None:
        """Tell something in a line."""


class Direct(Channel):
    """To callables of this process."""

    is_elsewhere = False

    def __init__(self, progress: Progress, say: Say) -> None:
        self._progress, self._say = progress, say

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """See `Channel.progress`."""
        self._progress(stage, done, total)

    def say(self, line: str) -> None:
        """See `Channel.say`."""
        self._say(line)


class Sender(Channel):
    """To another process, as lines of JSON; a stage is told of ten times a second at the most."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def progress(self, stage: str, done: int, total: int | None = None) -> None:
        """See `Channel.progress`."""
        now = time.monotonic()
        if done == total or now - self._told.get(stage, 0.0) >= _APART:
            self._told[stage] = now
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


def pass_on(message: str, progress: Progress, say: Say) -> None:
    """Hand a message to whoever watches.

    Examples
    --------
    >>> pass_on('["say", "warning: slow"]', lambda *_: None, print)
    warning: slow
    """
    kind, *said = json.loads(message)
    if kind == "progress":
        progress(*said)
    else:
        say(*said)


class Socket(Sender):
    """To the `Post` of another process of this machine.

    Each process has a connection of its own: one that is killed while it tells something keeps
    nobody else from telling.
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
            if self._connection.poll(_PATIENCE):
                self._connection.recv_bytes()
        self._connection.close()
        self._connection = None


class Post:
    """Where this process gets what its workers tell, as long as it is entered.

    Threads only gather: whoever watches is called by `deliver`, in the caller's own thread.
    """

    def __init__(self) -> None:
        # On Linux a name without a file, of which nothing is left if this process is killed.
        name = f"\0mzseek-{secrets.token_hex(8)}" if sys.platform == "linux" else None
        self._key = secrets.token_bytes(32)
        self._listener = Listener(name, backlog=_BACKLOG)
        self._told: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_closed = False

    def __enter__(self) -> "Post":
        threading.Thread(target=self._accept, name="post", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):  # wakes the thread that waits
            Client(self._listener.address).close()
        self._listener.close()

    def channel(self) -> Socket:
        """What a worker gets to tell by."""
        return Socket(self._listener.address, self._key)

    def deliver(self, progress: Progress, say: Say) -> None:
        """Hand on what has come."""
        with contextlib.suppress(queue.Empty):
            while True:
                pass_on(self._told.get_nowait(), progress, say)

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
                return  # somebody else's
            while message := connection.recv_bytes():
                self._told.put(message.decode())
            connection.send_bytes(b"all is here")
