"""Stream the members of one huge JSON array or object in constant memory."""

import codecs
import re
import sys
from collections.abc import Iterator

from mzseek.core.errors import InputError
from mzseek.io.sources import MAX_MEMBER, MAX_VALUES, Readable

# Strings, brackets and commas are all that decides where a member ends. The patterns run over
# everything up to the next mark that matters, whole strings and small groups included; possessive,
# so that nothing is gone over again and again and no string, however long, fills the memory.
_STRING = r'"(?:[^"\\]++|\\.)*+"'


def _group(inner: str) -> str:
    """Pattern of a pair of brackets with text, strings and such groups inside."""
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
    """Raw text of each member of the top-level array or object.

    Yields ``("array", text)`` or ``("object", '"key": value')``; the text is None for a member that
    is longer than `MAX_MEMBER` characters or has more than `MAX_VALUES` values, which is skipped in
    constant memory. Members are split by their brackets and strings alone, so that one that is not
    valid JSON inside (a NaN, a missing value) does not take the rest of the file with it.

    Raises
    ------
    InputError
        The text is no array or object, ends before it is closed, or goes on after that.
    """
    texts = _texts(stream, chunk)
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
            raise InputError(name, reason) from None


def too_long() -> str:
    """Why a member was skipped, for whoever reports it."""
    return f"is longer than {MAX_MEMBER:,} characters, or has more than {MAX_VALUES:,} values"


class _Splitter:
    """Cuts text into members, piece by piece.

    Attributes
    ----------
    rest : str or None
        What follows the closing bracket, once that was met.
    """

    def __init__(self, closing: str) -> None:
        self.rest: str | None = None
        self._closing = closing
        self._depth = 0
        self._is_in_string = False
        self._escape = ""  # a backslash that a piece ended with
        self._parts: list[str] = []
        self._size = 0

    def split(self, piece: str) -> Iterator[str | None]:
        """Members that end in this piece."""
        piece, self._escape = self._escape + piece, ""
        start = place = 0
        while place < len(piece):
            if self._is_in_string:
                place = self._leave_string(piece, place)
                continue
            if self._depth:
                place = self._go_deeper(piece, place)
                continue
            place = _end(_TO_MARK, piece, place)
            mark = piece[place : place + 1]
            if mark in {"[", "{", '"'}:
                self._depth += mark != '"'
                self._is_in_string = mark == '"'
            elif mark:
                self._keep(piece[start:place])
                start = place + 1
                if (member := self._take()) != "":
                    yield member
                if mark == self._closing:
                    self.rest = piece[start:]
                    return
            place += 1
        self._keep(piece[start : len(piece) - len(self._escape)])

    def _go_deeper(self, piece: str, place: int) -> int:
        """Place of the next thing that matters, past brackets that don't close the member's."""
        if self._depth > _DEEP:
            # So few characters cannot close all that is open: their brackets need no order.
            end = _end(_TO_OPEN_STRING, piece, place, place + self._depth - 1)
            bare = _STRINGS.sub("", piece[place:end])
            self._depth += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
            if end > place:
                return end
        place = _end(_TO_BRACKET, piece, place)
        mark = piece[place : place + 1]
        if mark == '"':  # it is closed in a later piece, or far away
            self._is_in_string = True
            return place + 1
        opened = _end(_OPENING, piece, place)
        self._depth += opened - place
        closed = min(_end(_CLOSING, piece, opened), opened + self._depth)
        self._depth -= closed - opened
        return closed

    def _leave_string(self, piece: str, place: int) -> int:
        """Place behind the string's end, or the end of the piece."""
        place = _end(_IN_STRING, piece, place)
        if place == len(piece):
            return place
        if piece[place] == '"':
            self._is_in_string = False
            return place + 1
        self._escape = "\\"
        return len(piece)

    def _keep(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_MEMBER:
            self._parts.clear()
        else:
            self._parts.append(text)

    def _take(self) -> str | None:
        """The member that is over; None for one past its bounds."""
        size, self._size = self._size, 0
        parts, self._parts = self._parts, []
        text = "".join(parts).strip()
        if size > MAX_MEMBER or text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
            return None
        return text


def _end(pattern: re.Pattern[str], text: str, place: int, limit: int = sys.maxsize) -> int:
    """Where a match that begins at a place ends."""
    match = pattern.match(text, place, limit)
    return match.end() if match else place


def _texts(stream: Readable, chunk: int) -> Iterator[str]:
    """The stream in pieces of text."""
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
