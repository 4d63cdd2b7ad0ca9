"""Compile functions with numba, or leave them as plain Python where compiling does not pay.

To compile all kernels takes some 15 seconds, once: numba keeps what it has made. For a handful of
spectra plain Python is ready sooner, and gives the same numbers, to the last bit. So a command that
is asked for little calls `disable_compilation` before it loads any kernel.

To keep that so, a kernel whose result is written adds floats one after the other: numpy and numba
order the terms of ``.sum()`` differently. Exponentials and logarithms are taken outside of it, by
numpy, and single precision is made double first, since the two promote types differently.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

_plain = False
# A kernel that everything needs: where its machine code is kept, that of the others is too.
_KERNEL = Path(__file__).parents[1] / "fragments" / "fragmentation.py"


def compiled(function: F) -> F:
    """The function as machine code, which lets go of Python's lock and is kept on disk.

    Where no folder can be written, numba refuses to keep it: then each process compiles anew.
    """
    if _plain:
        return function
    from numba import njit

    try:
        made = njit(nogil=True, cache=_has_cache_folder())(function)
    except RuntimeError:
        made = njit(nogil=True)(function)
    return cast(F, made)


def _has_cache_folder() -> bool:
    """Whether there is a folder for machine code.

    Where neither the package nor the user's home gives one, numba would make a folder named ``~``
    in the current one.
    """
    named = "NUMBA_CACHE_DIR" in os.environ or "XDG_CACHE_HOME" in os.environ
    has_home = os.path.isabs(os.path.expanduser("~"))
    return named or has_home or os.access(Path(__file__).parent, os.W_OK)


def disable_compilation() -> None:
    """Leave functions that are loaded from now on in this process as they are."""
    global _plain
    _plain = True


def is_plain() -> bool:
    """Whether functions are left as they are: then what loops in them should be numpy's."""
    return _plain


def has_compiled_cache() -> bool:
    """Whether an earlier process has compiled the kernels, so that they need only be loaded."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [_KERNEL.parent / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # a user without a home
        folders.append(Path.home() / ".cache" / "numba")
    return any(
        next(folder.rglob(f"{_KERNEL.stem}.*.nbi"), None) is not None
        for folder in ([Path(named)] if named else folders)
        if folder.is_dir()
    )
