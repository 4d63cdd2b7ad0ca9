"""Writing that ends whole or not at all."""

import contextlib
import glob
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from mzseek.errors import WriteError
from mzseek.files.fault import naming_output

_PARTIAL = ".partial-"
_OLD = "-old"


@contextlib.contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """A new folder that appears under its name only when the block has ended without an error.

    The work is done in a hidden sibling on the same disk, so that the last step is a rename. If
    ``target`` exists it is replaced. What a process killed outright left behind is removed when
    the next one begins.

    Raises
    ------
    WriteError
        It cannot be made, or the disk is full.
    """
    target = target.resolve()
    prefix = f".{target.name}{_PARTIAL}{os.getpid()}-"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    except OSError as error:
        raise WriteError(target, f"cannot be made ({error.strerror})") from error
    replaced = partial.with_name(partial.name + _OLD)
    try:
        with _terminate_as_interrupt(), naming_output(target):
            yield partial
            partial.chmod(0o755)  # mkdtemp makes folders that only their owner can read
            if target.exists():
                target.rename(replaced)
            partial.rename(target)
    finally:
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        shutil.rmtree(replaced, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A path to write to, renamed to ``target`` when the block has ended without an error.

    Raises
    ------
    WriteError
        It cannot be made, or the disk is full.
    """
    target = target.resolve()
    # The suffix stays, since writers choose compression by it.
    own = f"{os.getpid()}-{secrets.token_hex(4)}-{''.join(target.suffixes[-2:])}"
    partial = target.with_name(f".{target.name}{_PARTIAL}{own}")
    if target.is_dir():
        raise WriteError(target, "is a folder, expected a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
    except OSError as error:
        raise WriteError(target, f"cannot be made ({error.strerror})") from error
    try:
        with naming_output(target):
            yield partial
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _remove_leftovers(target: Path) -> None:
    """Clear away what killed processes left, and put back what one had moved out of its way."""
    for leftover in sorted(target.parent.glob(f".{glob.escape(target.name)}{_PARTIAL}*")):
        owner = leftover.name.partition(_PARTIAL)[2].partition("-")[0]
        if owner.isdigit() and _is_running(int(owner)):
            continue
        if leftover.name.endswith(_OLD) and not target.exists():
            leftover.rename(target)
        elif leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
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
