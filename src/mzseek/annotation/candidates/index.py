"""What channels read of molecules, kept on disk beside a database: pieces and fingerprints.

Reading a molecule (parsing it, breaking it, hashing its paths) takes a millisecond, and scoring it
less than a tenth of that. Who asks the same database often reads its molecules once and for all.
The index holds no molecule: it is of a list that it knows by a key, and by places in it.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.chem.fingerprinting.registry import check_version, fingerprint_kind, kept_version
from mzseek.errors import AnnotationError
from mzseek.evidence.molecules import read_batch
from mzseek.files import StrPath, atomic_directory, sole_writer
from mzseek.files.arrays import let_go, load_array
from mzseek.files.growing import growing_arrays
from mzseek.files.manifest import Manifest
from mzseek.files.owned import ensure_replaceable
from mzseek.fragments import PieceTable, piece_table
from mzseek.fragments.index import PieceIndex, piece_writer
from mzseek.similarity.packed import WORD, Words
from mzseek.version import __version__
from mzseek.work import LocalEngine
from mzseek.work.progress import Progress, silent

KIND = "index of molecules"
_AGAIN = "make it again with `mzseek database index`"
_FIELDS = {"of": str, "molecules": int, "fingerprints": [str]}
MANIFEST = Manifest(KIND, AnnotationError, _AGAIN, _FIELDS, versions=(1,))


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
    out, wanted = Path(out), tuple(dict.fromkeys(kinds))
    piece_table(["C"], jobs=1)  # compiled here and kept on disk, and not by each process
    work = partial(read_batch, kinds=wanted, with_pieces=True)
    with sole_writer(out, "indexing molecules"):
        ensure_replaceable(out, KIND, ())
        with atomic_directory(out) as partial_folder:
            forms = [(_file_of(kind), np.uint64, [_words_of(kind)]) for kind in wanted]
            with (
                piece_writer(partial_folder) as pieces,
                growing_arrays(partial_folder, forms) as arrays,
            ):
                done = 0
                for table, words in LocalEngine(jobs).results(work, batches):
                    pieces.add(table)
                    for kind, array in zip(wanted, arrays, strict=True):
                        array.append(words[kind])
                    done += len(table)
                    progress("molecules", done, total)
            versions = {"mzseek": __version__}
            for kind in wanted:
                versions |= kept_version(kind)  # type: ignore[arg-type]
            MANIFEST.write(
                partial_folder,
                {"of": of, "molecules": done, "fingerprints": list(wanted), "versions": versions},
            )
    return MoleculeIndex.open(out, of, total)


class MoleculeIndex:
    """An index that is open; arrays are memory-mapped.

    Attributes
    ----------
    folder : Path
    kinds : tuple of str
        Fingerprints that it holds.
    """

    def __init__(self, folder: Path, molecules: int, kinds: Sequence[str]) -> None:
        self.folder, self.kinds = folder, tuple(kinds)
        self._pieces = PieceIndex(folder, molecules, AnnotationError, _AGAIN)
        self._words = {
            kind: load_array(
                folder / _file_of(kind), np.uint64, [molecules, _words_of(kind)], AnnotationError,
                _AGAIN,
            )
            for kind in kinds
        }  # fmt: skip

    @classmethod
    def open(cls, folder: StrPath, of: str, molecules: int) -> "MoleculeIndex":
        """Open an index, which must be of this list.

        Raises
        ------
        AnnotationError
            It is none, damaged, or of another list.
        """
        folder = Path(folder)
        facts = MANIFEST.read(folder)
        if facts["of"] != of or facts["molecules"] != molecules:
            raise AnnotationError(
                f"{folder}: is the index of other molecules; {_AGAIN}, or remove it"
            )
        for kind in facts["fingerprints"]:
            check_version(kind, facts, folder, AnnotationError, _AGAIN)
        MANIFEST.check_files(folder, facts)
        return cls(folder, molecules, facts["fingerprints"])

    def pieces(self, places: npt.NDArray[np.int64]) -> PieceTable:
        """Pieces of the molecules at these places."""
        return self._pieces.table(places)

    def words(self, kind: str, places: npt.NDArray[np.int64]) -> Words:
        """Packed fingerprints of the molecules at these places."""
        found = np.asarray(self._words[kind][places])
        let_go(self._words[kind])
        return found


def _file_of(kind: str) -> str:
    return f"words.{kind}.npy"


def _words_of(kind: str) -> int:
    return -(-fingerprint_kind(kind).bits // WORD)
