"""Reference spectra with their molecules: exact search, analog search, molecular networks.

Its names are loaded when they are used: options of commands need no compiled code.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mzseek.library.library import KINDS, Library, Matches

__all__ = ["KINDS", "Library", "Matches"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("mzseek.library.library"), name)
