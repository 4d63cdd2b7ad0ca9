"""Write files and folders: atomically, by one process at a time, disk errors named in one line.

Locks are written here and not with filelock, whose lock files stay behind, are shared with forked
processes, and do not say which process holds them.
"""

import contextlib
import ctypes
import errno
import glob
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from mzseek.core.errors import BusyError, WriteError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Raised by writing alone.
_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_RUST = re.compile(r"\(os error (\d+)\)")  # in the text of safetensors' own errors


@contextlib.contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Raise disk errors of any library as a `WriteError` about ``target``.

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
    with _making(target):
        prefix = f".{target.name}{_PARTIAL}{os.getpid()}-"
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        with _terminate_as_interrupt(), disk_errors(target):
            yield partial
            partial.chmod(0o755)  # mkdtemp makes folders that only their owner can read
            publish(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def _making(target: Path) -> Iterator[None]:
    """Make the parent of ``target`` and remove leftovers; an `OSError` names ``target``."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        yield
    except OSError as error:
        raise WriteError(target, f"cannot be made ({error.strerror})") from error


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
    partial = _hidden_sibling(target, f"-{''.join(target.suffixes[-2:])}")
    if target.is_dir():
        raise WriteError(target, "is a folder, expected a file to write")
    with _making(target):
        pass
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


_HELD_BY_ANOTHER = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}
_MAX_NAME = 200  # bytes; file systems allow 255, and hidden names beside the output are longer
_TRIES = 1_000
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # what a link points to must not be emptied
_LOCKED_BYTE = 1 << 30  # on Windows, far behind what is written: a locked byte cannot be read
_held: set[int] = set()


@contextlib.contextmanager
def sole_writer(target: Path, doing: str) -> Iterator[None]:
    """Lock ``target``, a file or folder to be written, against other processes and threads.

    The lock is the operating system's, on a hidden file beside ``target``: it is gone when its
    process is, however that ends. Making that file also tests, before any work, that something can
    be written there. ``doing`` says to others what is being done ("building a database").

    Raises
    ------
    BusyError
        Another one holds it; the message says which process, since when, and doing what.
    WriteError
        The folder that ``target`` lies in cannot be written to.
    """
    target = target.resolve()
    if len(os.fsencode(target.name)) > _MAX_NAME:
        raise WriteError(target, f"its name is longer than {_MAX_NAME} bytes")
    path = lock_path(target)
    new_folders = [folder for folder in path.parents if not os.path.lexists(folder)]
    process = os.getpid()
    descriptor = _acquire(path, target)
    _held.add(descriptor)
    try:
        with disk_errors(target):
            holder = {
                "doing": doing,
                "process": process,
                "machine": socket.gethostname(),
                "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            }
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, json.dumps(holder).encode())
        yield
    finally:
        if os.getpid() == process:  # not in a process forked off meanwhile, which has released it
            _held.discard(descriptor)
            # Removed while it is held: who opened it meanwhile sees that it is gone. Windows
            # removes no open file.
            if os.name == "nt":
                os.close(descriptor)
            with contextlib.suppress(OSError):
                path.unlink()
            if os.name != "nt":
                os.close(descriptor)
            with contextlib.suppress(OSError):
                for folder in new_folders:
                    folder.rmdir()


def lock_path(target: Path) -> Path:
    """Return the path of the lock file that stands beside ``target`` while it is written."""
    return target.with_name(f".{target.name}.lock")


def _acquire(path: Path, target: Path) -> int:
    """Return the descriptor of a lock file that is locked and still there."""
    for _ in range(_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
        except FileNotFoundError:  # another has just removed the folder that it had made
            continue
        except OSError as error:
            file = next((folder for folder in path.parents if folder.is_file()), None)
            why = f"{file} is a file, expected a folder" if file else error.strerror or str(error)
            raise WriteError(target, f"cannot be made ({why})") from error
        try:
            if sys.platform == "win32":
                os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.lseek(descriptor, 0, os.SEEK_SET)
            holder = os.read(descriptor, 4096)
            os.close(descriptor)
            if error.errno not in _HELD_BY_ANOTHER:
                reason = f"its file system keeps no locks ({error.strerror}); name another place"
                raise WriteError(target, reason) from error
            raise BusyError(f"{target}: {_who(holder)}; wait for it, or name another") from error
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        os.close(descriptor)  # its holder removed it between our opening and our locking
    raise WriteError(target, f"cannot be made ({os.strerror(errno.ENOENT)})")


def _who(holder: bytes) -> str:
    try:
        metadata = json.loads(holder)
        return (
            f"another process is {metadata['doing']} there (process {metadata['process']} on "
            f"{metadata['machine']}, since {metadata['since']})"
        )
    except (ValueError, KeyError, TypeError):  # it has the lock and has not yet said who it is
        return "another process is writing there"


def _release_in_child() -> None:
    """Close inherited descriptors in a forked process: the lock must end with its parent."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
