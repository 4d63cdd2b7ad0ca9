"""Files: opening what users have, streaming it, and writing so that nothing is left half-made."""

from mzseek.files.archive import zip_sources
from mzseek.files.atomic import atomic_directory, atomic_file
from mzseek.files.json_file import read_object
from mzseek.files.lock import sole_writer
from mzseek.files.source import (
    LongLine,
    Source,
    StrPath,
    content_hash,
    member_source,
    open_source,
    text_lines,
)
from mzseek.files.streams.json_stream import iter_members

__all__ = [
    "LongLine",
    "Source",
    "StrPath",
    "atomic_directory",
    "atomic_file",
    "content_hash",
    "iter_members",
    "member_source",
    "open_source",
    "read_object",
    "sole_writer",
    "text_lines",
    "zip_sources",
]
