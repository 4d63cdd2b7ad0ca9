"""Memory that a process keeps instead of handing it back: a setting of the whole process.

The command line asks for it, and so do processes that train on behalf of another. Library calls
leave it to whoever runs the process.
"""

import ctypes
import platform

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Ask the C library to reuse large blocks instead of handing them back to the system.

    By default glibc maps every tensor above 32 MB anew, and the system fills it with zeros page by
    page: that made a gradient of 41 MB cost 25 ms where writing it takes 1. Memory stays with the
    process until it ends, and its peak is higher by a few of the largest tensors: blocks are asked
    for aligned, and a freed one of just that size leaves no room for the alignment.

    Returns
    -------
    bool
        Whether this C library could be asked. Elsewhere nothing changes but the speed.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 64 << 20))
    return all(mallopt(name, value) for name, value in settings)
