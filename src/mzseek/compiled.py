"""Functions that numba turns into machine code, or leaves as they are where that is not worth it.

To compile all kernels takes some 15 seconds, once: numba keeps what it has made. For a handful of
spectra plain Python is ready sooner, and gives the same numbers. So a command that is asked for
little calls `stay_plain` before it loads any kernel.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

_plain = False
# A kernel that everything needs: where its machine code is kept, that of the others is too.
_KERNEL = Path(__file__).parent / "fragments" / "cuts.py"


def compiled(function: F) -> F:
    """The function as machine code, which lets go of Python's lock and is kept on disk.

    Where no folder can be written, numba refuses to keep it: then each process compiles anew.
    """
    if _plain:
        return function
    from numba import njit

    try:
        made = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        made = njit(nogil=True)(function)
    return cast(F, made)


def stay_plain() -> None:
    """Leave functions that are loaded from now on in this process as they are."""
    global _plain
    _plain = True


def is_plain() -> bool:
    """Whether functions are left as they are: then what loops in them should be numpy's."""
    return _plain


def machine_code_is_kept() -> bool:
    """Whether an earlier process has compiled the kernels, so that they need only be loaded."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [_KERNEL.parent / "__pycache__", Path.home() / ".cache" / "numba"]
    return any(
        next(folder.rglob(f"{_KERNEL.stem}.*.nbi"), None) is not None
        for folder in ([Path(named)] if named else folders)
        if folder.is_dir()
    )
