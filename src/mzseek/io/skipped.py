"""Skipped records: where each was, why, and a code of the reason; counts by code.

Functions that work through batches take ``rejects``: a list that gets `Skipped` records, or a
callable that gets ``(where, reason)`` as two arguments.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mzseek.core.errors import DatasetError, Reason
from mzseek.io.text_tables import cell_text, text_cell
from mzseek.io.writing import atomic_file

Report = Callable[[str, str], object]

SKIPPED_FILE = "rejects.tsv"  # of the folders that mzseek writes
_HEADER = "where\treason\n"

MAX_KINDS = 200
OTHER = "other reasons"
_MAX_KEPT = 2000  # characters of a reason, which quotes what it refuses
# What varies among reasons of one kind that have no code, being read from a table of them.
_VARIES = re.compile(r"""'[^']*'|"[^"]*"| ?\([^()]*\)|(?<![A-Za-z])\d[\d.,]*""")


class Skipped(NamedTuple):
    """A skipped record: where it was and why.

    Examples
    --------
    >>> Skipped("library.mgf: record 3", Reason("has no peaks", "no-peaks")).code
    'no-peaks'
    >>> Skipped("library.mgf: record 3", "has no peaks").code
    """

    where: str
    reason: str

    @property
    def code(self) -> str | None:
        """Code of the reason (see `mzseek.core.errors.REASON_CODES`), if it carries one."""
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
    """Skipped records of one kind: the kind, their number, and the first of them."""

    kind: str
    count: int
    where: str
    reason: str


class SkippedGroups:
    """Skipped records by kind, gathered one by one: pass it as ``rejects``.

    The kind is the code of the reason. Reasons without one, as tables of skipped records have them,
    are of one kind if they differ only in numbers, quotations and brackets, for which the kind has
    ``…``. Memory does not grow with the number of records: beyond `MAX_KINDS` kinds, further ones
    are counted together, as `OTHER`.

    Examples
    --------
    >>> groups = SkippedGroups()
    >>> groups("a", Reason("says it has 9 peaks, but has 8", "peak-count"))
    >>> groups("b", Reason("says it has 3 peaks, but has 8", "peak-count"))
    >>> groups("c", "SMILES 'C(' is not valid")
    >>> groups("d", "is an MS1 spectrum")
    >>> [(group.kind, group.count, group.where) for group in groups.by_count()]
    [('peak-count', 2, 'a'), ('SMILES … is not valid', 1, 'c'), ('is an MS1 spectrum', 1, 'd')]
    """

    def __init__(self, records: Iterable[tuple[str, str]] = ()) -> None:
        self.total = 0
        self._groups: dict[str, ReasonGroup] = {}
        for where, reason in records:
            self(where, reason)

    def __call__(self, where: str, reason: str) -> None:
        """Count one record."""
        self.total += 1
        reason_kept = reason[:_MAX_KEPT]
        kind = Skipped(where, reason).code or _VARIES.sub("…", reason_kept).strip() or "…"
        if kind not in self._groups and len(self._groups) >= MAX_KINDS:
            kind = OTHER
        group = self._groups.setdefault(kind, ReasonGroup(kind, 0, where[:_MAX_KEPT], reason_kept))
        group.count += 1

    def by_count(self) -> list[ReasonGroup]:
        """Return the kinds, the most frequent first, `OTHER` last; counts add up to ``total``."""
        return sorted(self._groups.values(), key=lambda g: (g.kind == OTHER, -g.count))


def write_skipped(path: Path, records: Iterable[tuple[str, str]]) -> None:
    """Write skipped records as a table: where each was, and why."""
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8") as stream:
        stream.write(_HEADER)
        stream.writelines(f"{text_cell(where)}\t{text_cell(why)}\n" for where, why in records)


def read_skipped(path: Path) -> list[tuple[str, str]]:
    """Read a table of `write_skipped`; raises `DatasetError` where it is damaged."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: is damaged (byte {error.start + 1} is no text)") from error
    if not text.startswith(_HEADER):
        raise DatasetError(f"{path}: is damaged (it does not begin with where, tab, reason)")
    records = []
    for number, line in enumerate(text.split("\n")[1:], 2):
        where, tab, reason = line.partition("\t")
        if line and (not tab or "\t" in reason):
            raise DatasetError(f"{path}: line {number} is damaged (expected where, tab, reason)")
        if line:
            records.append((cell_text(where), cell_text(reason)))
    return records
