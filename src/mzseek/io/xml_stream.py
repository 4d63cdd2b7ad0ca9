"""Stream the elements of one huge XML file in constant memory."""

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from mzseek.io.sources import (
    MAX_DEPTH,
    MAX_ELEMENT_TEXT,
    MAX_ELEMENTS,
    MAX_NAMES,
    MAX_TAG,
    Readable,
)

_CHUNK = 1 << 16


class BrokenXmlError(Exception):
    """XML that cannot be read on; the message says why."""


@dataclass(slots=True)
class Element:
    """An element with its attributes, children and the pieces of text directly inside it.

    Names have no prefix. ``problem`` is set if it is past its bounds: it then holds only what came
    before. ``size`` counts the characters of its texts and attributes, children included, for
    requested elements only.
    """

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    problem: str | None = None
    size: int = 0

    @property
    def text(self) -> str:
        """Text directly inside it."""
        return "".join(self.texts)

    def all(self, *path: str) -> list["Element"]:
        """Return the elements below it that a path of names leads to.

        Examples
        --------
        >>> run = Element("run", children=[Element("list", children=[Element("a"), Element("b")])])
        >>> [element.name for element in run.all("list", "b")]
        ['b']
        """
        inside = [self]
        for name in path:
            inside = [
                child for element in inside for child in element.children if child.name == name
            ]
        return inside


def iter_elements(stream: Readable, names: Collection[str]) -> Iterator[Element]:
    """Yield the elements of these names, wherever they are, each with all that is inside it.

    One inside another of them is yielded after the outer one, which lacks what follows the inner
    one (mzXML's scans are so nested). An element past its bounds is yielded with a ``problem``, and
    its end is looked for in constant memory.

    Raises
    ------
    BrokenXmlError
        Not well formed, past the bounds of a file, or with entities of its own.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO(b'<run><scan num="1"><peaks>AA</peaks></scan><scan num="2"/></run>')
    >>> [(scan.attributes["num"], len(scan.children)) for scan in iter_elements(stream, ["scan"])]
    [('1', 1), ('2', 0)]
    """
    collector = _Collector(names)
    seen_names: dict[str, str] = {}
    parser = expat.ParserCreate(intern=seen_names)
    parser.buffer_text = True
    parser.buffer_size = _CHUNK
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.text
    parser.EntityDeclHandler = _refuse_entity
    fed = 0
    more = True
    while more:
        data = stream.read(_CHUNK)
        more = bool(data)
        fed += len(data)
        problem: Exception | None = None
        try:
            parser.Parse(data, not more)
        except (expat.ExpatError, BrokenXmlError, ValueError, LookupError) as error:
            problem = error  # the last two: encodings that are unknown
        while collector.done:
            yield collector.done.popleft()
        if problem is not None:
            raise BrokenXmlError(str(problem)) from problem
        if fed - parser.CurrentByteIndex > MAX_TAG:
            raise BrokenXmlError(f"a tag is longer than {MAX_TAG:,} bytes")
        if len(seen_names) > MAX_NAMES:
            raise BrokenXmlError(f"more than {MAX_NAMES:,} names of elements and attributes")


def _refuse_entity(*_: object) -> None:
    raise BrokenXmlError("it declares entities, which can unfold without end")


class _Collector:
    """Builds the requested elements out of the parser's events; all others leave no trace."""

    def __init__(self, names: Collection[str]) -> None:
        self.done: deque[Element] = deque()
        self._names = frozenset(names)
        self._depth = 0
        self._requested: list[Element] = []  # those that are open; `_YIELDED` once yielded
        self._open: list[Element] = []  # these and what is open inside them
        self._elements = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BrokenXmlError(f"elements are nested deeper than {MAX_DEPTH}")
        element = Element(tag.rpartition(":")[2], attributes)
        if element.name in self._names:
            if self._requested and self._requested[-1] is not _YIELDED:
                self.done.append(self._requested[-1])
                self._requested[-1] = _YIELDED
            self._requested.append(element)
            self._open.append(element)
            self._elements = 0
        elif self._open:
            self._open.append(element)
            outer = self._requested[-1]
            if outer is _YIELDED or outer.problem is not None:
                return
            self._elements += 1
            if self._elements > MAX_ELEMENTS:
                outer.problem = f"holds more than {MAX_ELEMENTS:,} elements"
            elif self._fits(outer, sum(map(len, attributes.values()))):
                self._open[-2].children.append(element)

    def text(self, text: str) -> None:
        if self._open:
            outer = self._requested[-1]
            if outer is not _YIELDED and outer.problem is None and self._fits(outer, len(text)):
                self._open[-1].texts.append(text)

    def _fits(self, outer: Element, more: int) -> bool:
        outer.size += more
        if outer.size > MAX_ELEMENT_TEXT:
            outer.problem = f"holds more than {MAX_ELEMENT_TEXT:,} characters"
        return outer.problem is None

    def end(self, tag: str) -> None:
        self._depth -= 1
        if not self._open:
            return
        self._open.pop()
        if tag.rpartition(":")[2] in self._names:
            element = self._requested.pop()
            if element is not _YIELDED:
                self.done.append(element)


_YIELDED = Element("")
