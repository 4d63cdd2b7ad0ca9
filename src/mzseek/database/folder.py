"""The files of a store: opened, held, and checked for the form that its manifest says."""

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.fingerprinting.registry import check_version
from mzseek.database.nearest import FILES as NEAREST
from mzseek.database.nearest import Nearest
from mzseek.database.places import FILES as PLACES
from mzseek.database.places import KEYS, LABELLED, Entries, check_entries
from mzseek.database.rows import fingerprint_bytes, part_schema
from mzseek.errors import DatabaseError
from mzseek.files import content_hash
from mzseek.files.arrays import load_array
from mzseek.files.manifest import Manifest

KIND = "molecule database"
AGAIN = "build it again"
_FIELDS = {
    "options": {
        "fingerprint": str, "fingerprint_bits": int, "nearest": bool, "keep_stereo": bool,
    },
    "sources": [{"name": str, "sha256": str}],
    "counts": {"molecules": int, "records": int, "merged": int, "rejects": int},
}  # fmt: skip
# The second format has the places of keys and of labelled molecules.
MANIFEST = Manifest(KIND, DatabaseError, AGAIN, _FIELDS, versions=(2,))
MOLECULES, MASSES, REJECTS = "molecules.parquet", "masses.npy", "rejects.tsv"
_KEPT, _FEW = 4, 2  # answers that are kept, and groups in each
COLUMNS = ("key", "smiles", "formula", "mass", "sources", "identifiers", "names")


class StoreFolder:
    """A store's folder, its files held open.

    Parameters
    ----------
    folder : Path
    manifest : dict
        Checked by `read_manifest`.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self._last: dict[tuple[tuple[int, ...], tuple[str, ...]], pa.Table] = {}
        # Held open: when another store takes the place of this one, this one can still be read.
        self._held: dict[str, int] = {}
        weakref.finalize(self, _close, self._held)
        for name in manifest["files"]:
            self._held[name] = os.open(folder / name, os.O_RDONLY)

    def _path(self, name: str) -> Path:
        held = Path("/dev/fd", str(self._held[name]))
        return held if held.parent.is_dir() else self.folder / name

    def check(self, names: Sequence[str] | None = None) -> None:
        """Read every file, or those named, and compare its checksum.

        Raises
        ------
        DatabaseError
            A byte has changed.
        """
        for name, facts in self.manifest["files"].items():
            if names is not None and name not in names:
                continue
            if content_hash(self._path(name)) != facts["sha256"]:
                raise DatabaseError(f"{self.folder}: {name} has changed; {AGAIN}")

    def check_form(self) -> None:
        """Make sure that table, masses and index have the form that the manifest says."""
        if self._parquet.metadata.num_rows != len(self.masses):
            raise DatabaseError(f"{self.folder}: {MASSES} and {MOLECULES} differ; {AGAIN}")
        _ = self.keys, self.labelled
        if self.manifest["options"]["nearest"]:
            _ = self.nearest

    def rejects_text(self) -> str:
        """What was set aside, as it stands in the file."""
        try:
            return self._path(REJECTS).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DatabaseError(f"{self.folder / REJECTS}: cannot be read ({error})") from error

    def __len__(self) -> int:
        return int(self.manifest["counts"]["molecules"])

    @property
    def fingerprint(self) -> str:
        """Kind of the fingerprints."""
        return str(self.manifest["options"]["fingerprint"])

    @property
    def keep_stereo(self) -> bool:
        """Whether SMILES have stereo."""
        return bool(self.manifest["options"]["keep_stereo"])

    @cached_property
    def keys(self) -> Entries:
        """Places of all molecules by their keys, memory-mapped."""
        return self._entries(KEYS, len(self))

    @cached_property
    def labelled(self) -> Entries:
        """Places of molecules with isotope labels by their formulas, memory-mapped."""
        return self._entries(LABELLED, None)

    def _entries(self, name: str, length: int | None) -> Entries:
        where = self.folder / name
        entries = load_array(self._path(name), np.uint64, [length], DatabaseError, AGAIN, where)
        check_entries(entries, len(self), where, AGAIN)
        return entries

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Mass of every molecule, rising, memory-mapped."""
        where = self.folder / MASSES
        path = self._path(MASSES)
        return load_array(path, np.float64, [len(self)], DatabaseError, AGAIN, where)

    def check_order(self) -> None:
        """Make sure, once, that masses rise: what searches in them rests on."""
        if not self._rises:
            raise DatabaseError(f"{self.folder}: {MASSES} does not rise; {AGAIN}")

    @cached_property
    def _rises(self) -> bool:
        return bool((self.masses[1:] >= self.masses[:-1]).all())

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        where = self.folder / MOLECULES
        file: pq.ParquetFile = self._read(pq.ParquetFile, self._path(MOLECULES), memory_map=True)
        expected = part_schema(self.fingerprint)
        expected = expected.remove(expected.get_field_index("place"))
        if not file.schema_arrow.equals(expected):
            raise DatabaseError(f"{where}: has other columns than expected; {AGAIN}")
        rows, groups = file.metadata.num_rows, file.metadata.num_row_groups
        size = file.metadata.row_group(0).num_rows if groups else 0
        # Where a row is found rests on groups of one size, but for the last.
        if rows != len(self) or groups != -(-rows // max(size, 1)):
            raise DatabaseError(
                f"{where}: has {rows:,} rows, expected {len(self):,} in groups of one size; {AGAIN}"
            )
        return file

    @cached_property
    def nearest(self) -> Nearest:
        """The index for nearest neighbours."""
        if not self.manifest["options"]["nearest"]:
            raise DatabaseError(
                f"{self.folder}: was built without the index for nearest neighbours"
            )
        words = fingerprint_bytes(self.fingerprint) // 8
        return Nearest(self.folder, self._path, molecules=len(self), words=words)

    def rows(self, rows: npt.NDArray[np.integer], columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Molecules at these places, in this order."""
        wanted = np.asarray(rows, np.int64)
        unique, place = np.unique(wanted, return_inverse=True)
        size = self._parquet.metadata.row_group(0).num_rows if len(self) else 1
        groups = np.unique(unique // size)
        if not len(unique):
            table = self._parquet.schema_arrow.empty_table().select(list(columns))
        else:
            table = self._groups(groups.tolist(), columns)
            inside = (
                unique - (unique // size) * size + np.searchsorted(groups, unique // size) * size
            )
            table = self._sound(table.take, inside[place])
        return table.add_column(0, "row", pa.array(wanted))

    def range(self, start: int, end: int, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Molecules from one place to another."""
        if end <= start:
            return self._parquet.schema_arrow.empty_table().select(list(columns))
        size = self._parquet.metadata.row_group(0).num_rows
        first = start // size
        groups = list(range(first, max(-(-end // size), first + 1)))
        table = self._groups(groups, columns)
        return self._sound(table.slice, start - first * size, end - start)

    def batches(self, columns: Sequence[str] = COLUMNS, size: int = 16_384) -> Iterator[pa.Table]:
        """All molecules, so many at a time."""
        batches = self._parquet.iter_batches(size, columns=list(columns))
        while (batch := self._read(lambda: next(batches, None))) is not None:
            yield self._sound(pa.Table.from_batches, [batch])

    def _groups(self, groups: list[int], columns: Sequence[str]) -> pa.Table:
        """Groups of rows; the last ones are kept, for who asks for neighbouring masses in turn."""
        asked = (tuple(groups), tuple(columns))
        if asked in self._last:
            return self._last[asked]
        table = self._read(self._parquet.read_row_groups, groups, columns=list(columns))
        if len(groups) <= _FEW:
            while len(self._last) >= _KEPT:
                self._last.pop(next(iter(self._last)))
            self._last[asked] = table
        return table

    def _sound(self, make: Callable[..., pa.Table], *what: Any) -> pa.Table:
        """A table whose texts are text: Arrow takes the bytes of a file for what they should be."""

        def checked() -> pa.Table:
            table = make(*what)
            table.validate(full=True)
            if any(column.null_count for column in table.columns):
                raise pa.ArrowInvalid("values are missing")
            return table

        return self._read(checked)

    def _read(self, read: Callable[..., Any], *what: Any, **how: Any) -> Any:
        try:
            return read(*what, **how)
        except (OSError, pa.ArrowException, ValueError, IndexError) as error:
            path = self.folder / MOLECULES
            raise DatabaseError(f"{path}: is damaged ({_reason(error)}); {AGAIN}") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Manifest of a store, checked for its version and its fields."""
    manifest, path = MANIFEST.read(folder), folder / MANIFEST.name
    options = manifest["options"]
    bits, wanted = options["fingerprint_bits"], fingerprint_kind(options["fingerprint"]).bits
    if bits != wanted:
        raise DatabaseError(
            f"{path}: options.fingerprint_bits is {bits}, expected {wanted}; {AGAIN}"
        )
    check_version(options["fingerprint"], manifest, folder, DatabaseError, AGAIN)
    for name in (MOLECULES, MASSES, REJECTS, *PLACES, *(NEAREST if options["nearest"] else ())):
        if name not in manifest["files"]:
            raise DatabaseError(f"{path}: lacks {f'files.{name}'!r}; {AGAIN}")
    return manifest


def _close(held: dict[str, int]) -> None:
    for descriptor in held.values():
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
