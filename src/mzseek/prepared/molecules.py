"""The molecules of a prepared folder: those that it was made with, and those of its segments."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.prepared.layout import Array, in_segment
from mzseek.prepared.text_column import JoinedColumns, TextColumn
from mzseek.ragged import places, pointers

Ints = npt.NDArray[np.int64]


class Molecules:
    """Several tables of molecules, numbered through.

    Parameters
    ----------
    array : callable of str
        Opens an array by its name.
    column : callable of str
        Opens a column of texts by its name.
    segments : int
        Segments there are beside the folder's own table.
    bits : int
        Length of a fingerprint.
    """

    def __init__(
        self,
        array: Callable[[str], npt.NDArray[Any]],
        column: Callable[[str], TextColumn],
        segments: int,
        bits: int,
    ) -> None:
        self._array, self._column, self._bits = array, column, bits
        self._tables = range(segments + 1)

    def __len__(self) -> int:
        return int(self._begins[-1])

    @cached_property
    def smiles(self) -> Sequence[str]:
        """Each molecule's canonical SMILES."""
        return self._texts(Array.SMILES)

    @cached_property
    def formulas(self) -> Sequence[str]:
        """Each molecule's formula."""
        return self._texts(Array.FORMULA)

    @cached_property
    def blocks(self) -> npt.NDArray[np.bytes_]:
        """Each molecule's first InChIKey block."""
        return self._joined(Array.BLOCK)

    @cached_property
    def masses(self) -> npt.NDArray[np.float64]:
        """Each molecule's exact mass."""
        return self._joined(Array.MASS)

    @cached_property
    def fingerprint_sizes(self) -> npt.NDArray[np.int32]:
        """Bits that are set in each molecule's fingerprint."""
        parts = [np.diff(self._pointers(table)).astype(np.int32) for table in self._tables]
        return np.concatenate(parts)

    def own_fingerprints(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        """Row pointers and bits of the folder's own molecules, all measured ones among them."""
        return np.asarray(self._pointers(0)), np.asarray(self._set_bits(0))

    def fingerprint_rows(self, molecules: npt.NDArray[np.integer]) -> csr_array:
        """0/1 rows of the molecules asked for, gathered from their tables."""
        asked = np.asarray(molecules)
        if len(self._tables) == 1:
            indptr, where = places(self._pointers(0), asked)
            bits = self._set_bits(0)[where].astype(np.int32)
        else:
            indptr, bits = self._gathered(asked)
        shape = (len(asked), self._bits)
        return csr_array((np.ones(len(bits), np.int32), bits, indptr), shape=shape)

    def _gathered(self, asked: npt.NDArray[np.integer]) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Row pointers and bits of molecules of several tables, in the order asked for."""
        indptr = pointers(self.fingerprint_sizes[asked])
        bits = np.empty(int(indptr[-1]), np.int32)
        table_of = np.searchsorted(self._begins, asked, side="right") - 1
        for table in np.unique(table_of).tolist():
            here = np.flatnonzero(table_of == table)
            _, where = places(self._pointers(table), asked[here] - self._begins[table])
            bits[places(indptr, here)[1]] = self._set_bits(table)[where]
        return indptr, bits

    @cached_property
    def _begins(self) -> Ints:
        return pointers([len(self._pointers(table)) - 1 for table in self._tables])

    def _pointers(self, table: int) -> npt.NDArray[np.int64]:
        return self._array(in_segment(table, Array.FINGERPRINT_POINTERS))

    def _set_bits(self, table: int) -> npt.NDArray[np.uint16]:
        return self._array(in_segment(table, Array.FINGERPRINT_BITS))

    def _joined(self, name: str) -> npt.NDArray[Any]:
        parts = [self._array(in_segment(table, name)) for table in self._tables]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _texts(self, name: str) -> Sequence[str]:
        parts = [self._column(in_segment(table, name)) for table in self._tables]
        return parts[0] if len(parts) == 1 else JoinedColumns(parts)
