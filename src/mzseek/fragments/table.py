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
from mzseek.core.ragged import gather_indices, pointers
from mzseek.fragments.fragmentation import (
    BONDS,
    MAX_CLEAVAGES,
    Fragments,
    fragments_of_graph,
    graph_of,
    pieces,
)
from mzseek.io.arrays import (
    AppendableArray,
    appendable_arrays,
    check_pointers,
    check_range,
    load_array,
    release_pages,
)
from mzseek.io.skipped import Rejects, reporter
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches

_BATCH = 500
_ASIDE = -1


@dataclass(frozen=True, eq=False)
class FragmentTable:
    """Fragments of many molecules, one after the other.

    Attributes
    ----------
    starts : int64 array, shape (molecules + 1,)
        Molecule i has rows ``starts[i]`` to ``starts[i + 1]``; none where it was set aside.
    masses, codes, hydrogens, electrons : arrays, shape (rows,)
        As in `Fragments`.
    cleavages : int8 array, shape (molecules,)
        Up to how many cleavages all pieces of each are listed; −1 where it was set aside.
    requested : int
        Up to how many were asked for.
    """

    starts: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int8]
    hydrogens: npt.NDArray[np.int32]
    electrons: npt.NDArray[np.int32]
    cleavages: npt.NDArray[np.int8]
    requested: int = MAX_CLEAVAGES

    def __len__(self) -> int:
        return len(self.cleavages)

    @property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """Molecules of which pieces were left out because there are too many."""
        return (self.cleavages >= 0) & (self.cleavages < self.requested)

    def of(self, molecule: int) -> Fragments:
        """Fragments of one of the molecules."""
        rows = slice(self.starts[molecule], self.starts[molecule + 1])
        return Fragments(
            self.masses[rows],
            self.codes[rows],
            self.hydrogens[rows],
            self.electrons[rows],
            int(self.cleavages[molecule]),
            self.requested,
        )


def fragment_table(
    smiles: Sequence[str],
    cleavages: int = MAX_CLEAVAGES,
    rejects: Rejects | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> FragmentTable:
    """Fragments of each of many molecules.

    Parameters
    ----------
    smiles : sequence of str
    cleavages : int
        0 to 3.
    rejects : list or callable, optional
        Gets (SMILES, reason) for what is no molecule, which then has no pieces. Without it the
        first of them raises.
    jobs : int, optional
        Processes; all cores by default. RDKit holds Python's lock while it parses.
    progress : callable

    Examples
    --------
    >>> table = fragment_table(["CCO", "CO"])
    >>> len(table.of(0)), len(table.of(1)), table.cleavages.tolist()
    (6, 3, [3, 3])
    """
    pieces("C")  # compiled here and kept on disk, once, and not by each process
    found: list[Fragments | str] = []
    for batch, result in in_batches(
        partial(_batch, cleavages=cleavages), list(smiles), _BATCH, jobs
    ):
        for text, each in zip(batch, result, strict=True):
            if isinstance(each, str):
                if rejects is None:
                    raise MoleculeError(each)
                reporter(rejects)(text, each)
        found += result
        progress("pieces", len(found), len(smiles))
    return _strung(found, cleavages)


def table_of(molecules: Sequence[Mol], cleavages: int = MAX_CLEAVAGES) -> FragmentTable:
    """Fragments of molecules that are parsed already."""
    return _strung([fragments_of_graph(graph_of(each), cleavages) for each in molecules], cleavages)


def join_tables(tables: Sequence[FragmentTable]) -> FragmentTable:
    """The molecules of several tables, one table after the other.

    Examples
    --------
    >>> both = join_tables([fragment_table(["CCO"]), fragment_table(["CO"])])
    >>> len(both.of(0)), len(both.of(1))
    (6, 3)
    """
    first = _strung([], tables[0].requested if tables else MAX_CLEAVAGES)
    whole = [first, *tables]
    return FragmentTable(
        pointers(np.concatenate([np.diff(each.starts) for each in whole])),
        np.concatenate([each.masses for each in whole]),
        np.concatenate([each.codes for each in whole]),
        np.concatenate([each.hydrogens for each in whole]),
        np.concatenate([each.electrons for each in whole]),
        np.concatenate([each.cleavages for each in whole]),
        first.requested,
    )


def _strung(found: Sequence[Fragments | str], cleavages: int) -> FragmentTable:
    """Fragments one after the other; a text in the place of pieces says why there are none."""
    good = [each for each in found if isinstance(each, Fragments)]
    return FragmentTable(
        pointers([0 if isinstance(each, str) else len(each) for each in found]),
        np.concatenate([np.empty(0), *(each.masses for each in good)]),
        np.concatenate([np.empty(0, np.int8), *(each.codes for each in good)]),
        np.concatenate([np.empty(0, np.int32), *(each.hydrogens for each in good)]),
        np.concatenate([np.empty(0, np.int32), *(each.electrons for each in good)]),
        np.array([_ASIDE if isinstance(each, str) else each.cleavages for each in found], np.int8),
        cleavages,
    )


def _batch(smiles: Sequence[str], cleavages: int) -> list[Fragments | str]:
    """Fragments of each molecule, or why there are none."""
    found: list[Fragments | str] = []
    for text in smiles:
        try:
            found.append(pieces(text, cleavages))
        except MoleculeError as error:
            found.append(str(error))
    return found


STARTS, BREAKS = "pieces.starts.npy", "pieces.breaks.npy"
MASSES, CODES = "pieces.masses.npy", "pieces.codes.npy"
HYDROGENS, ELECTRONS = "pieces.hydrogens.npy", "pieces.electrons.npy"
_OF_MOLECULES = ((STARTS, np.int64, ()), (BREAKS, np.int8, ()))
# Narrower than in memory: thirteen bytes a fragment.
_OF_PIECES = (
    (MASSES, np.float64, ()), (CODES, np.int8, ()), (HYDROGENS, np.uint16, ()),
    (ELECTRONS, np.uint16, ()),
)  # fmt: skip
FILES = tuple(name for name, _, _ in (*_OF_MOLECULES, *_OF_PIECES))


class FragmentWriter:
    """Adds the pieces of molecules to an index that is being made."""

    def __init__(self, arrays: list[AppendableArray]) -> None:
        self._starts, self._breaks, *self._fragments = arrays
        self._starts.append(np.zeros(1, np.int64))

    def add(self, table: FragmentTable) -> None:
        """Append the molecules of a table."""
        begin = self._fragments[0].length
        self._starts.append(begin + table.starts[1:])
        self._breaks.append(table.cleavages)
        masses, codes, hydrogens, electrons = self._fragments
        masses.append(table.masses)
        codes.append(table.codes)
        hydrogens.append(table.hydrogens)
        electrons.append(table.electrons)


@contextmanager
def fragment_writer(folder: Path) -> Iterator[FragmentWriter]:
    """The files of an index in a folder that is being made."""
    with appendable_arrays(folder, (*_OF_MOLECULES, *_OF_PIECES)) as arrays:
        yield FragmentWriter(arrays)


class FragmentIndex:
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
        self._fragments = [
            load_array(folder / name, dtype, [number], error, again)
            for name, dtype, _ in _OF_PIECES
        ]

    def __len__(self) -> int:
        return len(self._breaks)

    def arrays(self, first: int, end: int) -> list[npt.NDArray[np.generic]]:
        """All that is kept of the molecules from one place to another."""
        pieces = slice(int(self._starts[first]), int(self._starts[end]))
        own = [self._starts[first : end + 1], self._breaks[first:end]]
        return [*own, *(array[pieces] for array in self._fragments)]

    def table(self, requested: npt.NDArray[np.integer]) -> FragmentTable:
        """Fragments of the molecules at these places, in this order."""
        rows = np.asarray(requested, np.int64)
        starts, inside = gather_indices(self._starts, rows)
        masses, codes, hydrogens, electrons = (array[inside] for array in self._fragments)
        check_range(codes, 0, len(BONDS), self._folder / CODES, self._error, self._again)
        for array in self._fragments:
            release_pages(array)
        return FragmentTable(
            starts,
            np.asarray(masses),
            np.asarray(codes),
            hydrogens.astype(np.int32),
            electrons.astype(np.int32),
            np.asarray(self._breaks[rows]),
            MAX_CLEAVAGES,
        )
