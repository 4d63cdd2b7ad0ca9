"""Write files and folders atomically, and name disk errors in one line."""

import contextlib
import ctypes
import errno
import glob
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from mzseek.core.errors import WriteError

# Never raised by reading: it is the output that could not be written.
_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_RUST = re.compile(r"\(os error (\d+)\)")  # safetensors has errors of its unique, with this in them


@contextlib.contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Log of ``target`` that it cannot be written, whichever library was writing.

    Raises
    ------
    WriteError
        The disk is full, a quota is, a file may not grow, or nothing may be written there.
    """
    try:
        yield
    except WriteError as error:  # of a part of it, which has a hidden name
        raise WriteError(target, error.reason) from error
    except Exception as error:
        reason = disk_error_reason(error)
        if reason is None:
            raise
        raise WriteError(target, f"cannot be written ({reason})") from error


def disk_error_reason(error: Exception) -> str | None:
    """Return the system's message for a disk error, or None for any other error.

    Examples
    --------
    >>> disk_error_reason(OSError(errno.ENOSPC, "Error writing bytes to file. Detail: ..."))
    'No space left on device'
    >>> disk_error_reason(ValueError("something else"))
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (match := _RUST.search(str(error))):
        number = int(match[1])
    return os.strerror(number) if number in _WRITE_ERRORS else None


_PARTIAL = ".partial-"
_OLD = "-old"


@contextlib.contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """Yield a folder that replaces ``target`` when the block has ended without an error.

    The work is done in a hidden sibling on the same disk, so that the last step is a rename. What a
    killed process left behind is removed when the next one begins.

    Raises
    ------
    WriteError
        It cannot be made, or the disk is full.
    """
    target = target.resolve()
    prefix = f".{target.name}{_PARTIAL}{os.getpid()}-"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    except OSError as error:
        raise WriteError(target, f"cannot be made ({error.strerror})") from error
    try:
        with _terminate_as_interrupt(), disk_errors(target):
            yield partial
            partial.chmod(0o755)  # mkdtemp makes folders that only their owner can read
            publish(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield a path that is renamed to ``target`` when the block has ended without an error.

    Raises
    ------
    WriteError
        It cannot be made, or the disk is full.
    """
    target = target.resolve()
    # The suffix stays, since writers choose compression by it.
    unique = f"{os.getpid()}-{secrets.token_hex(4)}-{''.join(target.suffixes[-2:])}"
    partial = target.with_name(f".{target.name}{_PARTIAL}{unique}")
    if target.is_dir():
        raise WriteError(target, "is a folder, expected a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
    except OSError as error:
        raise WriteError(target, f"cannot be made ({error.strerror})") from error
    try:
        with disk_errors(target):
            yield partial
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def publish(finished: Path, target: Path) -> None:
    """Move a finished file or folder, on the same disk, to its name, replacing what is there.

    A file is replaced by one rename. A folder is exchanged with the old one in one step where the
    system can (Linux, macOS), so that ``target`` is there at any time. Elsewhere the old folder is
    renamed first; if the process is killed before the second rename, `remove_leftovers` of the next
    one puts it back. An `OSError` leaves what was there.
    """
    if not target.is_dir():
        finished.replace(target)
        return
    old = finished
    if not _exchange(finished, target):
        old = _hidden_sibling(target, _OLD)
        target.rename(old)
        try:
            finished.rename(target)
        except BaseException:
            old.rename(target)
            raise
    discard(old, target)


def discard(folder: Path, target: Path) -> None:
    """Remove a folder beside ``target``; while it is removed it has the name of a leftover."""
    hidden = _hidden_sibling(target)
    folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def remove_leftovers(target: Path) -> None:
    """Remove what killed processes left, and put back an old folder that one had moved away."""
    for leftover in sorted(target.parent.glob(f".{glob.escape(target.name)}{_PARTIAL}*")):
        if leftover.name.endswith(_OLD) and not target.exists():
            leftover.rename(target)
            continue
        process = leftover.name.partition(_PARTIAL)[2].partition("-")[0]
        if process.isdigit() and _is_running(int(process)):
            continue
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _hidden_sibling(target: Path, end: str = "") -> Path:
    unique = f"{os.getpid()}-{secrets.token_hex(4)}{end}"
    return target.with_name(f".{target.name}{_PARTIAL}{unique}")


def _exchange(first: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system cannot."""
    if sys.platform == "win32":
        return False
    library, flag = ctypes.CDLL(None), ctypes.c_uint(2)  # RENAME_EXCHANGE, RENAME_SWAP
    names = os.fsencode(first), os.fsencode(other)
    if hasattr(library, "renameat2"):  # Linux
        here = -100  # AT_FDCWD
        return bool(library.renameat2(here, names[0], here, names[1], flag) == 0)
    # macOS
    return hasattr(library, "renamex_np") and bool(library.renamex_np(*names, flag) == 0)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # where os.kill would end it; its leftovers stay
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
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
