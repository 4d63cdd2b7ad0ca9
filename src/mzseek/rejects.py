"""What is set aside: where it was, and why.

Functions that work through batches take ``rejects``: a list that gets ``(where, reason)`` pairs, or
a callable that gets the two as arguments.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Report = Callable[[str, str], object]
Rejects = list[tuple[str, str]] | Report


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


@dataclass
class Group:
    """Rejects of one kind: how many, and the first of them."""

    kind: str
    count: int
    where: str
    reason: str


def grouped(rejects: Iterable[tuple[str, str]]) -> list[Group]:
    """Rejects by kind, the most frequent first.

    Reasons put what varies (numbers, names, quotations) behind the words that say what is wrong.

    Examples
    --------
    >>> [(g.kind, g.count) for g in grouped([("a", "has 3 peaks"), ("b", "has no adduct"),
    ...                                      ("c", "has no adduct")])]
    [('has no adduct', 2), ('has', 1)]
    """
    groups: dict[str, Group] = {}
    for where, reason in rejects:
        kind = re.split(r"[\d'\"(\[:]|, ", reason, maxsplit=1)[0].strip() or reason
        group = groups.setdefault(kind, Group(kind, 0, where, reason))
        group.count += 1
    return sorted(groups.values(), key=lambda group: -group.count)
