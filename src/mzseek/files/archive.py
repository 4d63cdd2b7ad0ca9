"""Zip archives: their members as sources, read where they are and never unpacked to disk."""

import functools
import io
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from mzseek.errors import InputError
from mzseek.files.limits import MAX_RATIO, MAX_ZIP_DIRECTORY, MAX_ZIP_MEMBERS, RATIO_FROM
from mzseek.files.source import Source, member_source

# The archive's end: a mark, counts of disks and members, size and place of the directory.
_END = struct.Struct("<4s4H2LH")
_LONGEST_COMMENT = 65_535
_WIDE_END = struct.Struct("<4sQ2H2L4Q")  # the same for archives past 4 GB or 65,535 members
_WIDE_PLACE = struct.Struct("<4sLQL")  # where that one is
# One member of the directory: a mark, then what is not needed here, and three lengths.
_MEMBER = struct.Struct("<4s24x3H12x")
_UNPACKED_WHOLE = {zipfile.ZIP_BZIP2}  # Python unpacks all that it is given to read
_NOT_READ = {zipfile.ZIP_LZMA}  # it may ask for four gigabytes to unpack one byte
_SMALL_READS = 4_096


def zip_sources(path: Path) -> Iterator[Source | InputError]:
    """Members of an archive, in the order of their names; the reason where one cannot be read.

    Names only name the members in messages: since nothing is unpacked to disk, ``../a.mgf`` and
    ``/a.mgf`` do no harm and are read as any other. Folders, hidden members (a dot before their
    name or that of their folder) and ``__MACOSX``, which no person has put there, are left out.

    Raises
    ------
    InputError
        Damaged, past its bounds, an Office document, or without any file.
    """
    _check_directory(path)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error) as error:
        raise InputError(path, f"damaged archive ({str(error)[:150]})") from error
    members = [info for info in archive.infolist() if not info.is_dir() and not _is_hidden(info)]
    if not members:
        raise InputError(path, "the archive holds no files")
    if any(info.filename == "[Content_Types].xml" for info in members):
        raise InputError(path, "is an Office document; export it as text first")
    unfolded = sum(info.file_size for info in members)
    if unfolded > max(RATIO_FROM, MAX_RATIO * path.stat().st_size):
        raise InputError(path, _unfolds(unfolded))
    # By place where names are equal: each of them is another file.
    members.sort(key=lambda info: (info.filename, info.header_offset))
    return (_source(path, archive, info) for info in members)


def _source(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Source | InputError:
    name = f"{path}: {' '.join(info.filename.split())[:300]}"
    if info.compress_type in _NOT_READ:
        return InputError(name, "is packed with LZMA, expected deflate, bzip2 or no packing")
    if info.file_size > max(RATIO_FROM, MAX_RATIO * info.compress_size):
        return InputError(name, _unfolds(info.file_size))
    try:
        return member_source(name, info.filename, functools.partial(_open, archive, info))
    except InputError as error:
        return error


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    stream = archive.open(info)
    if info.compress_type in _UNPACKED_WHOLE:
        return io.BufferedReader(_SmallReads(stream), _SMALL_READS)
    return stream


class _SmallReads(io.RawIOBase):
    """A stream that is asked for a little at a time, whatever is asked of this one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(min(len(buffer), _SMALL_READS))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unfolds(size: int) -> str:
    return f"unfolds to {size:,} bytes, more than {MAX_RATIO} times its size, and is not read"


def _is_hidden(info: zipfile.ZipInfo) -> bool:
    parts = info.filename.replace("\\", "/").split("/")
    return any(
        part == "__MACOSX" or (part.startswith(".") and part not in {".", ".."}) for part in parts
    )


def _check_directory(path: Path) -> None:
    """Refuse an archive whose list of members alone would fill the memory."""
    with path.open("rb") as file:
        place, size = _directory(file)
        if size > MAX_ZIP_DIRECTORY:
            reason = f"its list of members has {size:,} bytes, expected at most"
            raise InputError(path, f"{reason} {MAX_ZIP_DIRECTORY:,}")
        file.seek(place)
        members = _count(file.read(size))
    if members > MAX_ZIP_MEMBERS:
        raise InputError(path, f"holds more than {MAX_ZIP_MEMBERS:,} members")


def _directory(file: IO[bytes]) -> tuple[int, int]:
    """Place and size of the list of members; zeros where the end of the archive is not found.

    The list stands right before the archive's end, as zipfile reads it, whatever place is stated.
    """
    length = file.seek(0, io.SEEK_END)
    start = max(0, length - _END.size - _LONGEST_COMMENT)
    file.seek(start)
    tail = file.read()
    place = tail.rfind(b"PK\5\6", 0, len(tail) - _END.size + 4)
    if place < 0:
        return 0, 0
    end = start + place
    size = int(_END.unpack_from(tail, place)[5])
    wide = _wide_directory(file, end)
    if wide is not None:
        end, size = wide
    return max(0, end - size), size


def _wide_directory(file: IO[bytes], end: int) -> tuple[int, int] | None:
    if end < _WIDE_PLACE.size + _WIDE_END.size:
        return None
    file.seek(end - _WIDE_PLACE.size)
    mark = file.read(4)
    if mark != b"PK\6\7":
        return None
    place = end - _WIDE_PLACE.size - _WIDE_END.size
    file.seek(place)
    values = _WIDE_END.unpack(file.read(_WIDE_END.size))
    return (place, int(values[8])) if values[0] == b"PK\6\6" else None


def _count(directory: bytes) -> int:
    """Members of a directory, one past the most at most."""
    place = members = 0
    while place + _MEMBER.size <= len(directory) and members <= MAX_ZIP_MEMBERS:
        mark, name, extra, comment = _MEMBER.unpack_from(directory, place)
        if mark != b"PK\1\2":
            break
        members += 1
        place += _MEMBER.size + name + extra + comment
    return members
