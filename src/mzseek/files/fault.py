"""What a disk says when it does not take what is written, as one line that names the output."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from mzseek.errors import WriteError

# Never raised by reading: whatever was being done, it is the output that could not be written.
_OF_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_RUST = re.compile(r"\(os error (\d+)\)")  # safetensors has errors of its own, with this in them


@contextlib.contextmanager
def naming_output(target: Path) -> Iterator[None]:
    """Say of ``target`` that it cannot be written, whichever library was writing.

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
        reason = fault_of_disk(error)
        if reason is None:
            raise
        raise WriteError(target, f"cannot be written ({reason})") from error


def fault_of_disk(error: Exception) -> str | None:
    """What the disk said, if it was the disk.

    Examples
    --------
    >>> fault_of_disk(OSError(errno.ENOSPC, "Error writing bytes to file. Detail: ..."))
    'No space left on device'
    >>> fault_of_disk(ValueError("something else"))
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (match := _RUST.search(str(error))):
        number = int(match[1])
    return os.strerror(number) if number in _OF_WRITING else None
