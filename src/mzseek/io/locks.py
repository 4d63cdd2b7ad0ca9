"""Locks on output folders: one writer at a time, released when its process ends."""

import contextlib
import errno
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mzseek.core.errors import BusyError, WriteError
from mzseek.io.writing import disk_errors

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_HELD_BY_ANOTHER = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}
# Of file systems 255; what is written goes under hidden names that are longer than the own.
_LONGEST_NAME = 200
_TRIES = 1_000
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # what a link points to must not be emptied
_held: set[int] = set()


@contextlib.contextmanager
def sole_writer(target: Path, doing: str) -> Iterator[None]:
    """Hold ``target`` against every other process, or thread, that wants to write it.

    The lock is the operating system's, on a hidden file beside ``target``: it is gone when its
    process is, however that ends, so nothing has to be cleared away by hand. Making that file is
    also the test, before any work, that something can be written there at all.

    Parameters
    ----------
    target : Path
        File or folder to be written; it need not exist.
    doing : str
        What is being done, for whoever else comes: "building a database".

    Raises
    ------
    BusyError
        Another one holds it; the message says which process, since when, and doing what.
    WriteError
        The folder that ``target`` lies in cannot be written to.
    """
    target = target.resolve()
    if len(os.fsencode(target.name)) > _LONGEST_NAME:
        raise WriteError(target, f"its name is longer than {_LONGEST_NAME} bytes")
    path = lock_of(target)
    made = [folder for folder in path.parents if not os.path.lexists(folder)]
    owner = os.getpid()
    descriptor = _locked(path, target)
    _held.add(descriptor)
    try:
        with disk_errors(target):
            _sign(descriptor, doing)
        yield
    finally:
        if os.getpid() == owner:  # not in a process forked off meanwhile, which has let go of it
            _held.discard(descriptor)
            _release(path, descriptor, made)


def lock_of(target: Path) -> Path:
    """The file that stands beside ``target`` while it is being written."""
    return target.with_name(f".{target.name}.lock")


def _locked(path: Path, target: Path) -> int:
    """An open lock file that is ours."""
    for _ in range(_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
        except FileNotFoundError:  # another has just removed the folder that it had made
            continue
        except OSError as error:
            raise WriteError(target, f"cannot be made ({_why(error, path)})") from error
        try:
            _lock(descriptor)
        except OSError as error:
            holder = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            if error.errno not in _HELD_BY_ANOTHER:
                said = f"its file system keeps no locks ({error.strerror}); name another place"
                raise WriteError(target, said) from error
            raise BusyError(f"{target}: {_who(holder)}; wait for it, or name another") from error
        try:
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # its holder removed it between our opening and our locking
    raise WriteError(target, f"cannot be made ({os.strerror(errno.ENOENT)})")


def _why(error: OSError, path: Path) -> str:
    for folder in path.parents:
        if folder.is_file():
            return f"{folder} is a file, expected a folder"
    return error.strerror or str(error)


def _sign(descriptor: int, doing: str) -> None:
    """Log in the lock file who holds it."""
    holder = {
        "doing": doing,
        "process": os.getpid(),
        "machine": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _release(path: Path, descriptor: int, made: list[Path]) -> None:
    """Leave nothing behind: neither the file nor folders made for it that stayed empty."""
    # Removed while it is held: whoever opened it meanwhile sees that it is no longer there.
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(descriptor)
    with contextlib.suppress(OSError):
        for folder in made:
            folder.rmdir()


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _who(holder: bytes) -> str:
    try:
        facts = json.loads(holder)
        return (
            f"another process is {facts['doing']} there (process {facts['process']} on "
            f"{facts['machine']}, since {facts['since']})"
        )
    except (ValueError, KeyError, TypeError):  # it has the lock and has not yet said who it is
        return "another process is writing there"


def _let_go() -> None:
    """In a forked process: the lock is its parent's, and must end with it."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
