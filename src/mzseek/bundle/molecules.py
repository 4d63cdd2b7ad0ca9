"""The bundled molecule database: sorted by mass, looked up in memory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.core.errors import BundleError

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
_LISTS = ("sources", "identifiers", "names")


@dataclass(frozen=True, eq=False)
class BundledMolecules:
    """Molecules of a bundle; sorted by mass.

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

    def by_mass(self, mass: float, ppm: float = 10.0) -> pa.Table:
        """Return the molecules within ppm of a neutral mass, as `rows` does.

        Raises
        ------
        BundleError
            The mass is no positive number, or the ppm are out of range.
        """
        if not 0 < mass < math.inf:
            raise BundleError(f"a mass of {mass:g}: expected a positive number")
        if not 0 <= ppm < 1e6:
            raise BundleError(f"{ppm:g} ppm: expected 0 or more, below 1,000,000")
        width = mass * ppm * 1e-6
        low = np.searchsorted(self.masses, mass - width, side="left")
        high = np.searchsorted(self.masses, mass + width, side="right")
        return self.rows(np.arange(low, high))

    @cached_property
    def rows_by_key(self) -> Mapping[str, list[int]]:
        """Rows of the molecules of each key."""
        by_key: dict[str, list[int]] = {}
        for row, key in enumerate(self.table["key"].to_pylist()):
            by_key.setdefault(key, []).append(row)
        return by_key

    def rows(self, rows: npt.NDArray[np.integer]) -> pa.Table:
        """Return the molecules at these rows, in this order; column ``row`` has the rows."""
        indices = column_of(np.asarray(rows, np.int64))
        return self.table.take(indices).add_column(0, "row", indices)


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
    """Make a table of molecules, sorted by mass, then key.

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
