"""Error handling of the command line: every exception or signal becomes one line and a status."""

import contextlib
import os
import platform
import shlex
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from mzseek.core.errors import MzseekError
from mzseek.core.text import visible
from mzseek.version import versions

BAD_INPUT = 2
UNEXPECTED = 70  # as EX_SOFTWARE of sysexits.h
RESUME_SAME_COMMAND = "the same command goes on where it was"
_MAX_LINE = 2000  # characters
_PACKAGES = (
    "typer", "rich", "numpy", "scipy", "rdkit", "pyarrow", "duckdb",
    "joblib", "torch", "ray",
)  # fmt: skip
# Signals that end a command, where the system has them.
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_RAISE_AGAIN = 0.25  # seconds until an interrupt that a library swallowed is raised again
_CALL_TIMEOUT = 1.5  # seconds for a call into a library to return before the process is ended
_CLEANUP_TIMEOUT = 10.0  # seconds for cleaning up, which may wait for something that does not end
_SAME_SIGNAL = 0.5  # seconds within which a second signal is the first one, passed on by a parent
_hints: list[str] = []


def run_and_exit() -> NoReturn:
    """Run the command that ``sys.argv`` names, and end this process."""
    status, was_interrupted = run_command()
    if was_interrupted:
        exit_now(status)  # all is cleaned up; libraries such as torch take seconds to shut down
    sys.exit(status)


def run_command() -> tuple[int, bool]:
    """Run the command that ``sys.argv`` names; return its status and whether it was interrupted."""
    if hasattr(sys.stdout, "reconfigure"):  # for names that the terminal has no letters for
        sys.stdout.reconfigure(errors="backslashreplace")
    with Interrupts() as interrupts:
        try:
            status = _status()
            interrupts.stop()
        except KeyboardInterrupt:
            interrupts.stop()
            status = 130
        if interrupts.received is not None:
            status = 128 + interrupts.received
        was_interrupted = interrupts.received is not None or status == 130
        if was_interrupted:
            stop_children()
            report_interrupt()
    return status, was_interrupted


def _status() -> int:
    """Run the command, print the reason of a failure, and return the exit status."""
    import typer

    from mzseek.cli.app import app

    try:
        status = app(prog_name="mzseek", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except MzseekError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return _broken_pipe()
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # raised by typer
            return _broken_pipe()
        return stop.code if isinstance(stop.code, int) else _refuse(str(stop.code or "has ended"))
    except Exception as error:
        if hasattr(error, "format_message"):  # click's, which typer may bring along itself
            return _misuse(error)
        aborted = isinstance(error, typer.Abort) and error.__cause__ is not None
        return _unexpected(error.__cause__ or error if aborted else error)


def _refuse(reason: str) -> int:
    print(f"mzseek: {one_line(reason)}", file=sys.stderr)
    return BAD_INPUT


def _misuse(error: Exception) -> int:
    """Refuse options that are missing, unknown or out of range."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help(), file=sys.stderr)
        return BAD_INPUT
    from mzseek.cli.app import COMMANDS

    reason = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    named = next((word for word in sys.argv[1:2] if word in COMMANDS), "")
    path = context.command_path if context is not None else f"mzseek {named}".rstrip()
    return _refuse(f"{reason}; see `{path} --help`")


def _broken_pipe() -> int:
    """Redirect standard output, which Python would complain about once more when it flushes."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _unexpected(error: BaseException) -> int:
    """Save a report with the stack, the command and the versions; print where it is."""
    what = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    where = "with MZSEEK_TRACEBACK=1 the same command shows the full report"
    with contextlib.suppress(OSError, MemoryError):  # what failed once may fail again
        lines = [
            f"on {platform.platform()} at {time.strftime('%Y-%m-%d %H:%M:%S')}",
            f"command: {shlex.join(['mzseek', *sys.argv[1:]])}",
            *(f"{name} {version}" for name, version in versions(*_PACKAGES).items()),
        ]
        report = "\n".join(lines) + "\n\n" + "".join(traceback.format_exception(error))
        if os.environ.get("MZSEEK_TRACEBACK"):
            print(report, file=sys.stderr)
        try:
            path = _write_report(report, tempfile.gettempdir())
        except OSError:
            path = _write_report(report, os.getcwd())
        where = f"the full report is kept in {visible(path)}"
    print(f"mzseek: something unforeseen happened ({what}); {where}", file=sys.stderr)
    return UNEXPECTED


def _write_report(text: str, folder: str) -> Path:
    descriptor, name = tempfile.mkstemp(".txt", "mzseek-report-", folder)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def one_line(text: str) -> str:
    r"""Return text on one line, of bounded length and without control characters.

    Examples
    --------
    >>> one_line("a name\n  with \x1b[31mcolours")
    'a name with �[31mcolours'
    """
    line = visible(" ".join(line.strip() for line in text.splitlines()))
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"


@contextlib.contextmanager
def resumable(hint: str) -> Iterator[None]:
    """Mark work that can be resumed: an interrupt inside prints the hint how."""
    _hints.append(hint)
    yield
    _hints.remove(hint)  # kept where an error leaves the block: it is reported afterwards


class Interrupts:
    """Turns signals into a `KeyboardInterrupt` in the main thread, as long as it is entered.

    A signal handler of Python's is not enough: RDKit replaces SIGINT's whenever it matches a
    substructure and leaves its own there, so that Ctrl-C sets a flag that nobody reads. Therefore
    the signals are blocked in this thread and all that come from it, which no handler can undo, and
    one thread waits for them. It raises the interrupt in the main thread, and again until the stack
    unwinds, since libraries may swallow it. A second Ctrl-C ends the process.

    Child processes inherit the blocked signals, else each would complain about Ctrl-C. They are
    ended by this process. ``received`` is the signal that has come, or None.
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
        # Signals that are ignored, as under nohup, or handled by somebody else stay so.
        usual = (signal.SIG_DFL, signal.default_int_handler)
        self._signals = {number for number in _SIGNALS if signal.getsignal(number) in usual}
        if not self._signals:
            return self
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        # SIGURG is ignored by default, and so harmless where it goes astray.
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
            signal.signal(number, signal.getsignal(number))  # replaces RDKit's
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
            if time.monotonic() - came > _SAME_SIGNAL:
                self._give_up()

    def _insist(self) -> None:
        main = threading.main_thread().ident
        began = time.monotonic()
        while main is not None:
            signal.pthread_kill(main, signal.SIGURG)
            if self._over.wait(_RAISE_AGAIN):
                return
            timeout = _CLEANUP_TIMEOUT if self._is_heard else _CALL_TIMEOUT
            if time.monotonic() - began > timeout:
                self._give_up()

    def _give_up(self) -> None:
        """End without waiting; the next writer removes what is left over."""
        stop_children(wait=False)
        report_interrupt()
        exit_now(128 + (self.received or 0))

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        if self.received is None or self._over.is_set():
            return
        self._is_heard = True
        handled = sys.exception()
        while handled is not None:  # the interrupt is on its way, and what runs now cleans up
            if isinstance(handled, KeyboardInterrupt):
                return
            handled = handled.__context__
        raise KeyboardInterrupt


def report_interrupt() -> None:
    """Print one line, with how the work can be resumed."""
    hint = f"; {_hints[-1]}" if _hints else ""
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"mzseek: interrupted{hint}", file=sys.stderr, flush=True)


def exit_now(status: int) -> NoReturn:
    """End this process at once, with its output flushed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if "multiprocessing.util" in sys.modules:
        from multiprocessing import util

        # Else multiprocessing's resource tracker complains.
        util._run_finalizers(0)  # type: ignore[attr-defined]
    os._exit(status)


def stop_children(*, wait: bool = True) -> None:
    """End all descendant processes, also solvers that a library has started."""
    from mzseek.parallel.processes import kill_all, kill_workers, stop_workers

    (stop_workers if wait else kill_workers)()
    parents: dict[int, int] = {}
    spared = {os.getpid()}  # and multiprocessing's resource trackers, which end by themselves
    for path in Path("/proc").glob("[0-9]*") if Path("/proc/self").exists() else ():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended meanwhile
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"resource_tracker" in (path / "cmdline").read_bytes():
                spared.add(int(path.name))
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    kill_all(family - spared)
