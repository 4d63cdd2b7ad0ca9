"""One writer at a time: a lock that ends with the process that holds it."""

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mzseek.errors import BusyError, InputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextlib.contextmanager
def sole_writer(target: Path, doing: str) -> Iterator[None]:
    """Hold ``target`` against every other process, or thread, that wants to write it.

    The lock is the operating system's, on a hidden file beside ``target``: it is gone when its
    process is, however that ends, so nothing has to be cleared away by hand.

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
    InputError
        The folder that ``target`` lies in cannot be written to.
    """
    target = target.resolve()
    path = target.with_name(f".{target.name}.lock")
    descriptor = _locked(path, target)
    try:
        holder = {
            "doing": doing,
            "process": os.getpid(),
            "machine": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        yield
    finally:
        # Removed while it is held: whoever opened it meanwhile sees that it is no longer there.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _locked(path: Path, target: Path) -> int:
    """An open lock file that is ours."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(target, f"cannot be made ({error.strerror})") from error
        try:
            _lock(descriptor)
        except OSError as error:
            holder = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise BusyError(f"{target}: {_who(holder)}; wait for it, or name another") from error
        try:
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # its holder removed it between our opening and our locking


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
