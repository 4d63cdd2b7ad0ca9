"""An opened molecule database: look-up by mass, formula and key."""

import os
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mzseek.chem.adducts import parse_adduct
from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.fingerprinting import check_version, fingerprint_kind
from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecules import BLOCK_LENGTH, parse_molecule, standardise
from mzseek.core.errors import DatabaseError, MoleculeError, require
from mzseek.core.ragged import ranges
from mzseek.core.text import Table, Tabular, shorten
from mzseek.database.nearest import FILES as NEAREST
from mzseek.database.nearest import Nearest
from mzseek.database.records import fingerprint_bytes, packed, part_schema
from mzseek.io import StrPath, content_hash
from mzseek.io.arrays import load_array, save_array
from mzseek.io.manifest import Manifest, changed_file
from mzseek.io.skipped import SKIPPED_FILE, read_skipped
from mzseek.parallel import Progress

# Columns that mean something to the store alone.
_INNER = frozenset({"row", "bits", "fingerprint"})


@dataclass(frozen=True)
class Matches(Tabular):
    """Molecules found by a look-up.

    Attributes
    ----------
    table : pyarrow.Table
        Columns ``row`` (in the store), those of `COLUMNS`, and ``similarity`` where it was a
        search for the nearest.
    total : int
        Number of molecules before a cap.
    """

    table: pa.Table
    total: int

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_table(self) -> Table:
        """Return a table with one row a molecule."""
        names = [name for name in self.table.column_names if name not in _INNER]
        left_out = f"{len(self):,} of {self.total:,}" if self.capped else f"{len(self):,}"
        columns = {
            name: [
                "; ".join(map(str, value)) if isinstance(value, list) else value
                for value in self.table[name].to_pylist()
            ]
            for name in names
        }
        return Table(columns, f"{left_out} molecule{'s' if self.total != 1 else ''}")

    @property
    def capped(self) -> bool:
        """Whether some were left out."""
        return self.total > len(self)


def capped(
    table: pa.Table,
    cap: int | None = None,
    priorities: Sequence[str] = (),
    mass: float | None = None,
) -> Matches:
    """Keep the first molecules of `cascade`, in the order of the table; all without a cap."""
    total = table.num_rows
    if cap is not None and total > cap:
        table = table.take(np.sort(cascade(table, priorities, mass)[:cap]))
    return Matches(table, total)


def cascade(
    table: pa.Table, priorities: Sequence[str], mass: float | None = None
) -> npt.NDArray[np.int64]:
    """Return rows in the order in which a capped list takes them.

    By rank of their sources in ``priorities``, then by distance from ``mass`` where it is given,
    then by key. ``table`` has the columns ``sources``, ``mass`` and ``key``.
    """
    ranks = source_ranks(table, priorities)
    away = np.zeros(len(ranks))
    if mass is not None:
        away = np.abs(table["mass"].to_numpy() - mass)
    # Keys are hashes already: their order is fixed and tells nothing.
    return np.lexsort((np.array(table["key"].to_pylist()), away, ranks))


def source_ranks(table: pa.Table, priorities: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the best rank of each molecule's sources; past the priorities for none."""
    rank = {name: number for number, name in enumerate(priorities)}
    last = len(rank)
    ranks = [min((rank.get(s, last) for s in sources), default=last)
             for sources in table["sources"].to_pylist()]  # fmt: skip
    return np.array(ranks, np.int64)


KEYS, LABELLED = "keys.npy", "labelled.npy"
FILES = (KEYS, LABELLED)
# Further from the mass of its formula than this no unlabelled molecule is: masses are rounded to
# six digits, and the lightest label weighs a thousand times as much.
SAME_MASS = 1e-4
_ROW_BITS = np.uint64(32)
_ROWS = np.uint64((1 << 32) - 1)
Entries = npt.NDArray[np.uint64]


def build_entries(molecules: Path, folder: Path, progress: Progress) -> None:
    """Write the indices of keys and labelled molecules of a Parquet file: 8 bytes a molecule.

    ``molecules`` has the columns ``key``, ``formula`` and ``mass``.
    """
    file = pq.ParquetFile(molecules)
    total = file.metadata.num_rows
    keys = np.empty(total, np.uint64)
    labelled: list[Entries] = []
    done = 0
    for batch in file.iter_batches(8_192, columns=["key", "formula", "mass"]):
        rows = np.arange(done, done + batch.num_rows)
        done += batch.num_rows
        keys[rows] = entries(batch["key"].to_pylist(), rows)
        formulas = batch["formula"].to_pylist()
        weights = {formula: _mass(formula) for formula in set(formulas)}
        away = batch["mass"].to_numpy() - np.array([weights[formula] for formula in formulas])
        other = np.flatnonzero(~(np.abs(away) <= SAME_MASS))
        labelled.append(entries([formulas[index] for index in other], rows[other]))
        progress("keys", done, total)
    keys.sort()
    save_array(folder / KEYS, keys)
    save_array(folder / LABELLED, np.sort(np.concatenate([np.empty(0, np.uint64), *labelled])))


def entries(texts: Sequence[str], rows: npt.NDArray[np.integer]) -> Entries:
    """Return index entries of texts and their rows: CRC-32, then row."""
    sums = np.array([zlib.crc32(text.encode()) for text in texts], np.uint64)
    return (sums << _ROW_BITS) | rows.astype(np.uint64)


def rows_of(text: str, index: Entries) -> npt.NDArray[np.int64]:
    """Return the rising rows of all texts with the checksum of this one."""
    first = np.uint64(zlib.crc32(text.encode())) << _ROW_BITS
    start = np.searchsorted(index, first, side="left")
    end = np.searchsorted(index, first | _ROWS, side="right")
    return (index[start:end] & _ROWS).astype(np.int64)


def rows_with_text(tables: Iterable[pa.Table], text: str, column: str = "names") -> list[int]:
    """Return the rows with a text in a list that holds `text`, those of the shortest first.

    Rows are counted through all tables.
    """
    wanted = " ".join(text.split()).lower()
    if not wanted:
        raise DatabaseError("the name is empty, expected some letters of one")
    found: dict[int, tuple[int, int]] = {}  # by row: length of the shortest text, and the row
    start = 0
    for table in tables:
        lists = table[column].combine_chunks()
        flat, parents = pc.list_flatten(lists), pc.list_parent_indices(lists)
        matching = pc.match_substring(flat, wanted, ignore_case=True)
        lengths = pc.utf8_length(flat.filter(matching)).to_pylist()
        for row, length in zip(parents.filter(matching).to_pylist(), lengths, strict=True):
            key = (length, start + row)
            found[start + row] = min(found.get(start + row, key), key)
        start += table.num_rows
    return [row for row, _ in sorted(found.items(), key=lambda item: item[1])]


def _mass(formula: str) -> float:
    """Return the mass of a formula; NaN if it cannot be parsed."""
    try:
        return parse_formula(formula).mass
    except MoleculeError:
        return float("nan")


KIND = "molecule database"
AGAIN = "build it again"
_FIELDS = {
    "options": {
        "fingerprint": str, "fingerprint_bits": int, "nearest": bool, "keep_stereo": bool,
    },
    "sources": [{"name": str, "sha256": str}],
    "counts": {"molecules": int, "records": int, "merged": int, "rejects": int},
}  # fmt: skip
MANIFEST = Manifest(KIND, DatabaseError, AGAIN, _FIELDS, versions=(2,))
MOLECULES, MASSES = "molecules.parquet", "masses.npy"
_CACHED_TABLES, _CACHED_GROUPS = 4, 2  # tables that are kept, and row groups in each at most
COLUMNS = ("key", "smiles", "formula", "mass", "sources", "identifiers", "names")


_SHOWN_SOURCES = 12
_AT_ONCE = 1 << 18  # molecules whose sources are looked at together
_MAX_PPM = 1e6  # as wide as the mass itself

_CHECKED = replace(MANIFEST, again=f"it was cut short or changed; {AGAIN}")


class Database:
    """A store that is open for look-ups.

    Its files are held open, each verified by its checksum when it is first used.

    Examples
    --------
    >>> database = Database.open("hmdb")  # doctest: +SKIP
    >>> database.by_mass(194.0804, ppm=10).table["smiles"][0].as_py()  # doctest: +SKIP
    'Cn1c(=O)c2c(ncn2C)n(C)c1=O'
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest, self._is_sorted = folder, manifest, False
        self._last: dict[tuple[tuple[int, ...], tuple[str, ...]], pa.Table] = {}
        # Held open: when another store takes the place of this one, this one can still be read.
        self._held: dict[str, int] = {}
        weakref.finalize(self, _close, self._held)
        for name in manifest["files"]:
            self._held[name] = os.open(folder / name, os.O_RDONLY)

    @classmethod
    def open(cls, folder: StrPath) -> Self:
        """Open a store; its files must be there, with the sizes that they had.

        Raises
        ------
        DatabaseError
            It is none, of another version, or a file of it is missing or cut short.
        """
        folder = Path(folder).resolve()
        manifest = read_manifest(folder)
        while True:
            _CHECKED.check_files(folder, manifest)
            opened, before = cls(folder, manifest), manifest
            manifest = read_manifest(folder)
            if manifest == before:  # else another took its place between two of its files
                return opened

    def _path(self, name: str) -> Path:
        held = Path("/dev/fd", str(self._held[name]))
        return held if held.parent.is_dir() else self.folder / name

    def _as_written(self, name: str) -> Path:
        """Return the path of a file after comparing its checksum."""
        path = self._path(name)
        if changed_file({path: self.manifest["files"][name]["sha256"]}):
            raise DatabaseError(f"{self.folder}: {name} has changed; {AGAIN}")
        return path

    def check(self, names: Sequence[str] | None = None) -> None:
        """Read every file, or those named, and compare checksums, also if verified before.

        Raises
        ------
        DatabaseError
            A byte has changed.
        """
        for name, listed in self.manifest["files"].items():
            if names is not None and name not in names:
                continue
            if content_hash(self._path(name)) != listed["sha256"]:
                raise DatabaseError(f"{self.folder}: {name} has changed; {AGAIN}")

    def check_form(self) -> None:
        """Check that table, masses and index have the form that the manifest states."""
        if self._parquet.metadata.num_rows != len(self.masses):
            raise DatabaseError(f"{self.folder}: {MASSES} and {MOLECULES} differ; {AGAIN}")
        _ = self.keys, self.labelled
        if self.manifest["options"]["nearest"]:
            _ = self.nearest

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Records that were skipped: where each was, and why."""
        return read_skipped(self._path(SKIPPED_FILE))

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
        """Rows of all molecules by their keys, memory-mapped."""
        return self._entries(KEYS, len(self))

    @cached_property
    def labelled(self) -> Entries:
        """Rows of molecules with isotope labels by their formulas, memory-mapped."""
        return self._entries(LABELLED, None)

    def _entries(self, name: str, length: int | None) -> Entries:
        where = self.folder / name
        index = load_array(self._as_written(name), np.uint64, [length], DatabaseError, AGAIN, where)
        rises = bool((index[1:] > index[:-1]).all())
        if not rises or int((index & _ROWS).max(initial=0)) >= max(len(self), 1):
            raise DatabaseError(f"{where}: is damaged (places that do not rise); {AGAIN}")
        return index

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Mass of every molecule, rising, memory-mapped."""
        path, where = self._as_written(MASSES), self.folder / MASSES
        return load_array(path, np.float64, [len(self)], DatabaseError, AGAIN, where)

    def check_order(self) -> None:
        """Check once that masses rise, which searches need."""
        if not self._is_sorted:
            self._is_sorted = bool((self.masses[1:] >= self.masses[:-1]).all())
            if not self._is_sorted:
                raise DatabaseError(f"{self.folder}: {MASSES} does not rise; {AGAIN}")

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        where = self.folder / MOLECULES
        file: pq.ParquetFile = self._read(
            pq.ParquetFile, self._as_written(MOLECULES), memory_map=True
        )
        expected = part_schema(self.fingerprint)
        expected = expected.remove(expected.get_field_index("place"))
        if not file.schema_arrow.equals(expected):
            raise DatabaseError(f"{where}: has other columns than expected; {AGAIN}")
        rows, groups = file.metadata.num_rows, file.metadata.num_row_groups
        size = file.metadata.row_group(0).num_rows if groups else 0
        # The group of a row is computed from the size of all groups but the last.
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
        return Nearest(self.folder, self._as_written, molecules=len(self), words=words)

    def rows(self, rows: npt.NDArray[np.integer], columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Return the molecules of these rows, in this order."""
        selected = np.asarray(rows, np.int64)
        if not len(selected):
            table = self._parquet.schema_arrow.empty_table().select(list(columns))
        else:
            size = self._parquet.metadata.row_group(0).num_rows
            groups, group = np.unique(selected // size, return_inverse=True)
            table = self._groups(groups.tolist(), columns)
            table = self._validated(table.take, selected % size + group * size)
        return table.add_column(0, "row", pa.array(selected))

    def range(self, start: int, end: int, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Return the molecules of the rows from ``start`` to ``end``."""
        if end <= start:
            return self._parquet.schema_arrow.empty_table().select(list(columns))
        size = self._parquet.metadata.row_group(0).num_rows
        first = start // size
        groups = list(range(first, max(-(-end // size), first + 1)))
        table = self._groups(groups, columns)
        return self._validated(table.slice, start - first * size, end - start)

    def batches(self, columns: Sequence[str] = COLUMNS, size: int = 16_384) -> Iterator[pa.Table]:
        """Yield all molecules, ``size`` at a time."""
        batches = self._parquet.iter_batches(size, columns=list(columns))
        while (batch := self._read(lambda: next(batches, None))) is not None:
            yield self._validated(pa.Table.from_batches, [batch])

    def _groups(self, groups: list[int], columns: Sequence[str]) -> pa.Table:
        """Read groups of rows; the last are cached for queries of neighbouring masses."""
        key = (tuple(groups), tuple(columns))
        if key in self._last:
            return self._last[key]
        table = self._read(self._parquet.read_row_groups, groups, columns=list(columns))
        if len(groups) <= _CACHED_GROUPS:
            while len(self._last) >= _CACHED_TABLES:
                self._last.pop(next(iter(self._last)))
            self._last[key] = table
        return table

    def _validated(self, make: Callable[..., pa.Table], *what: Any) -> pa.Table:
        """Make a table and check that its texts are UTF-8, which Arrow takes for granted."""

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
            reason = shorten(str(error) or type(error).__name__, 200)
            path = self.folder / MOLECULES
            raise DatabaseError(f"{path}: is damaged ({reason}); {AGAIN}") from error

    def by_mass(
        self, mass: float, ppm: float = 10.0, *, cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> Matches:  # fmt: skip
        """Return the molecules within ppm of a neutral mass.

        Parameters
        ----------
        mass, ppm : float
        cap : int, optional
            At most so many: of the sources that come first in ``priorities``, then of the others,
            within a source the nearest by mass.
        priorities : sequence of str
            Names of sources, the most preferred first.
        """
        width = _width(mass, ppm)
        return self._between(mass - width, mass + width, mass, cap, priorities)

    def rows_by_mass(self, mass: float, ppm: float = 10.0) -> npt.NDArray[np.int64]:
        """Return the rising rows of the molecules within ppm of a neutral mass."""
        width = _width(mass, ppm)
        start, end, _ = self._window(mass - width, mass + width)
        return np.arange(start, end)

    def by_precursor(self, mz: float, adduct: str, ppm: float = 10.0, **capping: Any) -> Matches:
        """Return the molecules whose ion has this m/z; ppm are of the m/z."""
        ion, width = parse_adduct(adduct), mz * _checked_ppm(ppm) * 1e-6
        mass = ion.neutral_mass(mz)  # refuses an m/z that is invalid or too small
        reach = width / ion.slope
        return self._between(mass - reach, mass + reach, mass, **capping)

    def by_formula(
        self, formula: str, *, cap: int | None = None, priorities: Sequence[str] = ()
    ) -> Matches:
        """Return the molecules of a formula, its elements in any order: see `parse_formula`."""
        return capped(self.rows(self.rows_by_formula(formula)), cap, priorities)

    def rows_by_formula(self, formula: str) -> npt.NDArray[np.int64]:
        """Return the rising rows of the molecules of a formula."""
        try:
            parsed = parse_formula(formula)
        except MoleculeError as error:
            raise DatabaseError(str(error)) from error
        text, mass = str(parsed), parsed.mass
        # All of a formula have its mass, but for those with isotope labels.
        start, _, here = self._window(mass - SAME_MASS, mass + SAME_MASS, ["formula"])
        rows = start + np.flatnonzero(pc.equal(here["formula"], text).to_numpy())
        return np.union1d(rows, self._rows_of(text, self.labelled, "formula"))

    def by_key(self, key: str) -> Matches:
        """Return the molecules with this InChIKey, or first block of one."""
        block = key.strip().upper()[:BLOCK_LENGTH]
        if len(block) != BLOCK_LENGTH or not (block.isascii() and block.isalpha()):
            raise DatabaseError(
                f"{key!r} is no InChIKey, expected at least its {BLOCK_LENGTH} letters"
            )
        rows = self._rows_of(block, self.keys, "key")
        return Matches(self.rows(rows), len(rows))

    def by_name(self, name: str, count: int = 100) -> Matches:
        """Return the first ``count`` molecules with a name that holds a text, whatever its case.

        Molecules whose name is the text itself come first, then those of the shortest names.
        """
        ranked = rows_with_text(self.batches(["names"]), name)
        table = self.rows(np.array(ranked[:count], np.int64))
        return Matches(table, len(ranked))

    def by_similarity(self, smiles: str, count: int = 100, least: float = 0.0) -> Matches:
        """Return the ``count`` molecules of highest Tanimoto similarity, none below ``least``.

        The SMILES is standardised as the store's molecules are.
        """
        molecule = standardise(parse_molecule(smiles), keep_stereo=self.keep_stereo)
        bits = molecule_rows([molecule], self.fingerprint, threads=1)
        query = np.frombuffer(packed(bits, self.fingerprint).buffers()[1], np.uint8)
        rows, similarities = self.nearest.search(query, count, least)
        table = self.rows(rows).append_column("similarity", pa.array(similarities))
        return Matches(table, len(rows))

    def many_by_mass(
        self, masses: npt.ArrayLike, ppm: float = 10.0
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return row pointers and rows within ppm of each of many masses.

        Mass i matches ``rows[indptr[i]:indptr[i + 1]]``, which `rows` fetches.
        """
        targets = np.asarray(masses, np.float64)
        if targets.ndim != 1 or not np.isfinite(targets).all() or (targets <= 0).any():
            raise DatabaseError("masses hold what is no positive number")
        self.check_order()
        width = targets * _checked_ppm(ppm) * 1e-6
        low = np.searchsorted(self.masses, targets - width, side="left")
        high = np.searchsorted(self.masses, targets + width, side="right")
        return ranges(low, high)

    def collections(self) -> list[str]:
        """Return the names of the sources of its molecules."""
        names: set[str] = set()
        for batch in self.batches(["sources"], _AT_ONCE):
            names.update(pc.unique(pc.list_flatten(batch["sources"])).to_pylist())
        return sorted(names)

    def require_sources(self, names: Sequence[str]) -> None:
        """Refuse a name that is no source of any molecule: it would have no effect."""
        if not names:
            return
        sources = self.collections()
        unknown = next((name for name in names if name not in sources), None)
        if unknown is not None:
            shown = ", ".join(sources[:_SHOWN_SOURCES])
            more = len(sources) - _SHOWN_SOURCES
            shown += f" and {more:,} more" if more > 0 else ""
            raise DatabaseError(
                f"priority {unknown!r} is no source of {self.folder}: it has {shown}"
            )

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Query the table ``molecules`` by SQL, with DuckDB and all cores.

        Raises
        ------
        MissingExtra
            DuckDB is not installed.
        DatabaseError
            The query is invalid, or the table is damaged.
        """
        require("duckdb", "SQL")
        import duckdb

        try:
            result = self._connection.sql(sql, params=list(parameters) or None)
            return result.to_arrow_table() if result is not None else None
        except duckdb.Error as error:
            raise DatabaseError(f"{self.folder}: {str(error).splitlines()[0]}") from error

    @cached_property
    def _connection(self) -> Any:
        """Connection to DuckDB with a view of the molecules."""
        import duckdb

        connection = duckdb.connect()
        path = str(self._as_written(MOLECULES)).replace("'", "''")
        connection.sql("SET parquet_metadata_cache = true")
        connection.sql(
            f"CREATE VIEW molecules AS SELECT * FROM read_parquet('{path}', file_row_number = true)"
        )
        return connection

    def _rows_of(self, text: str, index: Entries, column: str) -> npt.NDArray[np.int64]:
        """Return the rows with this text in a column, by the column's index."""
        rows = rows_of(text, index)
        texts = self.rows(rows, [column])[column].to_pylist()
        if len({zlib.crc32(value.encode()) for value in (text, *texts)}) > 1:
            name = KEYS if column == "key" else LABELLED
            raise DatabaseError(
                f"{self.folder}: {name} and {MOLECULES} disagree about {text}; {AGAIN}"
            )
        return rows[[here == text for here in texts]]

    def _between(
        self, low: float, high: float, mass: float, cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> Matches:  # fmt: skip
        """Return the molecules of a range of masses, which is a range of rows."""
        start, end, _ = self._window(low, high)
        table = self.range(start, end).add_column(0, "row", pa.array(np.arange(start, end)))
        return capped(table, cap, priorities, mass)

    def _window(
        self, low: float, high: float, columns: Sequence[str] = ()
    ) -> tuple[int, int, pa.Table]:
        """Return first row and end of a range of masses, and columns of its rows."""
        start = int(np.searchsorted(self.masses, low, side="left"))
        end = int(np.searchsorted(self.masses, high, side="right"))
        # With its neighbours, which must lie outside of the range.
        first, last = max(start - 1, 0), min(end + 1, len(self))
        around = self.range(first, last, ["mass", *columns])
        masses = around["mass"].to_numpy()
        side = (masses > high).astype(int) - (masses < low)
        lengths = [start - first, end - start, last - end]
        if end < start or not np.array_equal(side, np.repeat([-1, 0, 1], lengths)):
            raise DatabaseError(
                f"{self.folder}: {MASSES} and {MOLECULES} disagree about the masses from {low:.6f} "
                f"to {high:.6f}; {AGAIN}"
            )
        return start, end, around.slice(start - first, end - start)


def _width(mass: float, ppm: float) -> float:
    """Return half of a window of masses."""
    if not (np.isfinite(mass) and mass > 0):
        raise DatabaseError(f"mass {mass:g}: expected a positive number")
    return mass * _checked_ppm(ppm) * 1e-6


def _checked_ppm(ppm: float) -> float:
    if not 0 <= ppm < _MAX_PPM:  # which NaN is not either
        raise DatabaseError(f"{ppm:g} ppm: expected 0 or more, below {_MAX_PPM:,.0f}")
    return ppm


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a store and check its version and fields."""
    manifest, path = MANIFEST.read(folder), folder / MANIFEST.name
    options = manifest["options"]
    bits, expected_bits = options["fingerprint_bits"], fingerprint_kind(options["fingerprint"]).bits
    if bits != expected_bits:
        raise DatabaseError(
            f"{path}: options.fingerprint_bits is {bits}, expected {expected_bits}; {AGAIN}"
        )
    check_version(options["fingerprint"], manifest, folder, DatabaseError, AGAIN)
    for name in (MOLECULES, MASSES, SKIPPED_FILE, *FILES, *(NEAREST if options["nearest"] else ())):
        if name not in manifest["files"]:
            raise DatabaseError(f"{path}: lacks {f'files.{name}'!r}; {AGAIN}")
    return manifest


def _close(held: dict[str, int]) -> None:
    for descriptor in held.values():
        os.close(descriptor)
