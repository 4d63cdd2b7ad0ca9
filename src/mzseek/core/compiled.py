"""Compile functions with numba, or leave them as plain Python where compiling does not pay.

Compiling all kernels takes some 15 seconds, once: numba caches machine code on disk. For a handful
of spectra plain Python is ready sooner and gives the same numbers, to the last bit. So a command
with little work calls `disable_compilation` before it loads any kernel.

To keep results equal, a kernel whose result is written adds floats one after the other (numpy and
numba order the terms of ``.sum()`` differently), takes exponentials and logarithms outside, by
numpy, and makes single precision double first, since the two promote types differently.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

_plain = False
# A kernel that every command needs: where its machine code is cached, that of the others is too.
_KERNEL = Path(__file__).parents[1] / "fragments" / "fragmentation.py"


def compiled(function: F) -> F:
    """Compile a function without the GIL, cached on disk where a folder can be written."""
    return function if _plain else always_compiled(function)


def always_compiled(function: F) -> F:
    """Compile a function that plain Python would take seconds for, also of a few spectra."""
    from numba import njit

    try:
        dispatcher = njit(nogil=True, cache=_has_cache_folder())(function)
    except RuntimeError:  # numba refuses to cache here
        dispatcher = njit(nogil=True)(function)
    _discard_stale_cache(dispatcher)
    return cast(F, dispatcher)


def _discard_stale_cache(dispatcher: Any) -> None:
    """Compile anew where a cache of an earlier version names classes that are gone.

    Numba unpickles the index of its cache before it compares the age of the source.
    """
    cache = getattr(dispatcher, "_cache", None)
    if cache is None:  # numba is switched off: a plain function
        return
    load = cache.load_overload

    def load_or_discard(signature: Any, target_context: Any) -> Any:
        try:
            return load(signature, target_context)
        except (AttributeError, ImportError):
            cache.flush()
            return None

    cache.load_overload = load_or_discard


def _has_cache_folder() -> bool:
    """Whether there is a cache folder; without one numba would make a folder named ``~`` here."""
    named = "NUMBA_CACHE_DIR" in os.environ or "XDG_CACHE_HOME" in os.environ
    has_home = os.path.isabs(os.path.expanduser("~"))
    return named or has_home or os.access(Path(__file__).parent, os.W_OK)


def disable_compilation() -> None:
    """Leave functions that are loaded from now on in this process as plain Python."""
    global _plain
    _plain = True


def is_plain() -> bool:
    """Whether compilation is disabled: then loops should be numpy's."""
    return _plain


def has_compiled_cache() -> bool:
    """Whether an earlier process has compiled the kernels."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [_KERNEL.parent / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # a user without a home
        folders.append(Path.home() / ".cache" / "numba")
    return any(
        next(folder.rglob(f"{_KERNEL.stem}.*.nbi"), None) is not None
        for folder in ([Path(named)] if named else folders)
        if os.access(folder, os.W_OK)  # numba reads from no folder that it cannot write to
    )
