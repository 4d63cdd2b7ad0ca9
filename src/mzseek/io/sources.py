"""Open plain, gzip and zstd files and members of zip archives as streams within limits."""

import codecs
import functools
import gzip
import hashlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol, cast

import zstandard

from mzseek.core.errors import InputError
from mzseek.core.text import shorten

# Text. A line of a table holds a whole spectrum, which takes some 3 million characters at most.
MAX_LINE = 4_000_000  # bytes
MAX_PEAKS = 100_000  # a record
MAX_PEAK_TEXT = 8_000_000  # characters of a record's peak lines, notes beside the peaks included
MAX_FIELDS = 10_000  # a record
MAX_FIELD_TEXT = 4_000_000  # characters of a record's fields together
MAX_KEY = 1_000  # characters of a field's name

# Molecules. A row with all their names is far shorter; what is longer has lost a line end. In SDF a
# protein of 30,000 atoms has some 4 million characters; what is longer has lost its end.
MAX_ROW = 1_000_000  # characters
MAX_SDF_RECORD = 8_000_000  # characters
MAX_WORKBOOK = 256_000_000  # bytes of all parts of a workbook, which is held as a whole
MAX_QUERIES = 500_000  # masses in a file to look up, all of which are held

# A file is given up where so many records in a row cannot be read: there is nothing in it, and each
# of them is a line in somebody's list.
MAX_FAULTS = 250_000

# JSON. Brackets of three characters take eighty bytes once they are parsed, so values count too.
MAX_MEMBER = 16_000_000  # characters of a member of the outermost array or object
MAX_VALUES = 1_000_000  # a member

# XML. An element with a text and ten attributes takes a kilobyte.
MAX_ELEMENTS = 100_000  # a record
MAX_ELEMENT_TEXT = 16_000_000  # characters of a record's texts and attributes together
MAX_TAG = 1_000_000  # bytes of one tag, comment or the like
MAX_NAMES = 10_000  # different names of elements and attributes in a file
MAX_DEPTH = 200  # elements inside one another

# Packing. What a packed file may need to be unpacked, and how much may come out of it.
MAX_WINDOW = 1 << 27  # bytes that zstd may look back
MAX_ZIP_MEMBERS = 250_000
MAX_ZIP_DIRECTORY = 64_000_000  # bytes of a zip archive's list of members
# Text packs to a tenth, seldom to a fiftieth. What unfolds to more than so many times its size, a
# gigabyte at least, was made to keep a reader busy.
MAX_RATIO = 300
RATIO_FROM = 1 << 30


# What every public function takes for a path.
StrPath = str | os.PathLike[str]

# What reading damaged compressed data raises; each means "the file ends here, broken".
_DAMAGE = (
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zstandard.ZstdError,
    RuntimeError,  # a member of a zip archive that is encrypted, or packed in an unknown way
)

_BLOCK = 1 << 16
# Four bytes of zstd may unfold into 128 kilobytes: this many into 32 megabytes.
_ZSTD_BLOCK = 1 << 10
_SHOWN = 1_000  # characters that are kept of a line that is too long
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPED = b"\x2a\x4d\x18"  # behind one more byte, where parallel zstd writes its own notes


class Readable(Protocol):
    """Object with a method that reads bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, none at the end."""


Unpack = Callable[[IO[bytes]], IO[bytes]]


@dataclass(frozen=True)
class Source:
    """A file or archive member that can be opened, with the name that messages use."""

    name: str
    suffix: str
    _opener: Callable[[], IO[bytes]]
    _unpack: Unpack | None = None

    def open(self) -> "Stream":
        """Open it; damage met while reading is an `InputError`."""
        try:
            stored = self._opener()
            if self._unpack is None:
                return Stream(stored, self.name)
            return Stream(self._unpack(stored), self.name, stored)
        except (*_DAMAGE, OSError, ValueError, struct.error) as error:  # the last two: zip headers
            raise InputError(self.name, f"cannot be opened ({shorten(str(error), 150)})") from error

    def head(self, size: int = 65536) -> bytes:
        """Return the first bytes, for recognising the format."""
        with self.open() as stream:
            return stream.read(size)


class Stream:
    """A stream that names its file when it is damaged, or unfolds without end."""

    def __init__(self, stream: IO[bytes], name: str, packed: IO[bytes] | None = None) -> None:
        self._stream = stream
        self._name = name
        self._packed = packed
        self._unpacked = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, none at the end."""
        try:
            data = self._stream.read(size)
        except (*_DAMAGE, OSError) as error:
            raise InputError(
                self._name, f"damaged or cut short ({shorten(str(error), 150)})"
            ) from error
        self._unpacked += len(data)
        if self._packed is None or self._unpacked <= RATIO_FROM:
            return data
        if self._unpacked > MAX_RATIO * self._packed.tell():
            reason = f"unfolds to more than {MAX_RATIO} times its size: given up"
            raise InputError(self._name, f"{reason} after {self._unpacked:,} bytes")
        return data

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def open_source(path: StrPath) -> Source:
    """Return a source for a plain, gzip or zstd file; packing is recognised by content."""
    path = Path(path)
    if not path.exists():
        raise InputError(path, "no such file")
    if path.is_dir():
        raise InputError(path, "is a folder, expected a file")
    if not path.is_file():
        # A source is opened more than once, which a pipe does not allow.
        raise InputError(path, "is a pipe or device, expected a file")
    return _packed_or_plain(str(path), path, lambda: path.open("rb"))


def _packed_or_plain(name: str, path: Path, opener: Callable[[], IO[bytes]]) -> Source:
    source = Source(name, path.suffix.lower(), opener)
    magic = source.head(4)
    if not magic:
        raise InputError(name, "the file is empty")
    unpack: Unpack
    if magic[:2] == _GZIP_MAGIC:
        unpack = _unpack_gzip
    elif magic == _ZSTD_MAGIC or (magic[1:] == _ZSTD_SKIPPED and magic[0] >> 4 == 5):
        unpack = _unpack_zstd
    else:
        return source
    is_named_so = source.suffix in {".gz", ".zst", ".zstd"}
    suffix = Path(path.stem).suffix.lower() if is_named_so else source.suffix
    return Source(name, suffix, opener, unpack)


def _unpack_gzip(packed: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(packed, "rb"))


def _unpack_zstd(packed: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(_Blocks(_zstd_blocks(packed), packed), 1 << 16)


def _zstd_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    """Unpack concatenated frames; a file that ends inside one is an `EOFError`.

    The reader of the zstandard package takes such an end for that of the file.
    """
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    frame, rest, is_inside = unpacker.decompressobj(), b"", False
    while block := rest or packed.read(_ZSTD_BLOCK):
        yield frame.decompress(block)
        is_inside, rest = not frame.eof, b""
        if frame.eof:
            rest, frame = frame.unused_data, unpacker.decompressobj()
    if is_inside:
        raise EOFError("zstd file ended before its end-of-frame mark")


class _Blocks(io.RawIOBase):
    """A stream of blocks, which closes the stream that they are made of."""

    def __init__(self, blocks: Iterable[bytes], stream: IO[bytes] | None = None) -> None:
        self._blocks = filter(None, blocks)
        self._stream = stream
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._ready = self._ready or memoryview(next(self._blocks, b""))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()


class LongLine(str):
    """The beginning of a line past `MAX_LINE` bytes; its record must be skipped."""

    __slots__ = ()


def text_lines(stream: Readable) -> Iterator[tuple[int, str]]:
    r"""Yield numbered lines, decoded one by one; a last line that was cut short lacks its ``\n``.

    UTF-8 is the rule, UTF-16 is recognised by its byte-order mark, and a single line that is
    neither is read as Latin-1, which only free text (names, comments) is ever written in. A line
    past `MAX_LINE` bytes comes as a `LongLine`, so that a binary blob cannot fill the memory.
    """
    head = stream.read(_BLOCK)
    is_utf16 = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    blocks = _Blocks(chain([head], iter(lambda: stream.read(_BLOCK), b"")))
    text = io.TextIOWrapper(
        io.BufferedReader(blocks, 1 << 16),
        encoding="utf-16" if is_utf16 else "utf-8-sig",
        errors="replace" if is_utf16 else "surrogateescape",
    )
    number = 0
    while block := text.read(_BLOCK):
        *lines, last = (block + text.readline(MAX_LINE + 1)).split("\n")
        for line in lines:
            number += 1
            if len(line) <= MAX_LINE and line.isascii():
                yield number, line + "\n"
            else:
                yield number, _checked_line(line, "\n")
        if last:  # of the file, or past the bound: what is left of it is passed over
            number, rest = number + 1, last
            while rest and not rest.endswith("\n"):
                rest = text.readline(_BLOCK)
            yield number, _checked_line(last, rest[-1:])


def _checked_line(line: str, end: str) -> str:
    """Mark a line that is too long, and read one with bytes that are no UTF-8 as Latin-1."""
    data = line.encode(errors="surrogateescape")
    is_long = len(data) > MAX_LINE
    if is_long:
        data = line[:_SHOWN].encode(errors="surrogateescape")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return LongLine(text + end) if is_long else text + end


def stable_hash(*texts: bytes) -> int:
    """Return a 56-bit number that depends on the texts alone, to sample in any order.

    Examples
    --------
    >>> stable_hash(b"a", b"b") == stable_hash(b"a", b"b"), stable_hash(b"a") == stable_hash(b"b")
    (True, False)
    """
    return int.from_bytes(hashlib.blake2b(b"\0".join(texts), digest_size=7).digest(), "big")


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files below a folder in the order of their names.

    Files of a folder that cannot be read are hashed as such: readers skip them, too.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for file in files_below(path):
            try:
                content = content_hash(file)
            except OSError:
                content = "unreadable"
            name = file.relative_to(path)
            digest.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_below(folder: Path) -> list[Path]:
    """Return files below a folder by name, without hidden ones (locks are hidden)."""
    return sorted(path for path in paths_below(folder) if path.is_file())


def paths_below(folder: Path, seen: set[Path] | None = None) -> Iterator[Path]:
    """Yield files below a folder without hidden ones; links are followed, never in circles."""
    seen = set() if seen is None else seen
    real = folder.resolve()
    if real in seen:
        return
    seen.add(real)
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from paths_below(entry, seen)
        else:
            yield entry


_ZIP64_END = 76  # bytes of the two end records of archives past 4 GB or 65,535 members
_UNPACKED_WHOLE = {zipfile.ZIP_BZIP2}  # Python unpacks all that it is given to read
_NOT_READ = {zipfile.ZIP_LZMA}  # it may ask for four gigabytes to unpack one byte
_SMALL_READS = 4_096


def zip_sources(path: Path) -> Iterator[Source | InputError]:
    """Yield the members of an archive by name; an `InputError` in place of one that cannot be read.

    Since nothing is unpacked to disk, ``../a.mgf`` and ``/a.mgf`` do no harm and are read as any
    other. Folders, hidden members (a dot before their name or that of their folder) and
    ``__MACOSX`` are left out.

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
    # By offset where names are equal: each of them is another file.
    members.sort(key=lambda info: (info.filename, info.header_offset))
    return (_source(path, archive, info) for info in members)


def _source(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Source | InputError:
    name = f"{path}: {' '.join(info.filename.split())[:300]}"
    if info.compress_type in _NOT_READ:
        return InputError(name, "is packed with LZMA, expected deflate, bzip2 or no packing")
    if info.file_size > max(RATIO_FROM, MAX_RATIO * info.compress_size):
        return InputError(name, _unfolds(info.file_size))
    try:
        opener = functools.partial(_open_member, archive, info)
        return _packed_or_plain(name, Path(info.filename), opener)
    except InputError as error:
        return error


def _open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    stream = archive.open(info)
    if info.compress_type in _UNPACKED_WHOLE:
        blocks = iter(lambda: stream.read(_SMALL_READS), b"")
        return io.BufferedReader(_Blocks(blocks, stream), _SMALL_READS)
    return stream


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
        try:
            end: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]
        except (OSError, ValueError, struct.error, zipfile.BadZipFile):
            end = None
        if end is None:  # zipfile says what is wrong with it
            return
        size, location = end[5], end[9]
        if size > MAX_ZIP_DIRECTORY:
            reason = f"its list of members has {size:,} bytes, expected at most"
            raise InputError(path, f"{reason} {MAX_ZIP_DIRECTORY:,}")
        # The list stands right before the archive's end, whatever offset is stated.
        file.seek(max(0, location - size - (_ZIP64_END if end[0] == b"PK\6\6" else 0)))
        if file.read(size).count(b"PK\1\2") > MAX_ZIP_MEMBERS:
            raise InputError(path, f"holds more than {MAX_ZIP_MEMBERS:,} members")
