"""What look-ups find, and which of it a capped list keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.tables import Table, Tabular

# Columns that mean something to the store alone.
_INNER = frozenset({"row", "bits", "fingerprint"})


@dataclass(frozen=True)
class Found(Tabular):
    """Molecules that a look-up has found.

    Attributes
    ----------
    table : pyarrow.Table
        Columns ``row`` (place in the store), those of `COLUMNS`, and ``similarity`` where it was a
        search for the nearest.
    total : int
        How many there were before a cap.
    """

    table: pa.Table
    total: int

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_table(self) -> Table:
        """One row for each molecule."""
        names = [name for name in self.table.column_names if name not in _INNER]
        left_out = f"{len(self):,} of {self.total:,}" if self.capped else f"{len(self):,}"
        columns = {name: [_shown(v) for v in self.table[name].to_pylist()] for name in names}
        return Table(columns, f"{left_out} molecule{'s' if self.total != 1 else ''}")

    @property
    def capped(self) -> bool:
        """Whether some were left out."""
        return self.total > len(self)


@dataclass(frozen=True)
class ManyFound:
    """Rows that many look-ups have found.

    Attributes
    ----------
    indptr : int64 array, shape (look-ups + 1,)
        Look-up i has found ``rows[indptr[i]:indptr[i + 1]]``.
    rows : int64 array
        Places in the store; `Database.rows` fetches them.
    """

    indptr: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    def of(self, look_up: int) -> npt.NDArray[np.int64]:
        """Rows of one look-up."""
        return self.rows[self.indptr[look_up] : self.indptr[look_up + 1]]


def _shown(value: Any) -> Any:
    """Lists of names as one text."""
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def capped(
    table: pa.Table,
    cap: int | None = None,
    priorities: Sequence[str] = (),
    mass: float | None = None,
) -> Found:
    """The first so many of `cascade`, in the order of the table; all without a cap."""
    total = table.num_rows
    if cap is not None and total > cap:
        table = table.take(np.sort(cascade(table, priorities, mass)[:cap]))
    return Found(table, total)


def cascade(
    table: pa.Table, priorities: Sequence[str], mass: float | None = None
) -> npt.NDArray[np.int64]:
    """Rows in the order in which a capped list takes them.

    Those of wanted sources first, then, where a mass was asked for, the nearest by mass, and equal
    ones by key.

    Parameters
    ----------
    table : pyarrow.Table
        With ``sources``, ``mass`` and ``key``.
    priorities : sequence of str
        Names of sources, the most wanted first.
    mass : float, optional
    """
    ranks = source_ranks(table, priorities)
    away = np.zeros(len(ranks))
    if mass is not None:
        away = np.abs(table["mass"].to_numpy() - mass)
    # Keys are hashes already: their order is fixed and tells nothing.
    return np.lexsort((np.array(table["key"].to_pylist()), away, ranks))


def source_ranks(table: pa.Table, priorities: Sequence[str]) -> npt.NDArray[np.int64]:
    """Place of the most wanted source of each molecule among the priorities; past them for none."""
    rank = {name: place for place, name in enumerate(priorities)}
    last = len(rank)
    ranks = [min((rank.get(s, last) for s in sources), default=last)
             for sources in table["sources"].to_pylist()]  # fmt: skip
    return np.array(ranks, np.int64)
