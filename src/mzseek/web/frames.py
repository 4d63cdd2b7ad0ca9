"""Messages between the server and its workers: JSON objects with an optional body of bytes."""

import json
import struct
from typing import Any, BinaryIO, Protocol

_SIZES = struct.Struct(">IQ")  # of the JSON and of the body
_MAX_HEAD, _MAX_BODY = 1 << 30, 1 << 34

Message = dict[str, Any]


class AsyncReader(Protocol):
    """The part of `asyncio.StreamReader` that is needed."""

    async def readexactly(self, n: int, /) -> bytes:
        """Return exactly so many bytes."""


def packed(message: Message, body: bytes = b"") -> bytes:
    """Return a message as bytes.

    Examples
    --------
    >>> import io
    >>> read(io.BytesIO(packed({"id": 1}, b"result")))
    ({'id': 1}, b'result')
    """
    head = json.dumps(message).encode()
    return _SIZES.pack(len(head), len(body)) + head + body


def read(stream: BinaryIO) -> tuple[Message, bytes]:
    """Read a message; raise `EOFError` where the stream ends."""
    head, body = _sizes(_exactly(stream, _SIZES.size))
    message: Message = json.loads(_exactly(stream, head))
    return message, _exactly(stream, body)


async def read_async(stream: AsyncReader) -> tuple[Message, bytes]:
    """Read a message; raise `asyncio.IncompleteReadError` where the stream ends."""
    head, body = _sizes(await stream.readexactly(_SIZES.size))
    message: Message = json.loads(await stream.readexactly(head))
    return message, await stream.readexactly(body)


def _sizes(data: bytes) -> tuple[int, int]:
    head, body = _SIZES.unpack(data)
    if head > _MAX_HEAD or body > _MAX_BODY:
        raise EOFError("what was read is no message")
    return head, body


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
