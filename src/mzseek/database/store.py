"""The store: a folder with one Parquet file, sorted by mass, and a manifest.

==================  ============================================================================
``manifest.json``   version, sources with their hashes, options, counts, checksums
``molecules.parquet``  key, smiles, formula, mass, bits, fingerprint, sources, identifiers, names
``masses.npy``      the masses alone: a look-up by mass is two searches in it, and a range of rows
``nearest.*``       fingerprints word by word, for nearest neighbours and mining
``rejects.tsv``     what was set aside, and why
==================  ============================================================================
"""

import json
import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.adducts import neutral_mass
from mzseek.chem.fingerprints import molecule_rows
from mzseek.chem.molecule import parse_molecule
from mzseek.chem.standardise import standardise
from mzseek.database.describe import packed
from mzseek.database.nearest import Nearest
from mzseek.errors import DatabaseError
from mzseek.files import content_hash
from mzseek.files.owned import MANIFEST, check_files

KIND = "molecule database"
_REMEDY = "it was cut short or changed; build it again"
FORMAT_VERSION = 1
MOLECULES, MASSES, REJECTS = "molecules.parquet", "masses.npy", "rejects.tsv"
COLUMNS = ("key", "smiles", "formula", "mass", "sources", "identifiers", "names")


@dataclass(frozen=True)
class Found:
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


class Database:
    """A store that is open for look-ups.

    Examples
    --------
    >>> database = Database.open("hmdb")  # doctest: +SKIP
    >>> database.by_mass(194.0804, ppm=10).table["smiles"][0].as_py()  # doctest: +SKIP
    'Cn1c(=O)c2c(ncn2C)n(C)c1=O'
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        # Held open: when another store takes the place of this one, this one can still be read.
        self._held: dict[str, int] = {}
        weakref.finalize(self, _close, self._held)
        for name in manifest["files"]:
            self._held[name] = os.open(folder / name, os.O_RDONLY)

    def _path(self, name: str) -> Path:
        held = Path("/dev/fd", str(self._held[name]))
        return held if held.parent.is_dir() else self.folder / name

    @classmethod
    def open(cls, folder: Path | str) -> "Database":
        """Open a store; its files must be there, with the sizes that they had.

        Raises
        ------
        DatabaseError
            It is none, of another version, or a file of it is missing or cut short.
        """
        folder = Path(folder).resolve()
        path = folder / MANIFEST
        if not path.is_file():
            raise DatabaseError(f"{folder}: is no molecule database ({MANIFEST} is missing)")
        try:
            manifest = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise DatabaseError(f"{path}: cannot be read ({error})") from error
        if manifest.get("kind") != KIND:
            raise DatabaseError(f"{folder}: is a {manifest.get('kind')}, expected a {KIND}")
        if manifest.get("format_version") != FORMAT_VERSION:
            raise DatabaseError(
                f"{folder}: written in format {manifest.get('format_version')}, "
                f"expected {FORMAT_VERSION}; build it again"
            )
        check_files(folder, manifest["files"], DatabaseError, _REMEDY)
        return cls(folder, manifest)

    def check(self) -> None:
        """Read every file and compare its checksum.

        Raises
        ------
        DatabaseError
            A byte has changed.
        """
        for name, facts in self.manifest["files"].items():
            if content_hash(self._path(name)) != facts["sha256"]:
                raise DatabaseError(f"{self.folder}: {name} has changed; build it again")

    def __len__(self) -> int:
        return int(self.manifest["counts"]["molecules"])

    @property
    def fingerprint(self) -> str:
        """Kind of the fingerprints."""
        return str(self.manifest["options"]["fingerprint"])

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Mass of every molecule, rising, memory-mapped."""
        try:
            masses: npt.NDArray[np.float64] = np.load(str(self._path(MASSES)), mmap_mode="r")
        except (OSError, ValueError) as error:
            raise DatabaseError(f"{self.folder / MASSES}: cannot be read ({error})") from error
        return masses

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path(MOLECULES), memory_map=True)
        except (OSError, pa.ArrowInvalid) as error:
            raise DatabaseError(f"{self.folder / MOLECULES}: cannot be read ({error})") from error

    @cached_property
    def nearest(self) -> Nearest:
        """The index for nearest neighbours."""
        if not self.manifest["options"]["nearest"]:
            raise DatabaseError(
                f"{self.folder}: was built without the index for nearest neighbours"
            )
        return Nearest(self.folder, self._path)

    def by_mass(
        self, mass: float, ppm: float = 10.0, *, cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> Found:  # fmt: skip
        """Molecules within ppm of a neutral mass.

        Parameters
        ----------
        mass : float
        ppm : float
        cap : int, optional
            At most so many: of the sources that come first in ``priorities``, then of the others,
            within a source in an order that is fixed and knows nothing of the molecules.
        priorities : sequence of str
            Names of sources, the most wanted first.
        """
        if not (np.isfinite(mass) and mass > 0 and np.isfinite(ppm) and ppm >= 0):
            raise DatabaseError(f"mass {mass:g} and {ppm:g} ppm: expected positive numbers")
        width = mass * ppm * 1e-6
        return self._between(mass - width, mass + width, cap, priorities)

    def by_precursor(self, mz: float, adduct: str, ppm: float = 10.0, **capping: Any) -> Found:
        """Molecules whose ion has this m/z; ppm are of the m/z."""
        low, high = (neutral_mass(mz * (1 + sign * ppm * 1e-6), adduct) for sign in (-1, 1))
        if not high > 0:
            raise DatabaseError(f"m/z {mz:g} as {adduct} has no positive mass")
        low, high = min(low, high), max(low, high)
        return self._between(low, high, **capping)

    def by_formula(self, formula: str, **capping: Any) -> Found:
        """Molecules of a formula, in Hill order."""
        if not formula.strip():
            raise DatabaseError("the formula is empty")
        return self._where("formula = ?", [formula.strip()], **capping)

    def by_key(self, key: str) -> Found:
        """Molecules with this InChIKey, or first block of one."""
        block = key.strip().upper()[:14]
        if len(block) != 14 or not block.isalpha():
            raise DatabaseError(f"{key!r} is no InChIKey, expected at least its 14 letters")
        return self._where("key = ?", [block])

    def by_likeness(self, smiles: str, count: int = 100, least: float = 0.0) -> Found:
        """The molecules most alike by Tanimoto over the whole store.

        Parameters
        ----------
        smiles : str
            Standardised as the store's molecules are.
        count : int
        least : float
            Smallest similarity of interest.
        """
        molecule = standardise(parse_molecule(smiles))
        bits = molecule_rows([molecule], self.fingerprint, threads=1)
        query = np.frombuffer(packed(bits, self.fingerprint).buffers()[1], np.uint8)
        rows, similarities = self.nearest.search(query, count, least)
        table = self.rows(rows).append_column("similarity", pa.array(similarities))
        return Found(table, len(rows))

    def many_by_mass(self, masses: npt.ArrayLike, ppm: float = 10.0) -> ManyFound:
        """Rows within ppm of each of many masses."""
        wanted = np.asarray(masses, np.float64)
        if wanted.ndim != 1 or not np.isfinite(wanted).all() or (wanted <= 0).any():
            raise DatabaseError("masses hold what is no positive number")
        width = wanted * ppm * 1e-6
        low = np.searchsorted(self.masses, wanted - width, side="left")
        high = np.searchsorted(self.masses, wanted + width, side="right")
        indptr = np.concatenate([[0], np.cumsum(high - low)])
        rows = np.arange(indptr[-1]) + np.repeat(low - indptr[:-1], high - low)
        return ManyFound(indptr, rows)

    def rows(self, rows: npt.NDArray[np.integer], columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Molecules at these places, in this order."""
        wanted = np.asarray(rows, np.int64)
        unique, place = np.unique(wanted, return_inverse=True)
        size = self._parquet.metadata.row_group(0).num_rows if len(self) else 1
        groups = np.unique(unique // size)
        if not len(unique):
            table = self._parquet.schema_arrow.empty_table().select(list(columns))
        else:
            table = self._parquet.read_row_groups(groups.tolist(), columns=list(columns))
            inside = (
                unique - (unique // size) * size + np.searchsorted(groups, unique // size) * size
            )
            table = table.take(inside[place])
        return table.add_column(0, "row", pa.array(wanted))

    def range(self, start: int, end: int, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Molecules from one place to another."""
        if end <= start:
            return self._parquet.schema_arrow.empty_table().select(list(columns))
        size = self._parquet.metadata.row_group(0).num_rows
        first = start // size
        groups = list(range(first, max(-(-end // size), first + 1)))
        table = self._parquet.read_row_groups(groups, columns=list(columns))
        return table.slice(start - first * size, end - start)

    def batches(self, columns: Sequence[str] = COLUMNS, size: int = 16_384) -> Iterator[pa.Table]:
        """All molecules, so many at a time."""
        for batch in self._parquet.iter_batches(size, columns=list(columns)):
            yield pa.Table.from_batches([batch])

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Anything that DuckDB can say about the table ``molecules``, with all cores."""
        return self._asked(self._connection, sql, parameters)

    @cached_property
    def _connection(self) -> Any:
        return self._connect()

    def _connect(self) -> Any:
        connection = duckdb.connect()
        path = str(self._path(MOLECULES)).replace("'", "''")
        for sql in (
            "SET parquet_metadata_cache = true",
            "CREATE VIEW molecules AS "
            f"SELECT * FROM read_parquet('{path}', file_row_number = true)",
        ):
            self._asked(connection, sql)
        return connection

    def _asked(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        try:
            said = (
                connection.sql(sql, params=list(parameters)) if parameters else connection.sql(sql)
            )
            return said.to_arrow_table() if said is not None else None
        except duckdb.Error as error:
            raise DatabaseError(f"{self.folder}: {str(error).splitlines()[0]}") from error

    def _where(
        self,
        condition: str,
        values: list[Any],
        cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> Found:
        wanted = ", ".join(COLUMNS)
        table = self._asked(
            self._connection,
            f"SELECT file_row_number AS row, {wanted} FROM molecules "
            f"WHERE {condition} ORDER BY row",
            values,
        )
        return _capped(table, cap, priorities)

    def _between(
        self, low: float, high: float, cap: int | None = None, priorities: Sequence[str] = ()
    ) -> Found:
        """Molecules of a range of masses: since they are sorted, a range of rows."""
        start = int(np.searchsorted(self.masses, low, side="left"))
        end = int(np.searchsorted(self.masses, high, side="right"))
        table = self.range(start, end).add_column(0, "row", pa.array(np.arange(start, end)))
        return _capped(table, cap, priorities)


def _close(held: dict[str, int]) -> None:
    for descriptor in held.values():
        os.close(descriptor)


def _capped(table: pa.Table, cap: int | None, priorities: Sequence[str]) -> Found:
    total = table.num_rows
    if cap is not None and total > cap:
        table = table.take(np.sort(cascade(table, priorities)[:cap]))
    return Found(table, total)


def cascade(table: pa.Table, priorities: Sequence[str]) -> npt.NDArray[np.int64]:
    """Rows in the order in which a capped list takes them: wanted sources first."""
    rank = {name: place for place, name in enumerate(priorities)}
    last = len(rank)
    ranks = [min((rank.get(s, last) for s in sources), default=last)
             for sources in table["sources"].to_pylist()]  # fmt: skip
    # Keys are hashes already: their order is fixed and tells nothing.
    return np.lexsort((np.array(table["key"].to_pylist()), np.array(ranks)))
