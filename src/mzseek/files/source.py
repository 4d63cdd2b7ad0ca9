"""Where bytes come from: plain files, gzip files, and members of zip archives, read alike."""

import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from mzseek.errors import InputError

# What reading damaged compressed data raises; each means "the file ends here, broken".
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile)

MAX_LINE = 4_000_000
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """Something that can be opened for reading bytes, with the name that messages use."""

    name: str
    suffix: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]

    def head(self, size: int = 65536) -> bytes:
        """First bytes, for recognising the format."""
        with self.open() as stream:
            return stream.read(size)


def open_source(path: Path) -> Source:
    """Source for a plain or gzip file; the latter is recognised by content, not by name."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file")
    try:
        with path.open("rb") as stream:
            magic = stream.read(2)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if not magic:
        raise InputError(f"{path}: the file is empty")
    if magic == _GZIP_MAGIC:
        inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
        return Source(
            str(path), inner.suffix.lower(), lambda: cast(IO[bytes], gzip.open(path, "rb"))
        )
    return Source(str(path), path.suffix.lower(), lambda: path.open("rb"))


def text_lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    r"""Numbered lines, decoded one by one; a last line that was cut short lacks its ``\n``.

    UTF-8 is the rule, UTF-16 is recognised by its byte-order mark, and a single line that is
    neither is read as Latin-1, which only free text (names, comments) is ever written in. A line
    past `MAX_LINE` characters is cut there, so that a binary blob cannot fill the memory; its
    record will not parse and is set aside.
    """
    start = stream.read(2)
    if start in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16-le" if start == b"\xff\xfe" else "utf-16-be"
        wide = io.TextIOWrapper(io.BufferedReader(_Raw(stream)), encoding=encoding)
        yield from enumerate(wide, 1)
        return
    carried = start
    number = 0
    while True:
        raw = carried + stream.readline(MAX_LINE) if not carried.endswith(b"\n") else carried
        carried = b""
        if not raw:
            return
        number += 1
        while raw[-1:] != b"\n" and len(raw) >= MAX_LINE:
            rest = stream.readline(MAX_LINE)
            if not rest or rest.endswith(b"\n"):
                break
        if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
            raw = raw[3:]
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            line = raw.decode("latin-1")
        yield number, line.rstrip("\r\n") + ("\n" if raw.endswith(b"\n") else "")


class _Raw(io.RawIOBase):
    """Adapter: a readable stream as the raw layer that text decoding stands on."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def content_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
