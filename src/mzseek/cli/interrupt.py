"""Ctrl-C, and being asked to end, at any moment of any command."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

# What asks a command to end, where the system has it.
_ASKING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_AGAIN = 0.25  # seconds until an interrupt that something has swallowed is raised again
_PATIENCE = 1.5  # seconds for a call into a library to come back, before the process is ended
_CLEANING = 10.0  # seconds for cleaning up, which may wait for something that does not end
_TWICE = 0.5  # within that, a second signal is the first one, passed on by somebody else
GOES_ON = "the same command goes on where it was"
_hints: list[str] = []


@contextlib.contextmanager
def can_go_on(hint: str) -> Iterator[None]:
    """Work that can be taken up again: whoever interrupts it is told how."""
    _hints.append(hint)
    yield
    _hints.remove(hint)  # not where the block is left by an error, which is told afterwards


class Interrupts:
    """Turns signals into a `KeyboardInterrupt` in the main thread, as long as it is entered.

    A handler of Python's would not do. RDKit puts one of its own in place of SIGINT's whenever it
    matches a substructure, and leaves it there: Ctrl-C then sets a flag that nobody reads. So the
    signals are blocked, in this thread and in all that come from it, which no handler can undo, and
    one thread does nothing but wait for them. It then raises the interrupt here, and does so again
    until the stack unwinds, since libraries may swallow one. A second Ctrl-C ends the process.

    Child processes are born with the signals blocked: Ctrl-C reaches them too, and would make each
    of them complain. They are ended by this one.

    Attributes
    ----------
    received : int or None
        The signal that has come.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._over = threading.Event()
        self._left = threading.Event()
        self._is_heard = False
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> "Interrupts":
        _hints.clear()
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or not hasattr(signal, "pthread_sigmask"):
            return self  # Python's own handler has to do
        # Those that are ignored, as under nohup, stay so; those that somebody handles, too.
        usual = (signal.SIG_DFL, signal.default_int_handler)
        self._signals = {number for number in _ASKING if signal.getsignal(number) in usual}
        if not self._signals:
            return self
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        # Harmless wherever it goes astray: it is ignored by default.
        self._poke_before = signal.signal(signal.SIGURG, self._raise)
        self._watcher = threading.Thread(target=self._watch, name="signals", daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._left.set()
        if self._watcher is None or self._watcher.ident is None:
            return
        signal.pthread_kill(self._watcher.ident, min(self._signals))
        self._watcher.join(1)
        signal.signal(signal.SIGURG, self._poke_before)
        for number in self._signals:
            signal.signal(number, signal.getsignal(number))  # in place of RDKit's
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def stop(self) -> None:
        """Raise no more: the interrupt has arrived, or the work is done."""
        self._over.set()

    def _watch(self) -> None:
        first = signal.sigwait(self._signals)
        if self._left.is_set():
            return
        self.received = first
        came = time.monotonic()
        threading.Thread(target=self._insist, name="interrupting", daemon=True).start()
        while True:
            signal.sigwait(self._signals)
            if self._left.is_set():
                return
            if time.monotonic() - came > _TWICE:
                self._give_up()

    def _insist(self) -> None:
        main = threading.main_thread().ident
        began = time.monotonic()
        while main is not None:
            signal.pthread_kill(main, signal.SIGURG)
            if self._over.wait(_AGAIN):
                return
            if time.monotonic() - began > (_CLEANING if self._is_heard else _PATIENCE):
                self._give_up()

    def _give_up(self) -> None:
        """End without waiting for anything: leftovers are removed by whoever writes there next."""
        stop_children(wait=False)
        tell_interrupted()
        end_at_once(128 + (self.received or 0))

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        if self.received is None or self._over.is_set():
            return
        self._is_heard = True
        handled = sys.exception()
        while handled is not None:  # it is on its way, and what runs now is cleaning up
            if isinstance(handled, KeyboardInterrupt):
                return
            handled = handled.__context__
        raise KeyboardInterrupt


def tell_interrupted() -> None:
    """Say so in one line, and how the work can be taken up again."""
    hint = f"; {_hints[-1]}" if _hints else ""
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"mzseek: interrupted{hint}", file=sys.stderr, flush=True)


def end_at_once(status: int) -> NoReturn:
    """End this process here and now, with what it has printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if "multiprocessing.util" in sys.modules:
        from multiprocessing import util

        # Else the process that clears up after others complains.
        util._run_finalizers(0)  # type: ignore[attr-defined]
    os._exit(status)


def stop_children(*, wait: bool = True) -> None:
    """End all processes that come from this one, whatever they are at."""
    from mzseek.work.processes import kill_all, kill_workers, stop_workers

    (stop_workers if wait else kill_workers)()
    kill_all(_descendants())  # such as solvers that a library has started


def _descendants() -> set[int]:
    """Processes that come from this one, but those that clear up after others, and end by it."""
    parents: dict[int, int] = {}
    spared = {os.getpid()}
    for path in Path("/proc").glob("[0-9]*") if Path("/proc/self").exists() else ():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended meanwhile
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"resource_tracker" in (path / "cmdline").read_bytes():
                spared.add(int(path.name))
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family - spared
