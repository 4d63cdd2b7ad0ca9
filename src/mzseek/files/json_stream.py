"""Members of one huge JSON array or object, one at a time, in constant memory."""

import codecs
import re
from collections.abc import Iterator

from mzseek.errors import InputError
from mzseek.files.source import Readable

MAX_MEMBER = 512 * 1024 * 1024

# Strings, brackets and commas are all that decides where a member ends. A string that the chunk
# cuts in two is matched up to the cut, lest the brackets inside it be counted.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?P<closed>"|\\?\Z)|[\[\]{},]', re.DOTALL)


def iter_members(stream: Readable, name: str, chunk: int = 1 << 20) -> Iterator[tuple[str, str]]:
    """Raw text of each member of the top-level array or object.

    Yields ``("array", text)`` or ``("object", '"key": value')``. Members are split by their
    brackets and strings alone, so that one that is not valid JSON inside (a NaN, a missing
    value) does not take the rest of the file with it.

    Raises
    ------
    InputError
        The text is no array or object, ends before it is closed, or goes on after that.
    """
    data = stream.read(max(chunk, 4))
    wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    decode = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")("replace").decode
    buffer = decode(data)
    while not buffer.strip():
        data = stream.read(chunk)
        if not data:
            raise InputError(name, "no JSON in it")
        buffer += decode(data)
    buffer = buffer.lstrip()
    if buffer[0] not in "[{":
        raise InputError(name, f"not a JSON array or object (it begins with {buffer[:20]!r})")
    kind = "array" if buffer[0] == "[" else "object"
    closing = "]" if kind == "array" else "}"
    depth, start, position, members = 0, 1, 1, 0
    while True:
        resume = position
        for token in _TOKEN.finditer(buffer, position):
            mark = token.group()
            if mark[0] == '"':
                if token["closed"] != '"':
                    break
                resume = token.end()
                continue
            resume = token.end()
            if mark in "[{":
                depth += 1
            elif mark in "]}" and depth > 0:
                depth -= 1
            elif depth == 0 and mark in ",]}":
                text = buffer[start : token.start()].strip()
                if text:
                    members += 1
                    yield kind, text
                if mark == closing:
                    _refuse_more(buffer[resume:] + decode(stream.read(chunk)), name, members)
                    return
                start = resume
        buffer, position, start = buffer[start:], resume - start, 0
        if len(buffer) > MAX_MEMBER:
            raise InputError(name, f"member {members + 1} is larger than {MAX_MEMBER:,} bytes")
        # Reading as much again as is pending keeps the work linear in a member's size.
        data = stream.read(max(chunk, len(buffer)))
        if not data:
            raise InputError(name, f"ends in the middle of member {members + 1}")
        buffer += decode(data)


def _refuse_more(rest: str, name: str, members: int) -> None:
    if rest.strip():
        raise InputError(
            name,
            f"goes on after its end, at member {members} ({rest.strip()[:20]!r}); "
            "expected one JSON array or object",
        )
