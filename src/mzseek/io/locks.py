"""Locks on outputs: one writer at a time, released when its process ends.

Written here and not with filelock, whose lock files stay behind, are shared with forked processes,
and do not say which process holds them.
"""

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
