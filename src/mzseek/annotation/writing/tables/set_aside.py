"""``set-aside.tsv``: what was not answered, and why."""

from collections.abc import Iterator
from pathlib import Path

from mzseek.annotation.writing.spool import Spool
from mzseek.annotation.writing.tables.cells import row, unquoted, words

COLUMNS = ("where", "reason")
_FEW = 5


class SetAside:
    """Writes ``set-aside.tsv``; give it as ``rejects``.

    A run that goes on reads its spectra from the beginning and sets the same aside again, so the
    table is always begun anew.

    Attributes
    ----------
    count : int
    first : list of (str, str)
        Where and why, of the first few: a single file of answers has no table of them.
    """

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.count, self.first = 0, list[tuple[str, str]]()
        self._spool = Spool(path)
        self._spool.write(row(COLUMNS))

    def __call__(self, where: str, reason: str) -> None:
        """Add a row."""
        self.count += 1
        if len(self.first) < _FEW:
            self.first.append((words(where), words(reason)))
        self._spool.write(row([words(where), words(reason)]))

    def flush(self) -> None:
        """Have all rows so far in the file."""
        self._spool.place()

    def close(self) -> None:
        """Close the file."""
        self._spool.close()


def read_set_aside(path: Path) -> Iterator[tuple[str, str]]:
    """Where and why, row by row, of a table as `SetAside` writes it."""
    with path.open(encoding="utf-8", newline="\n") as file:
        next(file)
        for line in file:
            where, reason = (unquoted(cell) for cell in line.rstrip("\n").split("\t"))
            yield where, reason
