"""Reference spectra with their molecules: exact search, and the search of analogs."""

from mzseek.library.library import KINDS, Library, Matches

__all__ = ["KINDS", "Library", "Matches"]
