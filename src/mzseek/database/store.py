"""The store: a folder with one Parquet file, sorted by mass, and a manifest.

==================  ============================================================================
``manifest.json``   version, sources with their hashes, options, counts, checksums
``molecules.parquet``  key, smiles, formula, mass, bits, fingerprint, sources, identifiers, names
``masses.npy``      the masses alone: a look-up by mass is two searches in it, and a range of rows
``keys.npy``        where the molecules of a key are
``labelled.npy``    where those are that weigh something else than their formula: isotopes
``nearest.*``       fingerprints word by word, for nearest neighbours and mining
``rejects.tsv``     what was set aside, and why
==================  ============================================================================
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mzseek.adducts import parse_adduct
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.chem.fingerprinting import molecule_rows
from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecule import parse_molecule
from mzseek.chem.standard import standardise
from mzseek.database.folder import AGAIN, MANIFEST, MASSES, MOLECULES, StoreFolder, read_manifest
from mzseek.database.found import Found, ManyFound, capped
from mzseek.database.places import KEYS, LABELLED, SAME_MASS, Entries, has_checksum, rows_of
from mzseek.database.rows import packed
from mzseek.errors import DatabaseError, MoleculeError
from mzseek.extras import require
from mzseek.files import StrPath
from mzseek.ragged import spans

_SHOWN_SOURCES = 12
_AT_ONCE = 1 << 18  # molecules whose sources are looked at together
_MOST_PPM = 1e6  # as wide as the mass itself

_CHECKED = replace(MANIFEST, again=f"it was cut short or changed; {AGAIN}")


class Database(StoreFolder):
    """A store that is open for look-ups.

    Examples
    --------
    >>> database = Database.open("hmdb")  # doctest: +SKIP
    >>> database.by_mass(194.0804, ppm=10).table["smiles"][0].as_py()  # doctest: +SKIP
    'Cn1c(=O)c2c(ncn2C)n(C)c1=O'
    """

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
        width = _width(mass, ppm)
        return self._between(mass - width, mass + width, mass, cap, priorities)

    def rows_by_mass(self, mass: float, ppm: float = 10.0) -> npt.NDArray[np.int64]:
        """Places of the molecules within ppm of a neutral mass, rising."""
        width = _width(mass, ppm)
        start, end, _ = self._window(mass - width, mass + width)
        return np.arange(start, end)

    def by_precursor(self, mz: float, adduct: str, ppm: float = 10.0, **capping: Any) -> Found:
        """Molecules whose ion has this m/z; ppm are of the m/z."""
        ion, width = parse_adduct(adduct), mz * _checked(ppm) * 1e-6
        mass = ion.neutral_mass(mz)  # which refuses what is no m/z, or too small a one
        reach = width / ion.slope
        return self._between(mass - reach, mass + reach, mass, **capping)

    def by_formula(
        self, formula: str, *, cap: int | None = None, priorities: Sequence[str] = ()
    ) -> Found:
        """Molecules of a formula, its elements in any order: see `parse_formula`."""
        return capped(self.rows(self.rows_by_formula(formula)), cap, priorities)

    def rows_by_formula(self, formula: str) -> npt.NDArray[np.int64]:
        """Places of the molecules of a formula, rising."""
        try:
            parsed = parse_formula(formula)
        except MoleculeError as error:
            raise DatabaseError(str(error)) from error
        wanted, mass = str(parsed), parsed.mass
        # All of a formula have its mass, but for those with isotope labels.
        start, _, here = self._window(mass - SAME_MASS, mass + SAME_MASS, ["formula"])
        rows = start + np.flatnonzero(pc.equal(here["formula"], wanted).to_numpy())
        return np.union1d(rows, self._rows_of(wanted, self.labelled, "formula"))

    def by_key(self, key: str) -> Found:
        """Molecules with this InChIKey, or first block of one."""
        block = key.strip().upper()[:BLOCK_LENGTH]
        if len(block) != BLOCK_LENGTH or not (block.isascii() and block.isalpha()):
            raise DatabaseError(
                f"{key!r} is no InChIKey, expected at least its {BLOCK_LENGTH} letters"
            )
        rows = self._rows_of(block, self.keys, "key")
        return Found(self.rows(rows), len(rows))

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
        molecule = standardise(parse_molecule(smiles), keep_stereo=self.keep_stereo)
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
        self.check_order()
        width = wanted * _checked(ppm) * 1e-6
        low = np.searchsorted(self.masses, wanted - width, side="left")
        high = np.searchsorted(self.masses, wanted + width, side="right")
        return ManyFound(*spans(low, high))

    def collections(self) -> list[str]:
        """Names of the sources that its molecules come from."""
        names: set[str] = set()
        for batch in self.batches(["sources"], _AT_ONCE):
            names.update(pc.unique(pc.list_flatten(batch["sources"])).to_pylist())
        return sorted(names)

    def require_sources(self, names: Sequence[str]) -> None:
        """Refuse a name that no molecule comes from: what prefers it would do as without it."""
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
        """Anything that DuckDB can say about the table ``molecules``, with all cores.

        Raises
        ------
        MissingExtra
            DuckDB is not installed.
        DatabaseError
            It cannot be asked that, or the table is damaged.
        """
        require("duckdb", "SQL")
        import duckdb

        try:
            said = self._connection.sql(sql, params=list(parameters) or None)
            return said.to_arrow_table() if said is not None else None
        except duckdb.Error as error:
            raise DatabaseError(f"{self.folder}: {str(error).splitlines()[0]}") from error

    @cached_property
    def _connection(self) -> Any:
        """DuckDB with a view of the molecules."""
        import duckdb

        connection = duckdb.connect()
        path = str(self._path(MOLECULES)).replace("'", "''")
        connection.sql("SET parquet_metadata_cache = true")
        connection.sql(
            f"CREATE VIEW molecules AS SELECT * FROM read_parquet('{path}', file_row_number = true)"
        )
        return connection

    def _rows_of(self, text: str, index: Entries, column: str) -> npt.NDArray[np.int64]:
        """Rows with this text in a column, by the column's index."""
        rows = rows_of(text, index)
        texts = self.rows(rows, [column])[column].to_pylist()
        if not has_checksum(texts, text):
            name = KEYS if column == "key" else LABELLED
            raise DatabaseError(
                f"{self.folder}: {name} and {MOLECULES} disagree about {text}; {AGAIN}"
            )
        return rows[[here == text for here in texts]]

    def _between(
        self, low: float, high: float, mass: float, cap: int | None = None,
        priorities: Sequence[str] = (),
    ) -> Found:  # fmt: skip
        """Molecules of a range of masses: since they are sorted, a range of rows."""
        start, end, _ = self._window(low, high)
        table = self.range(start, end).add_column(0, "row", pa.array(np.arange(start, end)))
        return capped(table, cap, priorities, mass)

    def _window(
        self, low: float, high: float, columns: Sequence[str] = ()
    ) -> tuple[int, int, pa.Table]:
        """First row and end of a range of masses, and columns of it."""
        start = int(np.searchsorted(self.masses, low, side="left"))
        end = int(np.searchsorted(self.masses, high, side="right"))
        # With its neighbours: the table rises, so that if they lie on both sides, none was missed.
        first, last = max(start - 1, 0), min(end + 1, len(self))
        around = self.range(first, last, ["mass", *columns])
        masses = around["mass"].to_numpy()
        side = (masses > high).astype(int) - (masses < low)
        spans = [start - first, end - start, last - end]
        if end < start or not np.array_equal(side, np.repeat([-1, 0, 1], spans)):
            raise DatabaseError(
                f"{self.folder}: {MASSES} and {MOLECULES} disagree about the masses from {low:.6f} "
                f"to {high:.6f}; {AGAIN}"
            )
        return start, end, around.slice(start - first, end - start)


def _width(mass: float, ppm: float) -> float:
    """Half of a window of masses."""
    if not (np.isfinite(mass) and mass > 0):
        raise DatabaseError(f"mass {mass:g}: expected a positive number")
    return mass * _checked(ppm) * 1e-6


def _checked(ppm: float) -> float:
    if not 0 <= ppm < _MOST_PPM:  # which NaN is not either
        raise DatabaseError(f"{ppm:g} ppm: expected 0 or more, below {_MOST_PPM:,.0f}")
    return ppm
