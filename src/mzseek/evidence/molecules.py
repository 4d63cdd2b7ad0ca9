"""Tables of molecules that lists name by their places, each read once whatever is wanted of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.descriptors import DESCRIPTORS, descriptors
from mzseek.chem.fingerprinting.registry import fingerprint_kind
from mzseek.chem.molecule import parse_molecule
from mzseek.fragments import PieceTable, join_tables, piece_table, table_of
from mzseek.similarity.packed import Words, pack_words, unpack_words
from mzseek.work.batches import in_batches
from mzseek.work.progress import Progress, silent

Ints = npt.NDArray[np.int64]
_BATCH = 500  # molecules that a process reads at a time


class Index(Protocol):
    """What was read of a list of molecules before, and kept."""

    kinds: tuple[str, ...]

    def pieces(self, places: Ints) -> PieceTable:
        """Pieces of the molecules at these places."""

    def words(self, kind: str, places: Ints) -> Words:
        """Packed fingerprints of the molecules at these places."""


@dataclass(frozen=True, eq=False)
class Indexed:
    """Where molecules stand in a list that was read before.

    Attributes
    ----------
    index : Index
    places : int64 array, shape (indexed,)
        Of the first molecules of a table; those after them are not in the index.
    """

    index: Index
    places: Ints


class Molecules:
    """A table of molecules.

    Pieces and fingerprints that are not stored are computed from the SMILES. `read` computes
    several of them at once, so that each SMILES is parsed once; what is asked for later is
    computed then. All is kept.

    Parameters
    ----------
    smiles : sequence of str
    fingerprint : str
        Kind of their fingerprints.
    rows : callable of an int array, optional
        Fingerprints of molecules, by place; computed from the SMILES by default.
    jobs : int, optional
        Processes that read molecules; all cores by default.
    indexed : Indexed, optional
        Where what was read of them before is kept; what it lacks is computed.

    Examples
    --------
    >>> table = Molecules(["CCO", "CO"], jobs=1)
    >>> table.read(["rdkit"], pieces=True)
    >>> table.fingerprints(np.array([1]), "rdkit").shape, len(table.pieces.of(1))
    ((1, 4096), 3)
    """

    def __init__(
        self,
        smiles: Sequence[str],
        fingerprint: str = "morgan2",
        rows: Callable[[Ints], csr_array] | None = None,
        jobs: int | None = None,
        indexed: Indexed | None = None,
    ) -> None:
        self.smiles, self.fingerprint = smiles, fingerprint
        self._stored, self._jobs, self._indexed = rows, jobs, indexed
        self._pieces: PieceTable | None = None
        self._words: dict[str, Words] = {}
        self._rows: csr_array | None = None
        self._numbers: dict[int, npt.NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self.smiles)

    def read(
        self, kinds: Iterable[str] = (), *, pieces: bool = False, progress: Progress = silent
    ) -> None:
        """Compute what is wanted and not there yet, all of it in one pass over the molecules.

        Parameters
        ----------
        kinds : iterable of str
            Fingerprints.
        pieces : bool
        progress : callable of (stage, done, total)
        """
        if self._indexed is not None:
            self._look_up(kinds, pieces)
        missing = [kind for kind in dict.fromkeys(kinds) if not self._has(kind)]
        without = pieces and self._pieces is None
        if not missing and not without:
            return
        if without:
            piece_table(["C"], jobs=1)  # compiled here and kept on disk, and not by each process
        tables: list[PieceTable] = []
        words: dict[str, list[Words]] = {kind: [] for kind in missing}
        work = partial(read_batch, kinds=missing, with_pieces=without)
        done = 0
        for batch, (table, bits) in in_batches(work, list(self.smiles), _BATCH, self._jobs):
            tables.append(table)
            for kind in missing:
                words[kind].append(bits[kind])
            done += len(batch)
            progress("molecules", done, len(self))
        if without:
            self._pieces = join_tables(tables)
        for kind, parts in words.items():
            nothing = pack_words(csr_array((0, fingerprint_kind(kind).bits)))
            self._words[kind] = np.concatenate([nothing, *parts])

    def fingerprints(self, wanted: npt.NDArray[np.integer], kind: str | None = None) -> csr_array:
        """0/1 rows of molecules, of the table's kind or of another."""
        asked, kind = np.asarray(wanted, np.int64), kind or self.fingerprint
        if kind == self.fingerprint:
            return self._own_rows()[asked]
        return unpack_words(self.words(kind)[asked], fingerprint_kind(kind).bits)

    def words(self, kind: str) -> Words:
        """Fingerprints of all molecules, packed: shape (molecules, ⌈bits / 64⌉)."""
        if kind not in self._words:
            if self._stored and kind == self.fingerprint:
                self._words[kind] = pack_words(self._own_rows())
            else:
                self.read([kind])
        return self._words[kind]

    def descriptors(self, wanted: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Plain numbers of molecules, see `mzseek.chem.descriptors`: shape (wanted, numbers).

        What learns again and again without some of them asks for the same ones.
        """
        asked = np.asarray(wanted, np.int64).tolist()
        missing = [each for each in dict.fromkeys(asked) if each not in self._numbers]
        found = descriptors([self.smiles[each] for each in missing])
        self._numbers |= zip(missing, found, strict=True)
        nothing = np.empty((0, len(DESCRIPTORS)), np.float32)
        return np.stack([self._numbers[each] for each in asked]) if asked else nothing

    @property
    def pieces(self) -> PieceTable:
        """Pieces of all molecules of the table."""
        self.read(pieces=True)
        assert self._pieces is not None
        return self._pieces

    def _look_up(self, kinds: Iterable[str], pieces: bool) -> None:
        """What is wanted, not there yet, and in the index."""
        assert self._indexed is not None
        index, places = self._indexed.index, self._indexed.places
        wanted = [kind for kind in kinds if kind in index.kinds and not self._has(kind)]
        with_pieces = pieces and self._pieces is None
        if not wanted and not with_pieces:
            return
        table, words = read_batch(self.smiles[len(places) :], wanted, with_pieces)
        for kind in wanted:
            self._words[kind] = np.concatenate([index.words(kind, places), words[kind]])
        if with_pieces:
            self._pieces = join_tables([index.pieces(places), table])

    def _has(self, kind: str) -> bool:
        return kind in self._words or (self._stored is not None and kind == self.fingerprint)

    def _own_rows(self) -> csr_array:
        """Fingerprints of the table's kind, as rows: looked up once."""
        if self._rows is None:
            if self._stored:
                self._rows = self._stored(np.arange(len(self)))
            else:
                kind = self.fingerprint
                self._rows = unpack_words(self.words(kind), fingerprint_kind(kind).bits)
        return self._rows


def read_batch(
    smiles: Sequence[str], kinds: Sequence[str], with_pieces: bool
) -> tuple[PieceTable, dict[str, Words]]:
    """Pieces, if wanted, and packed fingerprints of some molecules, each parsed once."""
    molecules = [parse_molecule(text) for text in smiles]
    words = {kind: fingerprint_kind(kind).words(molecules) for kind in kinds}
    return table_of(molecules if with_pieces else []), words
