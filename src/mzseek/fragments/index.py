"""Pieces of a long list of molecules on disk: found once, read whenever they are wanted.

Molecules are known by their places in the list, and nothing else of them is kept. Arrays are
memory-mapped: what is read is what is asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.files.arrays import check_pointers, let_go, load_array
from mzseek.files.growing import GrowingArray, growing_arrays
from mzseek.fragments.breaking import MOST_BREAKS
from mzseek.fragments.table import PieceTable
from mzseek.ragged import places

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

    def table(self, wanted: npt.NDArray[np.integer]) -> PieceTable:
        """Pieces of the molecules at these places, in this order."""
        rows = np.asarray(wanted, np.int64)
        starts, inside = places(self._starts, rows)
        masses, codes, hydrogens, electrons = (array[inside] for array in self._pieces)
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
