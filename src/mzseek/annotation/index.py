"""An index beside a database: fragments and fingerprints of its molecules, computed once."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.chem.fingerprinting import check_version, fingerprint_kind, manifest_version
from mzseek.core.errors import DatabaseError
from mzseek.database import Database
from mzseek.database.store import MOLECULES
from mzseek.evidence.queries import compute_batch
from mzseek.fragments import FragmentTable, fragment_table
from mzseek.fragments.table import FragmentIndex, fragment_writer
from mzseek.io import StrPath, atomic_directory, sole_writer
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
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Progress, silent
from mzseek.similarity.packed import WORD, Words
from mzseek.version import __version__

KIND = "index of molecules"
_BATCH = 500  # molecules that a process reads at a time
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


def index_store(
    path: StrPath, kinds: Sequence[str], *, jobs: int | None = None, progress: Progress = silent
) -> "MoleculeIndex":
    """Read all molecules of a store once, and keep what channels need of them beside it.

    Parameters
    ----------
    path : Path
        Folder of the store.
    kinds : sequence of str
        Fingerprints that will be asked for.

    Raises
    ------
    DatabaseError, DatasetError, BusyError, WriteError
        The store is damaged, something else is in the way, another process is at it, or the disk
        is full.
    """
    store = Database.open(path)
    out, kinds = index_path(store.folder), tuple(dict.fromkeys(kinds))
    fragment_table(["C"], jobs=1)  # compiled here and kept on disk, and not by each process
    work = partial(compute_batch, kinds=kinds, with_fragments=True)
    batches = (batch["smiles"].to_pylist() for batch in store.batches(["smiles"], _BATCH))
    with sole_writer(out, "indexing molecules"):
        ensure_replaceable(out, KIND, ())
        with atomic_directory(out) as folder:
            forms = [(_file_of(kind), np.uint64, [_words_of(kind)]) for kind in kinds]
            with fragment_writer(folder) as fragments, appendable_arrays(folder, forms) as arrays:
                done = 0
                for table, words in LocalEngine(jobs).results(work, batches):
                    fragments.add(table)
                    for kind, array in zip(kinds, arrays, strict=True):
                        array.append(words[kind])
                    done += len(table)
                    progress("molecules", done, len(store))
            index = MoleculeIndex(folder, done, kinds)
            save_array(folder / SUMS, index.block_sums())
            versions = {"mzseek": __version__}
            for kind in kinds:
                versions |= manifest_version(kind)  # type: ignore[arg-type]
            MANIFEST.write(
                folder,
                {
                    "of": _known_by(store),
                    "molecules": done,
                    "fingerprints": list(kinds),
                    "versions": versions,
                },
            )
    return MoleculeIndex.open(store)


def _known_by(store: Database) -> str:
    """The checksum of its molecules."""
    return str(store.manifest["files"][MOLECULES]["sha256"])


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
    def open(cls, store: Database) -> "MoleculeIndex":
        """Open the index beside a store.

        Raises
        ------
        DatabaseError
            It is none, damaged, changed, or of other molecules.
        """
        folder, molecules = index_path(store.folder), len(store)
        manifest = MANIFEST.read(folder)
        if manifest["of"] != _known_by(store) or manifest["molecules"] != molecules:
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
