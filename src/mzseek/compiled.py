"""Functions that numba turns into machine code."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """The function as machine code, which lets go of Python's lock and is kept on disk.

    Where no folder can be written, numba refuses to keep it: then each process compiles anew.
    """
    try:
        made = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        made = njit(nogil=True)(function)
    return cast(F, made)
