"""Stream the members of one huge JSON array or object in constant memory.

Written here and not with ijson, which stops at the first member that is no valid JSON and builds
every string, however long, in memory.
"""

import codecs
import re
import sys
from collections.abc import Iterator

from mzseek.core.errors import InputError, Reason
from mzseek.io.sources import MAX_MEMBER, MAX_VALUES, Readable

# Strings, brackets and commas decide where a member ends. The patterns run over everything up to
# the next mark that matters, whole strings and small groups included; possessive, so that nothing
# is matched again and no string, however long, fills the memory.
_STRING = r'"(?:[^"\\]++|\\.)*+"'


def _group(inner: str) -> str:
    """Return a pattern of a pair of brackets with text, strings and such groups inside."""
    return rf'[\[{{](?:[^"\[\]{{}}]++|{_STRING}{inner})*+[\]}}]'


_GROUPS = _group("|" + _group("|" + _group("")))
_TO_MARK = re.compile(rf'(?:[^"\[\]{{}},]++|{_STRING}|{_GROUPS})*+', re.DOTALL)
_TO_BRACKET = re.compile(rf'(?:[^"\[\]{{}}]++|{_STRING}|{_GROUPS})*+', re.DOTALL)
_TO_OPEN_STRING = re.compile(rf'(?:[^"]++|{_STRING})*+', re.DOTALL)
_STRINGS = re.compile(_STRING, re.DOTALL)
_IN_STRING = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OPENING = re.compile(r"[\[{]++")
_CLOSING = re.compile(r"[\]}]++")
_BLANK = " \t\r\n"
# Deeper than any real file; what is so deep is not looked at bracket by bracket.
_DEEP = 64

Member = tuple[str, str | None]


def iter_members(stream: Readable, name: str, chunk: int = 1 << 20) -> Iterator[Member]:
    """Yield the raw text of each member of the top-level array or object.

    Yields ``("array", text)`` or ``("object", '"key": value')``; the text is None for a member that
    is longer than `MAX_MEMBER` characters or has more than `MAX_VALUES` values, which is skipped in
    constant memory. Members are split by their brackets and strings alone, so that one that is not
    valid JSON inside (a NaN, a missing value) does not take the rest of the file with it.

    Raises
    ------
    InputError
        The text is no array or object, ends before it is closed, or goes on after that.
    """
    texts = _decoded(stream, chunk)
    buffer = next((text for text in map(str.lstrip, texts) if text), "")
    if not buffer:
        raise InputError(name, "no JSON in it")
    if buffer[0] not in "[{":
        raise InputError(name, f"not a JSON array or object (it begins with {buffer[:20]!r})")
    kind, closing = ("array", "]") if buffer[0] == "[" else ("object", "}")
    splitter = _Splitter(closing)
    members = 0
    buffer = buffer[1:]
    while True:
        for text in splitter.split(buffer):
            members += 1
            yield kind, text
        if splitter.rest is not None:
            _refuse_more(splitter.rest, texts, name, members)
            return
        try:
            buffer = next(texts)
        except StopIteration:
            reason = f"ends in the middle of member {members + 1}"
            raise InputError(name, reason, "truncated") from None


def too_long() -> Reason:
    """Return the reason why a member was skipped."""
    reason = f"is longer than {MAX_MEMBER:,} characters, or has more than {MAX_VALUES:,} values"
    return Reason(reason, "too-large")


class _Splitter:
    """Cuts text into members, piece by piece; ``rest`` is what follows the closing bracket."""

    def __init__(self, closing: str) -> None:
        self.rest: str | None = None
        self._closing = closing
        self._depth = 0
        self._is_in_string = False
        self._escape = ""  # a backslash that a piece ended with
        self._parts: list[str] = []
        self._size = 0

    def split(self, piece: str) -> Iterator[str | None]:
        """Yield the members that end in this piece."""
        piece, self._escape = self._escape + piece, ""
        start = index = 0
        while index < len(piece):
            if self._is_in_string:
                index = self._leave_string(piece, index)
                continue
            if self._depth:
                index = self._go_deeper(piece, index)
                continue
            index = _end(_TO_MARK, piece, index)
            mark = piece[index : index + 1]
            if mark in {"[", "{", '"'}:
                self._depth += mark != '"'
                self._is_in_string = mark == '"'
            elif mark:
                self._keep(piece[start:index])
                start = index + 1
                if (member := self._take()) != "":
                    yield member
                if mark == self._closing:
                    self.rest = piece[start:]
                    return
            index += 1
        self._keep(piece[start : len(piece) - len(self._escape)])

    def _go_deeper(self, piece: str, index: int) -> int:
        """Return the index behind brackets that do not close the member."""
        if self._depth > _DEEP:
            # So few characters cannot close all that is open: their brackets need no order.
            end = _end(_TO_OPEN_STRING, piece, index, index + self._depth - 1)
            bare = _STRINGS.sub("", piece[index:end])
            self._depth += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
            if end > index:
                return end
        index = _end(_TO_BRACKET, piece, index)
        mark = piece[index : index + 1]
        if mark == '"':  # it is closed in a later piece, or far away
            self._is_in_string = True
            return index + 1
        opened = _end(_OPENING, piece, index)
        self._depth += opened - index
        closed = min(_end(_CLOSING, piece, opened), opened + self._depth)
        self._depth -= closed - opened
        return closed

    def _leave_string(self, piece: str, index: int) -> int:
        """Return the index behind the string's end, or the end of the piece."""
        index = _end(_IN_STRING, piece, index)
        if index == len(piece):
            return index
        if piece[index] == '"':
            self._is_in_string = False
            return index + 1
        self._escape = "\\"
        return len(piece)

    def _keep(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_MEMBER:
            self._parts.clear()
        else:
            self._parts.append(text)

    def _take(self) -> str | None:
        """Return the member that has ended; None for one past its bounds."""
        size, self._size = self._size, 0
        parts, self._parts = self._parts, []
        text = "".join(parts).strip()
        if size > MAX_MEMBER or text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
            return None
        return text


def _end(pattern: re.Pattern[str], text: str, start: int, limit: int = sys.maxsize) -> int:
    """Return where a match that begins at ``start`` ends."""
    match = pattern.match(text, start, limit)
    return match.end() if match else start


def _decoded(stream: Readable, chunk: int) -> Iterator[str]:
    """Yield the stream in pieces of text."""
    data = stream.read(max(chunk, 4))
    wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    decode = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")("replace").decode
    while data:
        yield decode(data)
        data = stream.read(chunk)
    yield decode(b"", True)


def _refuse_more(rest: str, texts: Iterator[str], name: str, members: int) -> None:
    while not rest.strip(_BLANK):
        try:
            rest = next(texts)
        except StopIteration:
            return
    shown = rest.strip(_BLANK)[:20]
    raise InputError(
        name,
        f"goes on after its end, at member {members} ({shown!r}); "
        "expected one JSON array or object",
    )
