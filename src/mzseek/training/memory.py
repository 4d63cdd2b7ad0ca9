"""Memory: how much there is, and keeping what a step frees for the next step."""

import ctypes
import os
import platform
from pathlib import Path

import torch

from mzseek.runs.device import device

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


# Where Linux says how much a container may have, by its two generations of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_of_machine() -> float:
    """Bytes of memory that training may use: the device's, or this machine's or container's."""
    if device() == "cuda":
        return float(torch.cuda.get_device_properties(0).total_memory)
    try:
        found = [float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # not every system can be asked
        return float("inf")
    for path in _LIMITS:
        try:
            found.append(float(Path(path).read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return min(found)


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
