"""Gather spectra, fingerprints and candidate lists of a prepared folder for a batch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import CacheError
from mzseek.core.ragged import Ragged, gather, pointers
from mzseek.core.registry import check_name
from mzseek.datasets.layout import IDENTITY_BITS, SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import CandidateLists, Prepared

_GATHERED_AT_ONCE = 200_000
MAX_PEAKS = 128


class RowSlices(NamedTuple):
    """Sparse rows.

    Attributes
    ----------
    indptr : int32 array, shape (rows + 1,)
    columns : int array, shape (entries,)
    values : float32 array, shape (entries,), or None
        None means ones.
    width : int
        Columns there are.
    """

    indptr: npt.NDArray[np.int32]
    columns: npt.NDArray[Any]
    values: npt.NDArray[np.float32] | None
    width: int

    def csr(self) -> csr_array:
        """Return a scipy matrix of float32 with explicit ones."""
        values = np.ones(len(self.columns), np.float32) if self.values is None else self.values
        columns = self.columns.astype(np.int32, copy=False)
        return csr_array((values, columns, self.indptr), (len(self.indptr) - 1, self.width))


class ListSlices(NamedTuple):
    """Concatenated candidate lists.

    Attributes
    ----------
    rows : RowSlices of ones, shape (candidates, bits)
    counts : int64 array, shape (lists,)
    labels : bool array, shape (candidates,)
        Every candidate that is identical to the truth.
    """

    rows: RowSlices
    counts: npt.NDArray[np.int64]
    labels: npt.NDArray[np.bool_]


class PeakSlices(NamedTuple):
    """Peaks of spectra, padded to the longest.

    Attributes
    ----------
    mz, intensities : float32 arrays, shape (spectra, peaks)
        Intensities are divided by the spectrum's largest.
    real : bool array, shape (spectra, peaks)
        False where a shorter list is padded.
    precursor_mz : float32 array, shape (spectra,)
    """

    mz: npt.NDArray[np.float32]
    intensities: npt.NDArray[np.float32]
    real: npt.NDArray[np.bool_]
    precursor_mz: npt.NDArray[np.float32]


class Slices:
    """Gathers spectra, fingerprints and candidate lists: no per-candidate Python, no dense rows.

    Bits of candidates are held in memory in the order of the lists, so that a batch of lists is a
    few dozen contiguous copies. It takes 2 bytes a set bit: 60 MB for the lists of 4,400 molecules
    of MassBank, 0.7 GB at MassSpecGym's size.

    Parameters
    ----------
    prepared : Prepared
    settings : tuple of str
        Names of the candidate lists to gather.
    queries : int array
        Spectra to gather: the bits of their candidates are gathered once, here.
    identity : str
        ``fingerprint`` or ``inchikey``: which candidates are labelled as the truth.
    """

    def __init__(
        self,
        prepared: Prepared,
        settings: tuple[str, ...],
        queries: npt.NDArray[np.integer],
        *,
        identity: str = "fingerprint",
    ) -> None:
        check_name(IDENTITY_BITS, identity, "identity", CacheError)
        self.prepared = prepared
        self.identity = identity
        self._bits = int(prepared.manifest["fingerprint_bits"])
        molecules = np.unique(prepared.molecule[queries])
        self.stores = {name: prepared.candidates(name).select(molecules) for name in settings}
        self._list_bits = {name: _bits_of_lists(prepared, self.stores[name]) for name in settings}
        # Views without numpy's memmap class, whose every slice costs a microsecond more.
        self._indptr = np.asarray(prepared.bins.indptr)
        self._columns = np.asarray(prepared.bins.indices)
        self._values = np.asarray(prepared.bins.data)
        self._fingerprint_indptr, self._fingerprint_bits = prepared.base_fingerprints()

    def with_lists(
        self, queries: npt.NDArray[np.int64], setting: str, identity: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the spectra that have a candidate list.

        With an identity, only those in whose list the truth is labelled in that sense.
        """
        label = IDENTITY_BITS[identity] if identity else SAME_FINGERPRINT | SAME_INCHIKEY
        lists = self.stores[setting]
        has_truth = np.append(Ragged(lists.sizes).any((lists.identity & label) > 0), False)
        usable: npt.NDArray[np.bool_] = has_truth[lists.list_of[self.prepared.molecule[queries]]]
        return queries[usable]

    def bins(self, queries: npt.NDArray[np.int64]) -> RowSlices:
        """Gather binned spectra."""
        indptr, (columns, values) = gather(self._indptr, (self._columns, self._values), queries)
        return RowSlices(indptr, columns, values, self.prepared.bins.shape[1])

    def targets(self, queries: npt.NDArray[np.int64]) -> RowSlices:
        """Gather the fingerprints of the true molecules."""
        molecules = self.prepared.molecule[queries]
        indptr, (bits,) = gather(self._fingerprint_indptr, (self._fingerprint_bits,), molecules)
        return RowSlices(indptr, bits, None, self._bits)

    def lists(self, queries: npt.NDArray[np.int64], setting: str) -> ListSlices:
        """Gather the candidates of spectra, which must all have a list."""
        rows, lists = self._list_rows(queries, setting), self.stores[setting]
        sizes, bit_indptr, list_bits = self._list_bits[setting]
        indptr, (bits_set, identity) = gather(lists.indptr, (sizes, lists.identity), rows)
        _, (bits,) = gather(bit_indptr, (list_bits,), rows)
        labels = (identity & IDENTITY_BITS[self.identity]) > 0
        candidates = RowSlices(pointers(bits_set, np.int32), bits, None, self._bits)
        return ListSlices(candidates, np.diff(indptr).astype(np.int64), labels)

    def members(
        self, queries: npt.NDArray[np.int64], setting: str
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Gather list lengths, candidates, and in what sense each candidate is the truth."""
        rows, lists = self._list_rows(queries, setting), self.stores[setting]
        members = lists.molecules, lists.identity
        indptr, (molecules, identity) = gather(lists.indptr, members, rows)
        return np.diff(indptr).astype(np.int64), molecules, identity

    def _list_rows(self, queries: npt.NDArray[np.int64], setting: str) -> npt.NDArray[np.int32]:
        molecules = self.prepared.molecule[queries]
        rows = self.stores[setting].list_of[molecules]
        if rows.min(initial=0) < 0:
            smiles = self.prepared.smiles[int(molecules[int(rows.argmin())])]
            raise CacheError(
                f"{self.prepared.folder}: {smiles} has no {setting} candidates, or they were not "
                "asked for"
            )
        return rows

    def peaks(self, queries: npt.NDArray[np.int64]) -> PeakSlices:
        """Gather the largest `MAX_PEAKS` peaks of each spectrum, in the order of m/z."""
        return peak_slices(
            [self.prepared.peaks(int(query)) for query in queries],
            self.prepared.precursor_mz[queries],
        )


def _bits_of_lists(
    prepared: Prepared, lists: CandidateLists
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
    """Return bit counts of candidates, where the bits of each list begin, and the bits."""
    sizes = prepared.fingerprint_sizes[lists.molecules]
    indptr = pointers(sizes)
    bits = np.empty(int(indptr[-1]), np.uint16)
    for start in range(0, len(sizes), _GATHERED_AT_ONCE):
        end = min(start + _GATHERED_AT_ONCE, len(sizes))
        rows = prepared.fingerprint_rows(lists.molecules[start:end])
        bits[indptr[start] : indptr[end]] = rows.indices
    return sizes, indptr[lists.indptr], bits


def peak_slices(
    spectra: Sequence[tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]],
    precursor_mz: npt.NDArray[np.floating],
) -> PeakSlices:
    """Pad the largest `MAX_PEAKS` peaks of each spectrum, in the order of m/z."""
    parts = []
    for mz, intensities in spectra:
        strongest = np.sort(np.argsort(-intensities, kind="stable")[:MAX_PEAKS])
        parts.append((mz[strongest], intensities[strongest]))
    longest = max(1, max(len(mz) for mz, _ in parts))
    shape = (len(parts), longest)
    padded_mz, heights = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    real = np.zeros(shape, bool)
    for row, (mz, intensities) in enumerate(parts):
        padded_mz[row, : len(mz)] = mz
        heights[row, : len(mz)] = intensities / max(intensities.max(initial=0.0), 1e-30)
        real[row, : len(mz)] = True
    return PeakSlices(padded_mz, heights, real, np.asarray(precursor_mz, np.float32))
