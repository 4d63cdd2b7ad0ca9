"""Skipped records: where each was, and a reason code.

Functions that work through batches take ``rejects``: a list that gets ``(where, reason)`` pairs, or
a callable that gets the two as arguments.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

Report = Callable[[str, str], object]
Rejects = list[tuple[str, str]] | Report

MAX_KINDS = 200
OTHER = "other reasons"

# Reasons quote what they refuse: so much of it decides about the kind, and is kept as an example.
_MOST_TEXT, _MOST_KEPT = 600, 2000
_NUMBER = r"[+-]?(?:\d++(?:[.,]\d++)*+(?:[eE][+-]?\d++)?+[+-]*+|nan|inf)(?!\w)"
# Where something that varies begins. An adduct looks like a text in brackets, and is a word.
_VARIES = re.compile(
    r"(?P<adduct>\[\d{0,2}M[^\[\]\s]{0,60}\][\d+-]{0,4})"
    r"|(?P<bracket>\s?\(|\[)"
    r"""|(?P<quoted>(?<!\w)(?:'(?:[^'\\…]|\\.)*+(?:'|…'?)|"(?:[^"\\…]|\\.)*+(?:"|…"?)))"""
    rf"|(?P<numbers>(?<![\w.]){_NUMBER}(?:,?\s+{_NUMBER})*+)"
)
_CLOSES = {"(": ")", "[": "]"}


def reporter(rejects: Rejects) -> Report:
    """Callable that notes a reject, whichever form was given.

    Examples
    --------
    >>> rejects = []
    >>> reporter(rejects)("library.mgf: record 3", "has no peaks")
    >>> rejects
    [('library.mgf: record 3', 'has no peaks')]
    """
    if isinstance(rejects, list):
        return lambda where, reason: rejects.append((where, reason))
    return rejects


class Reason(str):
    """A reason that carries a code, for whoever must tell it from others and not read its words.

    Examples
    --------
    >>> reason = Reason("its candidate list is empty", code="empty list")
    >>> reason, code_of(reason), code_of("has no peaks")
    ('its candidate list is empty', 'empty list', None)
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, *, code: str) -> "Reason":
        """A text with a code."""
        made = super().__new__(cls, text)
        made.code = code
        return made


def code_of(reason: str) -> str | None:
    """The code of a reason, if it carries one."""
    return reason.code if isinstance(reason, Reason) else None


@dataclass
class ReasonGroup:
    """Rejects of one kind: what their reasons have in common, how many, and the first of them."""

    kind: str
    count: int
    where: str
    reason: str


class Groups:
    """Rejects by kind, gathered one by one: give it as ``rejects``.

    Two reasons are of one kind if they differ only in numbers, quotations and what stands in
    brackets. A kind is worded like its reasons, with ``…`` for what differs among them and without
    brackets that differ. Memory does not grow with the number of rejects: beyond `MAX_KINDS`
    kinds, further ones are counted together, as `OTHER`.

    Examples
    --------
    >>> groups = Groups()
    >>> groups("a", "says it has 9 peaks, but has 8")
    >>> groups("b", "says it has 3 peaks, but has 8")
    >>> groups("c", "is an MS1 spectrum, expected MS2 or higher")
    >>> [(group.kind, group.count) for group in groups.by_count()]
    [('says it has … peaks, but has 8', 2), ('is an MS1 spectrum, expected MS2 or higher', 1)]
    """

    def __init__(self) -> None:
        self.total = 0
        self._gathered: dict[tuple[str, ...], _Gathered] = {}
        self._other = _Gathered("", "", ())

    def __call__(self, where: str, reason: str) -> None:
        """Take note of one."""
        self.total += 1
        fixed, varying = _taken_apart(reason[:_MOST_TEXT])
        gathered = self._gathered.get(fixed)
        if gathered is None and len(self._gathered) < MAX_KINDS:
            gathered = self._gathered[fixed] = _Gathered(where, reason, varying)
        elif gathered is None:
            if not self._other.count:
                self._other = _Gathered(where, reason, ())
            gathered = self._other
        gathered.add(varying)

    def by_count(self) -> list[ReasonGroup]:
        """The kinds, the most frequent first, `OTHER` last; their counts add up to ``total``."""
        found = [
            ReasonGroup(each.worded(fixed), each.count, each.where, each.reason)
            for fixed, each in self._gathered.items()
        ]
        found.sort(key=lambda group: -group.count)
        other = self._other
        if other.count:
            found.append(ReasonGroup(OTHER, other.count, other.where, other.reason))
        return found


def grouped(rejects: Iterable[tuple[str, str]]) -> list[ReasonGroup]:
    """Rejects by kind, the most frequent first: see `Groups`.

    Examples
    --------
    >>> [(g.kind, g.count) for g in grouped([("a", "has 3 peaks"), ("b", "has no adduct"),
    ...                                      ("c", "has no adduct")])]
    [('has no adduct', 2), ('has 3 peaks', 1)]
    """
    groups = Groups()
    for where, reason in rejects:
        groups(where, reason)
    return groups.by_count()


class _Gathered:
    """Rejects of one kind: the first of them, and which of its varying parts others differ in."""

    def __init__(self, where: str, reason: str, varying: tuple[str, ...]) -> None:
        self.count = 0
        self.where, self.reason = where[:_MOST_KEPT], reason[:_MOST_KEPT]
        self._first = varying
        self._differs = [False] * len(varying)

    def add(self, varying: tuple[str, ...]) -> None:
        self.count += 1
        if varying is not self._first:
            for place, (mine, other) in enumerate(zip(self._first, varying, strict=False)):
                self._differs[place] |= mine != other

    def worded(self, fixed: tuple[str, ...]) -> str:
        text = fixed[0]
        for part, differs, after in zip(self._first, self._differs, fixed[1:], strict=True):
            is_aside = not part or part.lstrip().startswith("(")
            text += part if not differs else "" if is_aside else "…"
            text += after
        return text.strip() or "…"


@lru_cache(maxsize=1024)
def _taken_apart(reason: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands between the parts that may vary (one more than those), and those parts.

    The last part is what stands in round brackets at the end, often there and often not.
    """
    fixed: list[str] = []
    varying: list[str] = []
    begin = place = 0
    while match := _VARIES.search(reason, place):
        place = match.end()
        if match["adduct"]:
            continue
        if match["bracket"]:
            place = _after_bracket(reason, match.end() - 1)
        fixed.append(reason[begin : match.start()])
        varying.append(reason[match.start() : place])
        begin = place
    if begin < len(reason) or not varying[-1:] or varying[-1].lstrip()[:1] != "(":
        fixed.append(reason[begin:])
        varying.append("")
    return (*fixed, ""), tuple(varying)


def _after_bracket(text: str, place: int) -> int:
    """Where the text in brackets that begins here is over; one cut short ends with its ``…``."""
    opens = text[place]
    depth = 0
    for at in range(place, len(text)):
        if text[at] == opens:
            depth += 1
        elif text[at] == _CLOSES[opens]:
            depth -= 1
            if depth == 0:
                return at + 1
    cut = text.find("…", place)
    return cut + 1 if cut >= 0 else len(text)
