"""Candidate molecules, candidate sources, and an index of what channels read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.features import normalise_name
from mzseek.chem.fingerprinting import check_version, fingerprint_kind, manifest_version
from mzseek.chem.formulas import parse_formula
from mzseek.core.errors import AnnotationError, DatabaseError, InputError, MoleculeError
from mzseek.evidence.queries import compute_batch
from mzseek.fragments import FragmentTable, fragment_table
from mzseek.fragments.table import FragmentIndex, fragment_writer
from mzseek.io import StrPath, atomic_directory, open_source, sole_writer
from mzseek.io.arrays import appendable_arrays, load_array, release_pages, save_array
from mzseek.io.manifest import (
    BLOCK,
    BlockSums,
    Manifest,
    Read,
    Sums,
    block_sums,
    ensure_replaceable,
)
from mzseek.io.text_tables import find_column, format_names, open_table, require_text
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Progress, silent
from mzseek.similarity.packed import WORD, Words
from mzseek.version import __version__

KIND = "index of molecules"
_AGAIN = "make it again with `mzseek database index`"
_FRAGMENTS = "pieces.*.npy"
SUMS = "sums.npy"  # checksums of blocks of molecules, of what is read together
_FIELDS = {"of": str, "molecules": int, "fingerprints": [str]}
MANIFEST = Manifest(KIND, DatabaseError, _AGAIN, _FIELDS, versions=(1,))


def index_path(store: StrPath) -> Path:
    """Where the index of a store lies: beside it, so that both can be replaced.

    Examples
    --------
    >>> index_path("molecules/hmdb").name
    'hmdb.index'
    """
    folder = Path(store).resolve()
    return folder.with_name(f"{folder.name}.index")


def build_index(
    batches: Iterable[Sequence[str]],
    total: int,
    out: StrPath,
    of: str,
    kinds: Sequence[str],
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> "MoleculeIndex":
    """Read all molecules of a list, and keep what channels want to know of them.

    Parameters
    ----------
    batches : iterable of sequences of str
        SMILES, in the order of the list.
    total : int
        How many there are.
    out : Path
        Folder to make.
    of : str
        What the list is known by: its checksum.
    kinds : sequence of str
        Fingerprints.

    Raises
    ------
    DatasetError, BusyError, WriteError
        Something else is in the way, another process is at it, or the disk is full.
    """
    out, fingerprint_kinds = Path(out), tuple(dict.fromkeys(kinds))
    fragment_table(["C"], jobs=1)  # compiled here and kept on disk, and not by each process
    work = partial(compute_batch, kinds=fingerprint_kinds, with_fragments=True)
    with sole_writer(out, "indexing molecules"):
        ensure_replaceable(out, KIND, ())
        with atomic_directory(out) as partial_folder:
            forms = [(_file_of(kind), np.uint64, [_words_of(kind)]) for kind in fingerprint_kinds]
            with (
                fragment_writer(partial_folder) as fragments,
                appendable_arrays(partial_folder, forms) as arrays,
            ):
                done = 0
                for table, words in LocalEngine(jobs).results(work, batches):
                    fragments.add(table)
                    for kind, array in zip(fingerprint_kinds, arrays, strict=True):
                        array.append(words[kind])
                    done += len(table)
                    progress("molecules", done, total)
            index = MoleculeIndex(partial_folder, done, fingerprint_kinds)
            save_array(partial_folder / SUMS, index.block_sums())
            versions = {"mzseek": __version__}
            for kind in fingerprint_kinds:
                versions |= manifest_version(kind)  # type: ignore[arg-type]
            MANIFEST.write(
                partial_folder,
                {
                    "of": of,
                    "molecules": done,
                    "fingerprints": list(fingerprint_kinds),
                    "versions": versions,
                },
            )
    return MoleculeIndex.open(out, of, total)


class MoleculeIndex:
    """An index that is open; arrays are memory-mapped.

    What is read of it is compared with checksums of blocks of molecules first, so that nobody waits
    for gigabytes to be read of which little is needed.

    Attributes
    ----------
    folder : Path
    kinds : tuple of str
        Fingerprints that it holds.
    files : mapping of str to str
        SHA-256 of its files, as its manifest lists them.
    """

    def __init__(self, folder: Path, molecules: int, kinds: Sequence[str]) -> None:
        self.folder, self.kinds = folder, tuple(kinds)
        self.files: Mapping[str, str] = {}
        self._fragments = FragmentIndex(folder, molecules, DatabaseError, _AGAIN)
        self._words = {
            kind: load_array(
                folder / _file_of(kind), np.uint64, [molecules, _words_of(kind)], DatabaseError,
                _AGAIN,
            )
            for kind in kinds
        }  # fmt: skip
        self._sums: dict[str, BlockSums] = {}

    @classmethod
    def open(cls, folder: StrPath, of: str, molecules: int) -> "MoleculeIndex":
        """Open an index, which must be of this list.

        Raises
        ------
        DatabaseError
            It is none, damaged, changed, or of another list.
        """
        folder = Path(folder)
        manifest = MANIFEST.read(folder)
        if manifest["of"] != of or manifest["molecules"] != molecules:
            raise DatabaseError(
                f"{folder}: is the index of other molecules; {_AGAIN}, or remove it"
            )
        for kind in manifest["fingerprints"]:
            check_version(kind, manifest, folder, DatabaseError, _AGAIN)
        MANIFEST.check_files(folder, manifest)
        # An index without sums of blocks, as once made, is read as a whole.
        verified = [SUMS] if SUMS in manifest["files"] else None
        MANIFEST.check_files(folder, manifest, checksums=True, names=verified)
        index = cls(folder, molecules, manifest["fingerprints"])
        index.files = {name: file["sha256"] for name, file in manifest["files"].items()}
        if verified:
            index._open_sums()
        return index

    def _open_sums(self) -> None:
        reads = self._reads()
        shape = [len(reads), -(-len(self._fragments) // BLOCK)]
        sums = load_array(self.folder / SUMS, np.uint32, shape, DatabaseError, _AGAIN)
        self._sums = {
            name: BlockSums(read, len(self._fragments), row_sums)
            for (name, read), row_sums in zip(reads.items(), sums, strict=True)
        }

    def block_sums(self) -> Sums:
        """Checksums of blocks, a row for the fragments and one for each kind of fingerprint."""
        return np.array([block_sums(read, len(self._fragments)) for read in self._reads().values()])

    def _reads(self) -> dict[str, Read]:
        def of_words(words: Words, first: int, end: int) -> list[Words]:
            return [words[first:end]]

        words = {_file_of(kind): partial(of_words, array) for kind, array in self._words.items()}
        return {_FRAGMENTS: self._fragments.arrays, **words}

    def _check(self, what: str, rows: npt.NDArray[np.int64]) -> None:
        if what in self._sums and not self._sums[what].verify_rows(rows):
            raise DatabaseError(f"{self.folder}: {what} has changed; {_AGAIN}")

    def fragments(self, rows: npt.NDArray[np.int64]) -> FragmentTable:
        """Fragments of the molecules at these rows."""
        self._check(_FRAGMENTS, rows)
        return self._fragments.table(rows)

    def words(self, kind: str, rows: npt.NDArray[np.int64]) -> Words:
        """Packed fingerprints of the molecules at these rows."""
        self._check(_file_of(kind), rows)
        words = np.asarray(self._words[kind][rows])
        release_pages(self._words[kind])
        return words


def _file_of(kind: str) -> str:
    return f"words.{kind}.npy"


def _words_of(kind: str) -> int:
    return -(-fingerprint_kind(kind).bits // WORD)


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
    index: MoleculeIndex | None = None

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

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Size, origin and checksum for ``run.json``."""


def formula_text(formula: str) -> str:
    """A formula in the order that molecules have it."""
    try:
        return str(parse_formula(formula))
    except MoleculeError as error:
        raise AnnotationError(f"formula {formula[:40]!r}: {error}") from error


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


_FEATURE = ("feature", "featureid", "mappingfeatureid", "rowid", "scans", "id")
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
    source = open_source(path)
    require_text(source, _EXPECTED)
    table = open_table(source, lambda names: _columns(path, names) is not None)
    columns = _columns(path, table.names) if table else None
    if table is None or columns is None:
        names = format_names(table.names) if table else "no such header"
        raise InputError(path, f"{_EXPECTED}; it has {names}")
    feature, formula = columns
    formulas: dict[str, str] = {}
    for number, cells in table.rows(_refused(path)):
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
            raise InputError(
                f"{path}: line {number}", f"feature {name[:40]!r} has two formulas: "
                f"{formulas[name]} and {read}",
            )  # fmt: skip
    if not formulas:
        raise InputError(path, "names no formula")
    return formulas


def _columns(path: Path, names: Sequence[str]) -> tuple[int, int] | None:
    feature = find_column(path, names, _FEATURE)
    formula = find_column(path, names, _FORMULA)
    return None if feature is None or formula is None else (feature, formula)


def _refused(path: Path):  # type: ignore[no-untyped-def]
    def refuse(number: int, reason: str) -> None:
        raise InputError(f"{path}: line {number}", reason)

    return refuse
