"""The bundled molecule database: sorted by mass, looked up in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import BundleError
from mzseek.core.ragged import ranges

if TYPE_CHECKING:
    from mzseek.database.store import Matches

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("smiles", pa.string()),
        ("formula", pa.string()),
        ("mass", pa.float64()),
        ("sources", pa.list_(pa.string())),
        ("identifiers", pa.list_(pa.string())),
        ("names", pa.list_(pa.string())),
    ]
)
COLUMNS = tuple(SCHEMA.names)
_LISTS = ("sources", "identifiers", "names")


@dataclass(frozen=True, eq=False)
class BundledMolecules:
    """Molecules of a bundle; look-ups are named as those of `mzseek.database.Database`.

    Attributes
    ----------
    table : pyarrow.Table
        ``key`` (first InChIKey block), ``smiles``, ``formula``, ``mass``, and lists of ``sources``,
        ``identifiers`` and ``names``; rising by mass.
    """

    table: pa.Table

    def __post_init__(self) -> None:
        """Refuse a table of another form."""
        if not self.table.schema.equals(SCHEMA):
            raise BundleError("the molecules have other columns than expected")
        if (np.diff(self.masses) < 0).any():
            raise BundleError("the molecules are not sorted by mass")

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Monoisotopic masses, rising."""
        # As `column_of`: without pandas.
        parts = [
            np.frombuffer(chunk.buffers()[1], np.float64)[chunk.offset : chunk.offset + len(chunk)]
            for chunk in self.table["mass"].chunks
            if len(chunk)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    @cached_property
    def smiles(self) -> list[str]:
        """SMILES of each molecule."""
        return list(self.table["smiles"].to_pylist())

    def many_by_mass(
        self, masses: npt.ArrayLike, ppm: float = 10.0
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Row pointers, and rows of the molecules within ppm of each of many neutral masses.

        Raises
        ------
        BundleError
            A mass is no positive number, or the ppm are out of range.
        """
        centres = np.asarray(masses, np.float64)
        if centres.ndim != 1 or not np.isfinite(centres).all() or (centres <= 0).any():
            raise BundleError("masses hold what is no positive number")
        if not 0 <= ppm < 1e6:
            raise BundleError(f"{ppm:g} ppm: expected 0 or more, below 1,000,000")
        width = centres * ppm * 1e-6
        low = np.searchsorted(self.masses, centres - width, side="left")
        high = np.searchsorted(self.masses, centres + width, side="right")
        return ranges(low, high)

    def by_mass(
        self, mass: float, ppm: float = 10.0, *, cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> "Matches":  # fmt: skip
        """Molecules within ppm of a neutral mass; as `mzseek.database.Database.by_mass`."""
        from mzseek.database.store import capped

        _, rows = self.many_by_mass([mass], ppm)
        return capped(self.rows(rows), cap, priorities, mass)

    def by_formula(self, formula: str) -> "Matches":
        """Molecules of a formula in Hill order."""
        from mzseek.database.store import Matches

        rows = np.flatnonzero(np.array(self.table["formula"].to_pylist(), object) == formula)
        return Matches(self.rows(rows), len(rows))

    def by_key(self, key: str) -> "Matches":
        """Molecules with this InChIKey, or first block of one."""
        from mzseek.database.store import Matches

        rows = self.rows_by_key.get(key.strip().upper()[:BLOCK_LENGTH], [])
        return Matches(self.rows(np.array(rows, np.int64)), len(rows))

    @cached_property
    def rows_by_key(self) -> Mapping[str, list[int]]:
        """Rows of the molecules of each key."""
        by_key: dict[str, list[int]] = {}
        for row, key in enumerate(self.table["key"].to_pylist()):
            by_key.setdefault(key, []).append(row)
        return by_key

    def rows(self, rows: npt.NDArray[np.integer], columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Molecules at these rows, in this order; column ``row`` has the rows."""
        indices = np.asarray(rows, np.int64)
        table = self.table.select(list(columns)).take(column_of(indices))
        return table.add_column(0, "row", column_of(indices))

    def collections(self) -> list[str]:
        """Names of the sources that its molecules come from."""
        return sorted({name for names in self.table["sources"].to_pylist() for name in names})


def column_of(values: npt.NDArray[Any]) -> pa.Array:
    """An array as a column; `pyarrow.array` would load pandas to see whether it is one of its own.

    Examples
    --------
    >>> column_of(np.array([1.5, 2.5])).to_pylist()
    [1.5, 2.5]
    """
    whole = np.ascontiguousarray(values)
    buffers = [None, pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(whole.dtype), len(whole), buffers)


def molecule_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Molecules as a table, sorted by mass, then key.

    Of those with the same key and mass (to six digits) the first stays, with the sources,
    identifiers and names of all.

    Parameters
    ----------
    rows : sequence of mappings
        With the fields of `SCHEMA`.
    """
    merged: dict[tuple[str, float], dict[str, Any]] = {}
    for row in rows:
        mass = round(float(row["mass"]), 6)
        empty: dict[str, list[str]] = {name: [] for name in _LISTS}
        held = merged.setdefault((row["key"], mass), {**row, "mass": mass, **empty})
        for name in _LISTS:
            held[name] += [value for value in row[name] if value not in held[name]]
    ordered = sorted(merged.values(), key=lambda row: (row["mass"], row["key"]))
    return pa.Table.from_pylist(ordered, SCHEMA)
