"""Files: opening what users have, streaming it, and writing so that nothing is left half-made."""

from mzseek.io.manifest import read_object
from mzseek.io.sources import (
    LongLine,
    Source,
    StrPath,
    content_hash,
    open_source,
    stable_hash,
    text_lines,
    zip_sources,
)
from mzseek.io.writing import atomic_directory, atomic_file, sole_writer

__all__ = [
    "LongLine",
    "Source",
    "StrPath",
    "atomic_directory",
    "atomic_file",
    "content_hash",
    "open_source",
    "read_object",
    "sole_writer",
    "stable_hash",
    "text_lines",
    "zip_sources",
]
