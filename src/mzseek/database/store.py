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
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.adducts import parse_adduct
from mzseek.chem.fingerprints import molecule_rows
from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecule import parse_molecule
from mzseek.chem.standardise import standardise
from mzseek.database.describe import packed
from mzseek.database.found import Found, ManyFound, capped
from mzseek.database.nearest import Nearest
from mzseek.errors import DatabaseError, MoleculeError
from mzseek.files import content_hash
from mzseek.files.owned import MANIFEST, check_files

KIND = "molecule database"
_REMEDY = "it was cut short or changed; build it again"
FORMAT_VERSION = 1
_MOST_PPM = 1e6  # as wide as the mass itself
MOLECULES, MASSES, REJECTS = "molecules.parquet", "masses.npy", "rejects.tsv"
COLUMNS = ("key", "smiles", "formula", "mass", "sources", "identifiers", "names")


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
        if masses.dtype != np.float64 or masses.shape != (len(self),):
            what = f"holds {masses.dtype} {masses.shape}, expected {len(self):,} masses"
            raise DatabaseError(f"{self.folder / MASSES}: {what}; build it again")
        return masses

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        try:
            file = pq.ParquetFile(self._path(MOLECULES), memory_map=True)
        except (OSError, pa.ArrowException) as error:
            what = f"cannot be read ({_reason(error)})"
            raise DatabaseError(f"{self.folder / MOLECULES}: {what}") from error
        rows, missing = file.metadata.num_rows, set(COLUMNS) - set(file.schema_arrow.names)
        if rows != len(self) or missing:
            what = f"lacks {min(missing)}" if missing else f"has {rows:,} rows, not {len(self):,}"
            raise DatabaseError(f"{self.folder / MOLECULES}: {what}; build it again")
        return file

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
            within a source the nearest by mass.
        priorities : sequence of str
            Names of sources, the most wanted first.
        """
        if not (np.isfinite(mass) and mass > 0):
            raise DatabaseError(f"mass {mass:g}: expected a positive number")
        width = mass * _checked(ppm) * 1e-6
        return self._between(mass - width, mass + width, mass, cap, priorities)

    def by_precursor(self, mz: float, adduct: str, ppm: float = 10.0, **capping: Any) -> Found:
        """Molecules whose ion has this m/z; ppm are of the m/z."""
        ion, width = parse_adduct(adduct), mz * _checked(ppm) * 1e-6
        mass = ion.neutral_mass(mz)  # which refuses what is no m/z, or too small a one
        reach = width / ion.slope
        return self._between(mass - reach, mass + reach, mass, **capping)

    def by_formula(self, formula: str, **capping: Any) -> Found:
        """Molecules of a formula, its elements in any order: see `parse_formula`."""
        try:
            wanted = str(parse_formula(formula))
        except MoleculeError as error:
            raise DatabaseError(str(error)) from error
        return self._where("formula = ?", [wanted], **capping)

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
        width = wanted * _checked(ppm) * 1e-6
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

    def collections(self) -> list[str]:
        """Names of the sources that its molecules come from."""
        sql = "SELECT DISTINCT unnest(sources) AS name FROM molecules ORDER BY name"
        return list(self._asked(self._connection, sql)["name"].to_pylist())

    def _groups(self, groups: list[int], columns: Sequence[str]) -> pa.Table:
        return self._read(self._parquet.read_row_groups, groups, columns=list(columns))

    def _sound(self, make: Callable[..., pa.Table], *what: Any) -> pa.Table:
        """A table whose texts are text: Arrow takes the bytes of a file for what they should be."""

        def checked() -> pa.Table:
            table = make(*what)
            table.validate(full=True)
            return table

        return self._read(checked)

    def _read(self, read: Callable[..., Any], *what: Any, **how: Any) -> Any:
        try:
            return read(*what, **how)
        except (OSError, pa.ArrowException, ValueError, IndexError) as error:
            path = self.folder / MOLECULES
            raise DatabaseError(f"{path}: is damaged ({_reason(error)}); build it again") from error

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
        return capped(table, cap, priorities)

    def _between(
        self, low: float, high: float, mass: float, cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> Found:  # fmt: skip
        """Molecules of a range of masses: since they are sorted, a range of rows."""
        start = int(np.searchsorted(self.masses, low, side="left"))
        end = int(np.searchsorted(self.masses, high, side="right"))
        table = self.range(start, end).add_column(0, "row", pa.array(np.arange(start, end)))
        return capped(table, cap, priorities, mass)


def _checked(ppm: float) -> float:
    if not 0 <= ppm < _MOST_PPM:  # which NaN is not either
        raise DatabaseError(f"{ppm:g} ppm: expected 0 or more, below {_MOST_PPM:,.0f}")
    return ppm


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _close(held: dict[str, int]) -> None:
    for descriptor in held.values():
        os.close(descriptor)
