"""Where bytes come from: plain files, gzip files, and members of zip archives, read alike."""

import codecs
import gzip
import hashlib
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
_BLOCK = 1 << 20
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
    past `MAX_LINE` bytes is broken there, so that a binary blob cannot fill the memory; its record
    will not parse and is set aside.
    """
    number = 0
    pending = b""
    for block in _utf8_blocks(stream):
        pending += block
        end = pending.rfind(b"\n") + 1
        if end == 0:
            if len(pending) <= MAX_LINE:
                continue
            end = MAX_LINE
        whole, pending = pending[:end], pending[end:]
        for line in _split(_decode(whole)):
            number += 1
            yield number, line
    for line in _split(_decode(pending)):
        number += 1
        yield number, line


def _utf8_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream without its byte-order mark; UTF-16 is turned into UTF-8 on the way."""
    block = stream.read(_BLOCK)
    if block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        while block:
            yield decoder.decode(block).encode()
            block = stream.read(_BLOCK)
        return
    block = block.removeprefix(codecs.BOM_UTF8)
    while block:
        yield block
        block = stream.read(_BLOCK)


def _decode(data: bytes) -> str:
    """Text of whole lines; one that is not UTF-8 is taken for Latin-1."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\n".join(_decode_line(line) for line in data.split(b"\n"))
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _decode_line(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _split(text: str) -> list[str]:
    """Lines with their ends (`str.splitlines` would also split at form feeds and the like)."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def content_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
