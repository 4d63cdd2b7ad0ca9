"""Candidate molecules, and where they come from: databases, lists, libraries, the bundle."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mzseek.annotation.features import normalise_name
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import AnnotationError, InputError, MoleculeError, Reason
from mzseek.io import StrPath, content_hash
from mzseek.io.skipped import Report, SkipTarget, reporter
from mzseek.io.text_tables import find_column, require_table
from mzseek.library import Library

if TYPE_CHECKING:
    from mzseek.annotation.index import MoleculeIndex
    from mzseek.database.records import MoleculeRecord

_KIND = "morgan2"  # of the fingerprints that describing computes along
_AT_ONCE = 2_000
_CHARGE = re.compile(r"[+-]\d*$")


@dataclass(frozen=True)
class Molecule:
    """A molecule as a source knows it.

    Attributes
    ----------
    smiles, key, formula : str
        ``key`` is the first block of the InChIKey.
    mass : float
    name : str
    sources, identifiers : tuple of str
    row : int
        Its place in a store; −1 where it comes from none.
    """

    smiles: str
    key: str
    formula: str
    mass: float
    name: str = ""
    sources: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    row: int = -1


def formula_text(formula: str) -> str:
    """A formula in the order that molecules have it."""
    from mzseek.chem.formulas import parse_formula

    try:
        return str(parse_formula(formula))
    except MoleculeError as error:
        raise AnnotationError(str(error)) from error


def is_formula(formula: str, known: str) -> bool:
    """Return whether a molecule's formula is a known one; its charge counts only if that has one.

    Parameters
    ----------
    formula : str
        Of a molecule.
    known : str
        As `formula_text` returns it.

    Examples
    --------
    >>> is_formula("C5H14NO+", "C5H14NO"), is_formula("C5H14NO", "C5H14NO+")
    (True, False)
    """
    return formula == known or _CHARGE.sub("", formula) == known


def distinct(molecules: Iterable[Molecule]) -> list[Molecule]:
    """Molecules of one key as one, with the names and sources of all, in an order of their own.

    Spellings, tautomers of one skeleton and stereoisomers are one molecule here. The order is
    by key, so that no order of a file shows.

    Examples
    --------
    >>> one = Molecule("CCO", "LFQSCWFLJHTTHZ", "C2H6O", 46.04, sources=("a",))
    >>> [each.sources for each in distinct([one, replace(one, sources=("b",))])]
    [('a', 'b')]
    """
    by_key: dict[str, list[Molecule]] = {}
    for molecule in molecules:
        by_key.setdefault(molecule.key or molecule.smiles, []).append(molecule)
    return [_merged(by_key[key]) for key in sorted(by_key)]


def _merged(same: Sequence[Molecule]) -> Molecule:
    if len(same) == 1:
        return same[0]
    first = min(same, key=lambda molecule: (len(molecule.smiles), molecule.smiles))
    names = [
        molecule.name
        for molecule in sorted(same, key=lambda molecule: molecule.smiles)
        if molecule.name
    ]
    return replace(
        first,
        name=first.name or (names[0] if names else ""),
        sources=tuple(dict.fromkeys(s for molecule in same for s in molecule.sources)),
        identifiers=tuple(dict.fromkeys(i for molecule in same for i in molecule.identifiers)),
    )


def molecules_of_table(table: pa.Table) -> list[Molecule]:
    """Return the rows of a table of molecules as objects; of no row where the table has none."""
    names = ("smiles", "key", "formula", "mass", "names", "sources", "identifiers")
    rows = table["row"].to_pylist() if "row" in table.column_names else repeat(-1)
    return [
        Molecule(
            smiles, key[:BLOCK_LENGTH], formula, mass, names[0] if names else "", tuple(sources),
            tuple(identifiers), row,
        )
        for (smiles, key, formula, mass, names, sources, identifiers), row in zip(
            zip(*(table[name].to_pylist() for name in names), strict=True), rows, strict=False
        )
    ]  # fmt: skip


class Source(ABC):
    """Molecules to choose from.

    Attributes
    ----------
    label : str
        What annotations call it.
    by_feature : bool
        Whether each feature has a list of its own, so that no mass is looked up.
    index : MoleculeIndex or None
        What was read of its molecules before, by their rows.
    """

    label: str
    by_feature: bool = False
    index: "MoleculeIndex | None" = None

    @abstractmethod
    def __len__(self) -> int:
        """How many molecules there are."""

    @abstractmethod
    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""

    def of_feature(self, name: str) -> list[Molecule]:
        """Molecules that are listed for a feature."""
        raise AnnotationError(f"{self.label}: has no lists for single features ({name})")

    def features(self) -> Collection[str]:
        """Features that it has lists for, where each has its own."""
        return ()

    def share_of(self, keys: Collection[str]) -> float:
        """Return the largest share of the molecules that can have one of so many distinct keys."""
        return min(len(keys) / len(self), 1.0) if len(self) else 1.0

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Size, origin and checksum for ``run.json``."""


class ListedSource(Source):
    """Molecules in memory.

    Parameters
    ----------
    label : str
    molecules : sequence of Molecule
    metadata : mapping
        Kind, path and checksum, for ``run.json``.
    lists : mapping of str to list of int, optional
        For each feature the indices of its own molecules; without it all are looked up by mass.

    Attributes
    ----------
    molecules, base_metadata, lists
        What it was made of.
    """

    def __init__(
        self,
        label: str,
        molecules: Sequence[Molecule],
        metadata: Mapping[str, Any],
        lists: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        masses = np.array([molecule.mass for molecule in molecules], np.float64)
        order = np.argsort(masses, kind="stable")
        self.label, self.base_metadata = label, dict(metadata)
        self.molecules = list(molecules)
        self._order, self._masses = order, masses[order]
        self.lists = lists
        self.by_feature = lists is not None

    def __len__(self) -> int:
        return len(self.molecules)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        low = np.searchsorted(self._masses, mass - reach)
        high = np.searchsorted(self._masses, mass + reach, side="right")
        return [self.molecules[index] for index in self._order[low:high]]

    def of_feature(self, name: str) -> list[Molecule]:
        """Molecules that are listed for a feature; none for one that the list does not name."""
        if self.lists is None:
            return super().of_feature(name)
        return [self.molecules[index] for index in self.lists.get(name, ())]

    def features(self) -> Collection[str]:
        """Features that it has lists for."""
        return self.lists or ()

    def share_of(self, keys: Collection[str]) -> float:
        """Return the share of the molecules that have one of the keys (first InChIKey block)."""
        known = sum(molecule.key in keys for molecule in self.molecules)
        return known / len(self) if len(self) else 1.0

    def metadata(self) -> dict[str, Any]:
        """Kind, path, checksum and size for ``run.json``."""
        return {**self.base_metadata, "molecules": len(self)}

    def save(self, path: Path) -> None:
        """Write it as JSON, for other processes."""
        fields = [self.label, list(map(astuple, self.molecules)), self.base_metadata, self.lists]
        path.write_text(json.dumps(fields), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "ListedSource":
        """Return what `save` has written."""
        label, rows, metadata, lists = json.loads(path.read_text(encoding="utf-8"))
        molecules = [
            Molecule(smiles, key, formula, mass, name, tuple(sources), tuple(identifiers), row)
            for smiles, key, formula, mass, name, sources, identifiers, row in rows
        ]
        return cls(label, molecules, metadata, lists)


def file_source(
    path: StrPath, skipped: SkipTarget, columns: Mapping[str, str] | None = None
) -> ListedSource:
    """Candidates of a user's own file: any that `mzseek database build` reads.

    With a column or SDF data field ``feature`` (or ``feature_id``, ``scans``, ``row ID``) every
    feature has the molecules of its own rows; without one, all are looked up by mass for all
    features.

    Parameters
    ----------
    path : Path
    skipped : list or callable of (where, reason)
        Gets what cannot be read, and rows of a list by feature that name none.
    columns : mapping of str to str, optional
        Names of columns that are not the usual ones, as `read_molecules` takes them.

    Raises
    ------
    InputError
        The file is missing, or none of its rows holds a molecule.
    """
    # What reads lists and databases is imported where one is given.
    from mzseek.database.formats.tables import FEATURE, USUAL
    from mzseek.database.sources import read_molecules

    path = Path(path)
    report = reporter(skipped)
    records = list(read_molecules([path], report, columns={**(columns or {}), FEATURE: USUAL}))
    molecules, indices = _described(records, report)
    lists: dict[str, list[int]] | None = None
    if any(record.feature is not None for record in records):
        lists = {}
        for at, record in enumerate(records):
            if indices[at] < 0:
                continue
            if not record.feature:
                report(record.where, Reason("names no feature, as other rows do", "no-feature"))
                indices[at] = -1
            else:
                lists.setdefault(normalise_name(record.feature), []).append(indices[at])
    if not molecules:
        raise InputError(path, "holds no molecule that can be read")
    metadata = {
        "kind": "file",
        "path": str(path.resolve()),
        "sha256": content_hash(path),
        "set_aside": len(records) - sum(index >= 0 for index in indices),
    }
    return ListedSource(path.name, molecules, metadata, lists)


def _described(
    records: "Sequence[MoleculeRecord]", report: Report
) -> tuple[list[Molecule], list[int]]:
    """Molecules, each text described once, and the index of each record's (−1: skipped)."""
    from mzseek.database.records import RecordsAt, describe_records

    keys = [(record.text, record.name, record.identifier) for record in records]
    first: dict[tuple[str, str, str], MoleculeRecord] = {}
    for key, record in zip(keys, records, strict=True):
        first.setdefault(key, record)
    distinct_records = list(first.values())
    molecules: list[Molecule] = []
    index_of: dict[int, int] = {}
    reasons: dict[str, str] = {}  # by where the first record of a text is
    for start in range(0, len(first), _AT_ONCE):
        batch = RecordsAt(distinct_records[start : start + _AT_ONCE], start)
        described = describe_records(batch, _KIND)
        reasons.update(described.skipped)
        numbers = described.table["place"].to_pylist()
        index_of |= {number: at for at, number in enumerate(numbers, len(molecules))}
        molecules += molecules_of_table(described.table)
    number_of = {key: number for number, key in enumerate(first)}
    indices = [index_of.get(number_of[key], -1) for key in keys]
    for key, record, index in zip(keys, records, indices, strict=True):
        if index < 0:
            report(record.where, reasons[first[key].where])
    return molecules, indices


def library_source(library: Library, label: str, names: Mapping[str, str]) -> ListedSource:
    """The molecules of a library of reference spectra as candidates, with names by key."""
    table = library.molecules
    columns = (table[name].to_pylist() for name in ("smiles", "inchikey", "formula", "mass"))
    molecules = [
        Molecule(smiles, key, formula, mass, names.get(key, ""), sources=(label,))
        for smiles, inchikey, formula, mass in zip(*columns, strict=True)
        for key in (inchikey[:BLOCK_LENGTH],)
    ]
    if not molecules:
        raise AnnotationError(f"{label}: the library holds no molecule")
    return ListedSource(label, molecules, {"kind": "library", "path": str(library.folder)})


class StoreSource(Source):
    """Molecules of a database or of the bundle.

    Parameters
    ----------
    label : str
    metadata : mapping
        Kind, path and checksum, for ``run.json``.
    size : int
        How many molecules there are.
    by_mass : callable of (mass, ppm)
        Returns a table of molecules.
    index : MoleculeIndex, optional
    """

    def __init__(
        self,
        label: str,
        metadata: Mapping[str, Any],
        size: int,
        by_mass: Callable[[float, float], pa.Table],
        index: "MoleculeIndex | None" = None,
    ) -> None:
        self.label, self._metadata, self._size = label, dict(metadata), size
        self._by_mass, self.index = by_mass, index

    @classmethod
    def open(cls, path: StrPath) -> "StoreSource":
        """A store that `mzseek database build` has made, with its index if it has one.

        Raises
        ------
        DatabaseError, AnnotationError
            The store or its index is damaged, or the index is of other molecules.
        """
        from mzseek.annotation.index import MoleculeIndex, index_path
        from mzseek.database import Database

        store = Database.open(path)
        sums = {name: file["sha256"] for name, file in store.manifest["files"].items()}
        metadata = {"kind": "database", "path": str(store.folder), "sha256": sums}
        index = MoleculeIndex.open(store) if index_path(store.folder).is_dir() else None

        def by_mass(mass: float, ppm: float) -> pa.Table:
            return store.by_mass(mass, ppm).table

        return cls(store.folder.name, metadata, len(store), by_mass, index)

    def __len__(self) -> int:
        return self._size

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        return molecules_of_table(self._by_mass(mass, reach / mass * 1e6))

    def metadata(self) -> dict[str, Any]:
        """Kind, path, checksum and size for ``run.json``."""
        return {**self._metadata, "molecules": len(self)}


FEATURE_COLUMNS = ("feature", "featureid", "mappingfeatureid", "rowid", "scans", "id")
_FORMULA = ("formula", "molecularformula", "precursorformula")
_EXPECTED = "expected a table with columns feature and formula"


def read_formulas(path: StrPath) -> dict[str, str]:
    """Formula of each feature that a table names.

    Parameters
    ----------
    path : Path
        A table (tabs, commas or semicolons) with a column ``feature`` (or ``feature_id``,
        ``row ID``, ``scans``) of ids, or of ``file:id`` where several files have one, and a column
        ``formula`` (or ``molecularFormula``).

    Raises
    ------
    InputError
        It is no such table, a formula cannot be read, or a feature has two.
    """
    path = Path(path)
    table, columns = require_table(path, lambda names: _columns(path, names), _EXPECTED)
    feature, formula = columns
    formulas: dict[str, str] = {}

    def refuse(number: int, reason: str) -> None:
        raise InputError(f"{path}: line {number}", reason)

    for number, cells in table.rows(refuse):
        if max(columns) >= len(cells):
            raise InputError(f"{path}: line {number}", f"has {len(cells)} columns")
        name, text = normalise_name(cells[feature]), cells[formula].strip()
        if not name or not text:
            continue
        try:
            read = formula_text(text)
        except AnnotationError as error:
            raise InputError(f"{path}: line {number}", str(error)) from error
        if formulas.setdefault(name, read) != read:
            two = f"{formulas[name]} and {read}"
            raise InputError(
                f"{path}: line {number}", f"feature {name[:40]!r} has two formulas: {two}"
            )
    if not formulas:
        raise InputError(path, "names no formula")
    return formulas


def _columns(path: Path, names: Sequence[str]) -> tuple[int, int] | None:
    feature = find_column(path, names, FEATURE_COLUMNS)
    formula = find_column(path, names, _FORMULA)
    return None if feature is None or formula is None else (feature, formula)
