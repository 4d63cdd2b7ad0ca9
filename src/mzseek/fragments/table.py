"""Fragments of many molecules as one table, and an index of them on disk."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol

from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import gather_indices, pointers
from mzseek.fragments.fragmentation import (
    BONDS,
    MAX_CLEAVAGES,
    FragmentColumns,
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
from mzseek.io.skipped import SkipTarget, reporter
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches

_BATCH = 500
_SKIPPED = -1
_COLUMNS = {"masses": np.float64, "codes": np.int8, "hydrogens": np.int32, "electrons": np.int32}
FragmentArrays = tuple[npt.NDArray[np.int64], *FragmentColumns]


@dataclass(frozen=True, eq=False)
class FragmentTable:
    """Fragments of many molecules, one after the other.

    Attributes
    ----------
    starts : int64 array, shape (molecules + 1,)
        Molecule i has rows ``starts[i]`` to ``starts[i + 1]``; none where it was skipped.
    masses, codes, hydrogens, electrons : arrays, shape (rows,)
        As in `Fragments`.
    cleavages : int8 array, shape (molecules,)
        Up to how many cleavages all fragments of each are listed; −1 where it was skipped.
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
    def arrays(self) -> FragmentArrays:
        """What the kernels read."""
        return self.starts, self.masses, self.codes, self.hydrogens, self.electrons

    @property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """Molecules of which fragments were left out because there are too many."""
        return (self.cleavages >= 0) & (self.cleavages < self.requested)

    def of(self, molecule: int) -> Fragments:
        """Return the fragments of one of the molecules."""
        rows = slice(self.starts[molecule], self.starts[molecule + 1])
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        cleavages = int(self.cleavages[molecule])
        return Fragments(**columns, cleavages=cleavages, requested=self.requested)


def fragment_table(
    smiles: Sequence[str],
    cleavages: int = MAX_CLEAVAGES,
    rejects: SkipTarget | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> FragmentTable:
    """Find the fragments of each of many molecules.

    Parameters
    ----------
    smiles : sequence of str
    cleavages : int
        0 to 3.
    rejects : list or callable, optional
        Gets (SMILES, reason) for what is no molecule, which then has no fragments. Without it the
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
    results: list[Fragments | str] = []
    work = partial(_batch, cleavages=cleavages)
    for batch, of_batch in in_batches(work, list(smiles), _BATCH, jobs):
        for text, result in zip(batch, of_batch, strict=True):
            if isinstance(result, str):
                if rejects is None:
                    raise MoleculeError(result)
                reporter(rejects)(text, result)
        results += of_batch
        progress("fragments", len(results), len(smiles))
    return _stacked(results, cleavages)


def table_of(molecules: Sequence[Mol]) -> FragmentTable:
    """Find the fragments of molecules that are parsed already."""
    return _stacked([fragments_of_graph(graph_of(mol)) for mol in molecules], MAX_CLEAVAGES)


def join_tables(tables: Sequence[FragmentTable]) -> FragmentTable:
    """Concatenate tables.

    Examples
    --------
    >>> both = join_tables([fragment_table(["CCO"]), fragment_table(["CO"])])
    >>> len(both.of(0)), len(both.of(1))
    (6, 3)
    """
    first = _stacked([], tables[0].requested if tables else MAX_CLEAVAGES)
    tables = [first, *tables]
    columns = {
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in (*_COLUMNS, "cleavages")
    }
    starts = pointers(np.concatenate([np.diff(table.starts) for table in tables]))
    return FragmentTable(starts, **columns, requested=first.requested)


def _stacked(results: Sequence[Fragments | str], cleavages: int) -> FragmentTable:
    """Concatenate fragments; a text is the reason why a molecule has none."""
    parsed = [fragments for fragments in results if isinstance(fragments, Fragments)]
    complete = [_SKIPPED if isinstance(result, str) else result.cleavages for result in results]
    columns: dict[str, Any] = {
        name: np.concatenate([np.empty(0, dtype), *(getattr(result, name) for result in parsed)])
        for name, dtype in _COLUMNS.items()
    }
    starts = pointers([0 if isinstance(result, str) else len(result) for result in results])
    complete_to = np.array(complete, np.int8)
    return FragmentTable(starts, **columns, cleavages=complete_to, requested=cleavages)


def _batch(smiles: Sequence[str], cleavages: int) -> list[Fragments | str]:
    """Find the fragments of each molecule, or the reason why there are none."""
    results: list[Fragments | str] = []
    for text in smiles:
        try:
            results.append(pieces(text, cleavages))
        except MoleculeError as error:
            results.append(error.reason)
    return results


STARTS, CLEAVAGES = "pieces.starts.npy", "pieces.breaks.npy"
MASSES, CODES = "pieces.masses.npy", "pieces.codes.npy"
# Narrower than in memory: thirteen bytes a fragment.
_OF_FRAGMENTS = {
    MASSES: np.float64, CODES: np.int8, "pieces.hydrogens.npy": np.uint16,
    "pieces.electrons.npy": np.uint16,
}  # fmt: skip
FILES = (STARTS, CLEAVAGES, *_OF_FRAGMENTS)


class FragmentWriter:
    """Adds the fragments of molecules to an index that is being made."""

    def __init__(self, arrays: list[AppendableArray]) -> None:
        self._starts, self._cleavages, *self._fragments = arrays
        self._starts.append(np.zeros(1, np.int64))

    def add(self, table: FragmentTable) -> None:
        """Append the molecules of a table."""
        self._starts.append(self._fragments[0].length + table.starts[1:])
        self._cleavages.append(table.cleavages)
        for array, name in zip(self._fragments, _COLUMNS, strict=True):
            array.append(getattr(table, name))


@contextmanager
def fragment_writer(folder: Path) -> Iterator[FragmentWriter]:
    """Open the files of an index in a folder that is being made."""
    dtypes = {STARTS: np.int64, CLEAVAGES: np.int8, **_OF_FRAGMENTS}
    with appendable_arrays(folder, [(name, dtype, ()) for name, dtype in dtypes.items()]) as arrays:
        yield FragmentWriter(arrays)


class FragmentIndex:
    """The fragments of a list of molecules, by their indices in it.

    Raises `error` where a file is missing, damaged, or not of so many molecules; the message ends
    with `again`, what to do about it.
    """

    def __init__(self, folder: Path, molecules: int, error: type[Exception], again: str) -> None:
        self._folder, self._error, self._again = folder, error, again
        self._starts = load_array(folder / STARTS, np.int64, [molecules + 1], error, again)
        self._cleavages = load_array(folder / CLEAVAGES, np.int8, [molecules], error, again)
        number = int(self._starts[-1])
        check_pointers(self._starts, number, folder / STARTS, error, again)
        self._fragments = [
            load_array(folder / name, dtype, [number], error, again)
            for name, dtype in _OF_FRAGMENTS.items()
        ]

    def __len__(self) -> int:
        return len(self._cleavages)

    def arrays(self, first: int, end: int) -> list[npt.NDArray[np.generic]]:
        """Return all that is kept of the molecules from `first` to `end`."""
        rows = slice(int(self._starts[first]), int(self._starts[end]))
        of_molecules = [self._starts[first : end + 1], self._cleavages[first:end]]
        return [*of_molecules, *(array[rows] for array in self._fragments)]

    def table(self, molecules: npt.NDArray[np.integer]) -> FragmentTable:
        """Return the fragments of the molecules of these indices, in this order."""
        molecules = np.asarray(molecules, np.int64)
        starts, rows = gather_indices(self._starts, molecules)
        columns: dict[str, Any] = {
            name: np.asarray(array[rows], dtype)
            for array, (name, dtype) in zip(self._fragments, _COLUMNS.items(), strict=True)
        }
        check_range(columns["codes"], 0, len(BONDS), self._folder / CODES, self._error, self._again)
        for array in self._fragments:
            release_pages(array)
        return FragmentTable(starts, **columns, cleavages=np.asarray(self._cleavages[molecules]))
