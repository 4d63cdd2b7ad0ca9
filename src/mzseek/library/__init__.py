"""Reference spectra with their molecules: exact search, and the search of analogs."""

from mzseek.library.build import add_spectra, build_library
from mzseek.library.found import Matches
from mzseek.library.store import KINDS, Library

__all__ = ["KINDS", "Library", "Matches", "add_spectra", "build_library"]
