"""Writing that ends whole or not at all."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_PARTIAL = ".partial-"


@contextlib.contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """A new folder that appears under its name only when the block has ended without an error.

    The work is done in a hidden sibling on the same disk, so that the last step is a rename. If
    ``target`` exists it is replaced. What a process killed outright left behind is removed when
    the next one begins.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    partial = Path(
        tempfile.mkdtemp(prefix=f".{target.name}{_PARTIAL}{os.getpid()}-", dir=target.parent)
    )
    try:
        with _terminate_as_interrupt():
            yield partial
        partial.chmod(0o755)  # mkdtemp makes folders that only their owner can read
        if target.exists():
            replaced = partial.with_name(partial.name + "-old")
            target.rename(replaced)
            partial.rename(target)
            shutil.rmtree(replaced)
        else:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A path to write to, renamed to ``target`` when the block has ended without an error."""
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays, since writers choose compression by it.
    partial = target.with_name(f".{os.getpid()}{_PARTIAL}{target.name}")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _remove_leftovers(target: Path) -> None:
    for leftover in target.parent.glob(f".{target.name}{_PARTIAL}*"):
        owner = leftover.name.partition(_PARTIAL)[2].partition("-")[0]
        if not (owner.isdigit() and _is_running(int(owner))):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that `finally` blocks clean up."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # only the main thread may set handlers; elsewhere there is none to set
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
