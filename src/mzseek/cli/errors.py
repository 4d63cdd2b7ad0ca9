"""Turn exceptions and signals into one line and an exit status."""

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
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import NoReturn

from mzseek.cli.output import clean
from mzseek.core.errors import MzseekError
from mzseek.version import __version__

_PACKAGES = (
    "typer", "rich", "numpy", "scipy", "rdkit", "pyarrow", "duckdb",
    "joblib", "torch", "ray",
)  # fmt: skip


def report_of(error: BaseException) -> str:
    """All that helps to find out what happened: the stack, the command and the versions."""
    lines = [
        f"mzseek {__version__} on Python {platform.python_version()}, {platform.platform()}",
        f"at {time.strftime('%Y-%m-%d %H:%M:%S')}",
        f"command: {shlex.join(['mzseek', *sys.argv[1:]])}",
        *(f"{name} {_version(name)}" for name in _PACKAGES),
    ]
    return "\n".join(lines) + "\n\n" + "".join(traceback.format_exception(error))


def keep_report(report: str) -> Path:
    """Write a report to where temporary files go, or else to the current folder.

    Raises
    ------
    OSError
        Neither can be written to.
    """
    try:
        return _written(report, tempfile.gettempdir())
    except OSError:
        return _written(report, os.getcwd())


def _written(text: str, folder: str) -> Path:
    descriptor, name = tempfile.mkstemp(".txt", "mzseek-report-", folder)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


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
    """Log so in one line, and how the work can be taken up again."""
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
    from mzseek.parallel.processes import kill_all, kill_workers, stop_workers

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


BAD_INPUT = 2
UNFORESEEN = 70  # as EX_SOFTWARE of sysexits.h
_MOST = 2000  # characters of a line


def run_and_exit() -> NoReturn:
    """Run the command that ``sys.argv`` names, and end this process."""
    status, was_interrupted = run_command()
    if was_interrupted:
        end_at_once(status)  # all is cleaned up; libraries such as torch take seconds to take leave
    sys.exit(status)


def run_command() -> tuple[int, bool]:
    """Run the command that ``sys.argv`` names.

    Returns
    -------
    status : int
    was_interrupted : bool
    """
    if hasattr(sys.stdout, "reconfigure"):  # a name that the terminal has no letters for
        sys.stdout.reconfigure(errors="backslashreplace")
    with Interrupts() as interrupts:
        try:
            status = _outcome()
            interrupts.stop()
        except KeyboardInterrupt:
            interrupts.stop()
            status = 130
        if interrupts.received is not None:
            status = 128 + interrupts.received
        was_interrupted = interrupts.received is not None or status == 130
        if was_interrupted:
            stop_children()
            tell_interrupted()
    return status, was_interrupted


def _outcome() -> int:
    """Exit status of the command; all that can be said has been said."""
    import typer

    from mzseek.cli.app import app

    try:
        status = app(prog_name="mzseek", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except MzseekError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return _reader_has_gone()
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # of typer's
            return _reader_has_gone()
        return stop.code if isinstance(stop.code, int) else _refuse(str(stop.code or "has ended"))
    except Exception as error:
        if hasattr(error, "format_message"):  # of click's, which typer may bring along itself
            return _misused(error)
        abandoned = isinstance(error, typer.Abort) and error.__cause__ is not None
        return _unforeseen(error.__cause__ or error if abandoned else error)


def _refuse(reason: str) -> int:
    print(f"mzseek: {one_line(reason)}", file=sys.stderr)
    return BAD_INPUT


def _misused(error: Exception) -> int:
    """Options that are missing, unknown or out of range."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help(), file=sys.stderr)
        return BAD_INPUT
    from mzseek.cli.app import COMMANDS

    reason = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    named = next((word for word in sys.argv[1:2] if word in COMMANDS), "")
    path = context.command_path if context is not None else f"mzseek {named}".rstrip()
    return _refuse(f"{reason}; see `{path} --help`")


def _reader_has_gone() -> int:
    """Python would complain once more when it flushes."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _unforeseen(error: BaseException) -> int:
    what = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    kept = "with MZSEEK_TRACEBACK=1 the same command shows the full report"
    with contextlib.suppress(OSError, MemoryError):  # what went wrong may go wrong once more
        report = report_of(error)
        if os.environ.get("MZSEEK_TRACEBACK"):
            print(report, file=sys.stderr)
        kept = f"the full report is kept in {clean(keep_report(report))}"
    print(f"mzseek: something unforeseen happened ({what}); {kept}", file=sys.stderr)
    return UNFORESEEN


def one_line(text: str) -> str:
    r"""Text on one line, of bounded length, that does nothing to the terminal.

    Examples
    --------
    >>> one_line("a name\n  with \x1b[31mcolours")
    'a name with �[31mcolours'
    """
    line = clean(" ".join(line.strip() for line in text.splitlines()))
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"
