"""Skipped records: where each was, why, and a code of the reason; counts by kind of reason.

Functions that work through batches take ``rejects``: a list that gets `Skipped` records, or a
callable that gets ``(where, reason)`` as two arguments.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

Report = Callable[[str, str], object]

MAX_KINDS = 200
OTHER = "other reasons"

# Reasons quote what they refuse: so much of a reason decides about its kind, and is kept of it.
_MAX_TEXT, _MAX_KEPT = 600, 2000
_NUMBER = r"[+-]?(?:\d++(?:[.,]\d++)*+(?:[eE][+-]?\d++)?+[+-]*+|nan|inf)(?!\w)"


def _brackets(opening: str, closing: str) -> str:
    """Pattern of a bracketed text, nested twice at most; one cut short ends with ``…``."""
    inner = f"[^{opening}{closing}]"
    for _ in range(2):
        inner = f"(?:[^{opening}{closing}…]++|{opening}{inner}*+{closing})"
    return f"{opening}{inner}*+(?:{closing}|…|\\Z)"


# Parts of a reason that vary from record to record. An adduct is a word, though in brackets.
_VARIES = re.compile(
    r"(?P<adduct>\[\d{0,2}M[^\[\]\s]{0,60}\][\d+-]{0,4})"
    r"|\s?"
    + _brackets(r"\(", r"\)")
    + "|"
    + _brackets(r"\[", r"\]")
    + r"""|(?<!\w)(?:'(?:[^'\\…]|\\.)*+(?:'|…'?)|"(?:[^"\\…]|\\.)*+(?:"|…"?))"""
    rf"|(?<![\w.]){_NUMBER}(?:,?\s+{_NUMBER})*+"
)


class Reason(str):
    """A reason with a code, to tell it from others without reading its words."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, *, code: str) -> "Reason":
        """Make a text with a code."""
        reason = super().__new__(cls, text)
        reason.code = code
        return reason


class Skipped(NamedTuple):
    """A skipped record: where it was and why.

    Examples
    --------
    >>> Skipped("list 3", Reason("its candidate list is empty", code="empty list")).code
    'empty list'
    >>> Skipped("library.mgf: record 3", "has no peaks").code
    """

    where: str
    reason: str

    @property
    def code(self) -> str | None:
        """Code of the reason, if it carries one."""
        return self.reason.code if isinstance(self.reason, Reason) else None


SkipTarget = list[Any] | Report  # a list gets `Skipped` records


def reporter(target: SkipTarget) -> Report:
    """Return a callable that notes a skipped record, whichever form of ``target`` was given.

    Examples
    --------
    >>> rejects = []
    >>> reporter(rejects)("library.mgf: record 3", "has no peaks")
    >>> rejects
    [Skipped(where='library.mgf: record 3', reason='has no peaks')]
    """
    if isinstance(target, list):
        return lambda where, reason: target.append(Skipped(where, reason))
    return target


@dataclass
class ReasonGroup:
    """Skipped records of one kind: the kind in words, their number, and the first of them."""

    kind: str
    count: int
    where: str
    reason: str


class SkippedGroups:
    """Skipped records by kind, gathered one by one: pass it as ``rejects``.

    Two reasons are of one kind if they differ only in numbers, quotations and bracketed text. A
    kind is worded like its reasons, with ``…`` for what differs among them and without brackets
    that differ. Memory does not grow with the number of records: beyond `MAX_KINDS` kinds, further
    ones are counted together, as `OTHER`.

    Examples
    --------
    >>> groups = SkippedGroups()
    >>> groups("a", "says it has 9 peaks, but has 8")
    >>> groups("b", "says it has 3 peaks, but has 8")
    >>> groups("c", "is an MS1 spectrum, expected MS2 or higher")
    >>> [(group.kind, group.count) for group in groups.by_count()]
    [('says it has … peaks, but has 8', 2), ('is an MS1 spectrum, expected MS2 or higher', 1)]
    """

    def __init__(self, records: Iterable[tuple[str, str]] = ()) -> None:
        self.total = 0
        # By the fixed parts of the reasons: the group, the varying parts of its first reason, and
        # which of those other reasons differ in.
        self._groups: dict[
            tuple[str, ...] | None, tuple[ReasonGroup, tuple[str, ...], list[bool]]
        ] = {}
        for where, reason in records:
            self(where, reason)

    def __call__(self, where: str, reason: str) -> None:
        """Count one record."""
        self.total += 1
        fixed, varying = _split(reason[:_MAX_TEXT])
        key = fixed if fixed in self._groups or len(self._groups) < MAX_KINDS else None
        if key not in self._groups:
            group = ReasonGroup(OTHER, 0, where[:_MAX_KEPT], reason[:_MAX_KEPT])
            self._groups[key] = group, varying, [False] * len(varying)
        group, first, differs = self._groups[key]
        group.count += 1
        if key is not None and varying != first:
            differs[:] = [d or a != b for d, a, b in zip(differs, first, varying, strict=True)]

    def by_count(self) -> list[ReasonGroup]:
        """Return the kinds, the most frequent first, `OTHER` last; counts add up to ``total``."""
        for fixed, (group, varying, differs) in self._groups.items():
            if fixed is not None:
                parts = [
                    part if not differ else "" if part.lstrip()[:1] in ("", "(") else "…"
                    for part, differ in zip(varying, differs, strict=True)
                ]
                text = "".join(a + b for a, b in zip(fixed, parts, strict=True))
                group.kind = text.strip() or "…"
        ordered = sorted(
            self._groups.items(), key=lambda item: (item[0] is None, -item[1][0].count)
        )
        return [group for _, (group, _, _) in ordered]


@lru_cache(maxsize=1024)
def _split(reason: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a reason into fixed and varying parts, which alternate.

    The last varying part is the round brackets at the end, which are often missing: then it is "".
    """
    fixed, varying, begin = [], [], 0
    for match in _VARIES.finditer(reason):
        if not match["adduct"]:
            fixed.append(reason[begin : match.start()])
            varying.append(match[0])
            begin = match.end()
    if begin < len(reason) or not varying or varying[-1].lstrip()[:1] != "(":
        fixed.append(reason[begin:])
        varying.append("")
    return tuple(fixed), tuple(varying)
