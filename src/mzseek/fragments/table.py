"""Fragments of many molecules as one table, and an index by mass."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol

from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import places, pointers
from mzseek.fragments.fragmentation import (
    BONDS,
    MOST_BREAKS,
    Pieces,
    graph_of,
    pieces,
    pieces_of_graph,
)
from mzseek.io.arrays import (
    GrowingArray,
    check_pointers,
    check_range,
    growing_arrays,
    let_go,
    load_array,
)
from mzseek.io.skipped import Rejects, reporter
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches

_BATCH = 500
_ASIDE = -1


@dataclass(frozen=True, eq=False)
class PieceTable:
    """Pieces of many molecules, one after the other.

    Attributes
    ----------
    starts : int64 array, shape (molecules + 1,)
        Molecule i has rows ``starts[i]`` to ``starts[i + 1]``; none where it was set aside.
    masses, codes, hydrogens, electrons : arrays, shape (rows,)
        As in `Pieces`.
    breaks : int8 array, shape (molecules,)
        Up to how many breaks all pieces of each are listed; −1 where it was set aside.
    wanted : int
        Up to how many were asked for.
    """

    starts: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int8]
    hydrogens: npt.NDArray[np.int32]
    electrons: npt.NDArray[np.int32]
    breaks: npt.NDArray[np.int8]
    wanted: int = MOST_BREAKS

    def __len__(self) -> int:
        return len(self.breaks)

    @property
    def cut_short(self) -> npt.NDArray[np.bool_]:
        """Molecules of which pieces were left out because there are too many."""
        return (self.breaks >= 0) & (self.breaks < self.wanted)

    def of(self, molecule: int) -> Pieces:
        """Pieces of one of the molecules."""
        rows = slice(self.starts[molecule], self.starts[molecule + 1])
        return Pieces(
            self.masses[rows],
            self.codes[rows],
            self.hydrogens[rows],
            self.electrons[rows],
            int(self.breaks[molecule]),
            self.wanted,
        )


def piece_table(
    smiles: Sequence[str],
    breaks: int = MOST_BREAKS,
    rejects: Rejects | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> PieceTable:
    """Pieces of each of many molecules.

    Parameters
    ----------
    smiles : sequence of str
    breaks : int
        0 to 3.
    rejects : list or callable, optional
        Gets (SMILES, reason) for what is no molecule, which then has no pieces. Without it the
        first of them raises.
    jobs : int, optional
        Processes; all cores by default. RDKit holds Python's lock while it parses.
    progress : callable

    Examples
    --------
    >>> table = piece_table(["CCO", "CO"])
    >>> len(table.of(0)), len(table.of(1)), table.breaks.tolist()
    (6, 3, [3, 3])
    """
    pieces("C")  # compiled here and kept on disk, once, and not by each process
    found: list[Pieces | str] = []
    for batch, result in in_batches(partial(_batch, breaks=breaks), list(smiles), _BATCH, jobs):
        for text, each in zip(batch, result, strict=True):
            if isinstance(each, str):
                if rejects is None:
                    raise MoleculeError(each)
                reporter(rejects)(text, each)
        found += result
        progress("pieces", len(found), len(smiles))
    return _strung(found, breaks)


def table_of(molecules: Sequence[Mol], breaks: int = MOST_BREAKS) -> PieceTable:
    """Pieces of molecules that are parsed already."""
    return _strung([pieces_of_graph(graph_of(each), breaks) for each in molecules], breaks)


def join_tables(tables: Sequence[PieceTable]) -> PieceTable:
    """The molecules of several tables, one table after the other.

    Examples
    --------
    >>> both = join_tables([piece_table(["CCO"]), piece_table(["CO"])])
    >>> len(both.of(0)), len(both.of(1))
    (6, 3)
    """
    first = _strung([], tables[0].wanted if tables else MOST_BREAKS)
    whole = [first, *tables]
    return PieceTable(
        pointers(np.concatenate([np.diff(each.starts) for each in whole])),
        np.concatenate([each.masses for each in whole]),
        np.concatenate([each.codes for each in whole]),
        np.concatenate([each.hydrogens for each in whole]),
        np.concatenate([each.electrons for each in whole]),
        np.concatenate([each.breaks for each in whole]),
        first.wanted,
    )


def _strung(found: Sequence[Pieces | str], breaks: int) -> PieceTable:
    """Pieces one after the other; a text in the place of pieces says why there are none."""
    good = [each for each in found if isinstance(each, Pieces)]
    return PieceTable(
        pointers([0 if isinstance(each, str) else len(each) for each in found]),
        np.concatenate([np.empty(0), *(each.masses for each in good)]),
        np.concatenate([np.empty(0, np.int8), *(each.codes for each in good)]),
        np.concatenate([np.empty(0, np.int32), *(each.hydrogens for each in good)]),
        np.concatenate([np.empty(0, np.int32), *(each.electrons for each in good)]),
        np.array([_ASIDE if isinstance(each, str) else each.breaks for each in found], np.int8),
        breaks,
    )


def _batch(smiles: Sequence[str], breaks: int) -> list[Pieces | str]:
    """Pieces of each molecule, or why there are none."""
    found: list[Pieces | str] = []
    for text in smiles:
        try:
            found.append(pieces(text, breaks))
        except MoleculeError as error:
            found.append(str(error))
    return found


STARTS, BREAKS = "pieces.starts.npy", "pieces.breaks.npy"
MASSES, CODES = "pieces.masses.npy", "pieces.codes.npy"
HYDROGENS, ELECTRONS = "pieces.hydrogens.npy", "pieces.electrons.npy"
_OF_MOLECULES = ((STARTS, np.int64, ()), (BREAKS, np.int8, ()))
# Narrower than in memory: thirteen bytes a piece.
_OF_PIECES = (
    (MASSES, np.float64, ()), (CODES, np.int8, ()), (HYDROGENS, np.uint16, ()),
    (ELECTRONS, np.uint16, ()),
)  # fmt: skip
FILES = tuple(name for name, _, _ in (*_OF_MOLECULES, *_OF_PIECES))


class PieceWriter:
    """Adds the pieces of molecules to an index that is being made."""

    def __init__(self, arrays: list[GrowingArray]) -> None:
        self._starts, self._breaks, *self._pieces = arrays
        self._starts.append(np.zeros(1, np.int64))

    def add(self, table: PieceTable) -> None:
        """Append the molecules of a table."""
        begin = self._pieces[0].length
        self._starts.append(begin + table.starts[1:])
        self._breaks.append(table.breaks)
        masses, codes, hydrogens, electrons = self._pieces
        masses.append(table.masses)
        codes.append(table.codes)
        hydrogens.append(table.hydrogens)
        electrons.append(table.electrons)


@contextmanager
def piece_writer(folder: Path) -> Iterator[PieceWriter]:
    """The files of an index in a folder that is being made."""
    with growing_arrays(folder, (*_OF_MOLECULES, *_OF_PIECES)) as arrays:
        yield PieceWriter(arrays)


class PieceIndex:
    """The pieces of a list of molecules, by their places in it.

    Parameters
    ----------
    folder : Path
    molecules : int
        How many there must be.
    error : type of exception
        What is raised, in the words of the room that the folder belongs to.
    again : str
        What to do about a damaged one.

    Raises
    ------
    error
        A file is missing, damaged, or of another form.
    """

    def __init__(self, folder: Path, molecules: int, error: type[Exception], again: str) -> None:
        self._folder, self._error, self._again = folder, error, again
        self._starts = load_array(folder / STARTS, np.int64, [molecules + 1], error, again)
        self._breaks = load_array(folder / BREAKS, np.int8, [molecules], error, again)
        number = int(self._starts[-1])
        check_pointers(self._starts, number, folder / STARTS, error, again)
        self._pieces = [
            load_array(folder / name, dtype, [number], error, again)
            for name, dtype, _ in _OF_PIECES
        ]

    def __len__(self) -> int:
        return len(self._breaks)

    def arrays(self, first: int, end: int) -> list[npt.NDArray[np.generic]]:
        """All that is kept of the molecules from one place to another."""
        pieces = slice(int(self._starts[first]), int(self._starts[end]))
        own = [self._starts[first : end + 1], self._breaks[first:end]]
        return [*own, *(array[pieces] for array in self._pieces)]

    def table(self, wanted: npt.NDArray[np.integer]) -> PieceTable:
        """Pieces of the molecules at these places, in this order."""
        rows = np.asarray(wanted, np.int64)
        starts, inside = places(self._starts, rows)
        masses, codes, hydrogens, electrons = (array[inside] for array in self._pieces)
        check_range(codes, 0, len(BONDS), self._folder / CODES, self._error, self._again)
        for array in self._pieces:
            let_go(array)
        return PieceTable(
            starts,
            np.asarray(masses),
            np.asarray(codes),
            hydrogens.astype(np.int32),
            electrons.astype(np.int32),
            np.asarray(self._breaks[rows]),
            MOST_BREAKS,
        )
