"""Gather spectra, fingerprints and candidate lists of a prepared folder for a batch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import CacheError
from mzseek.core.ragged import gather, pointers
from mzseek.core.registry import check_name
from mzseek.datasets.layout import IDENTITY_BITS, SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared

_GATHERED_AT_ONCE = 200_000


class LoadedLists:
    """Candidates' bits in the order of their lists, held in memory as 16-bit positions.

    A batch of lists is then a few dozen contiguous copies. It takes 2 bytes a set bit: 60 MB for
    the lists of 4,400 molecules of MassBank, 0.7 GB at MassSpecGym's size.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the candidate lists.
    molecules : int array
        Measured molecules whose lists are wanted, each once.
    """

    def __init__(
        self, prepared: Prepared, setting: str, molecules: npt.NDArray[np.integer]
    ) -> None:
        self._prepared, self._setting = prepared, setting
        lists = prepared.candidates(setting)
        numbers = np.asarray(lists.list_of)[molecules]
        numbers = numbers[numbers >= 0]
        counts = lists.sizes[numbers]
        # Where a measured molecule's list begins, as a number of candidates; -1 where it has none.
        self._list_row = np.full(len(lists.list_of), -1, np.int64)
        self._list_row[molecules[lists.list_of[molecules] >= 0]] = np.arange(len(numbers))
        self._indptr = pointers(counts)
        _, members = gather(lists.indptr, (lists.molecules, lists.identity), numbers)
        self.molecules, self.identity = map(np.asarray, members)
        sizes = self._sizes = prepared.fingerprint_sizes[self.molecules]
        self._bit_indptr = pointers(sizes)
        self._bits = np.empty(int(sizes.sum()), np.uint16)
        for start in range(0, len(self.molecules), _GATHERED_AT_ONCE):
            end = min(start + _GATHERED_AT_ONCE, len(self.molecules))
            rows = prepared.fingerprint_rows(self.molecules[start:end])
            self._bits[self._bit_indptr[start] : self._bit_indptr[end]] = rows.indices

    def labelled(self, identity: int) -> npt.NDArray[np.bool_]:
        """For each molecule of the table, whether it has a list with the truth labelled in it."""
        has_label = np.zeros(len(self._list_row), bool)
        has = np.flatnonzero(self._list_row >= 0)
        if len(has):
            hits = pointers((self.identity & identity) > 0)
            row = self._list_row[has]
            has_label[has] = hits[self._indptr[row + 1]] > hits[self._indptr[row]]
        return has_label

    def _rows_of(self, molecules: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        row: npt.NDArray[np.int64] = self._list_row[molecules]
        if row.min(initial=0) < 0:
            smiles = self._prepared.smiles[int(molecules[int(row.argmin())])]
            raise CacheError(
                f"{self._prepared.folder}: {smiles} has no {self._setting} candidates, or they "
                "were not asked for"
            )
        return row

    def of(
        self, molecules: npt.NDArray[np.integer]
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.int32],
        npt.NDArray[np.uint16],
        npt.NDArray[np.uint8],
    ]:
        """Lists of the molecules asked for: counts, bits a candidate, the bits, identities."""
        row = self._rows_of(molecules)
        starts, ends = self._indptr[row], self._indptr[row + 1]
        ranges = [slice(s, e) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
        first, last = self._bit_indptr[starts].tolist(), self._bit_indptr[ends].tolist()
        return (
            ends - starts,
            np.concatenate([self._sizes[span] for span in ranges]),
            np.concatenate([self._bits[s:e] for s, e in zip(first, last, strict=True)]),
            np.concatenate([self.identity[span] for span in ranges]),
        )

    def counts(self, molecules: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Candidates in the list of each of the molecules."""
        row = self._rows_of(molecules)
        return np.asarray(self._indptr[row + 1] - self._indptr[row])

    def members(
        self, molecules: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """The lists of the molecules strung together: candidates, and in what sense each is it."""
        _, (members, identity) = gather(
            self._indptr, (self.molecules, self.identity), self._rows_of(molecules)
        )
        return members, identity


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
        """The same as scipy's matrix of float32, with its ones written out."""
        values = np.ones(len(self.columns), np.float32) if self.values is None else self.values
        columns = self.columns.astype(np.int32, copy=False)
        return csr_array((values, columns, self.indptr), (len(self.indptr) - 1, self.width))


class ListSlices(NamedTuple):
    """Candidate lists, strung together.

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

    Parameters
    ----------
    prepared : Prepared
    settings : tuple of str
        Names of the candidate lists that will be asked for.
    queries : int array
        Spectra that will be asked for: the bits of their candidates are gathered once, here.
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
        self.stores = {name: LoadedLists(prepared, name, molecules) for name in settings}
        # Views without numpy's memmap class, whose every slice costs a microsecond more.
        self._indptr = np.asarray(prepared.bins.indptr)
        self._columns = np.asarray(prepared.bins.indices)
        self._values = np.asarray(prepared.bins.data)
        self._fingerprint_indptr, self._fingerprint_bits = prepared.base_fingerprints()

    def with_lists(
        self, queries: npt.NDArray[np.int64], setting: str, identity: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Those of the spectra that have a candidate list.

        With an identity, only those in whose list the truth is labelled in that sense.
        """
        label = IDENTITY_BITS[identity] if identity else SAME_FINGERPRINT | SAME_INCHIKEY
        usable = self.stores[setting].labelled(label)
        return queries[usable[self.prepared.molecule[queries]]]

    def bins(self, queries: npt.NDArray[np.int64]) -> RowSlices:
        """Binned spectra."""
        indptr, (columns, values) = gather(self._indptr, (self._columns, self._values), queries)
        return RowSlices(indptr, columns, values, self.prepared.bins.shape[1])

    def targets(self, queries: npt.NDArray[np.int64]) -> RowSlices:
        """Fingerprints of the true molecules."""
        molecules = self.prepared.molecule[queries]
        indptr, (bits,) = gather(self._fingerprint_indptr, (self._fingerprint_bits,), molecules)
        return RowSlices(indptr, bits, None, self._bits)

    def lists(self, queries: npt.NDArray[np.int64], setting: str) -> ListSlices:
        """The candidates of the spectra asked for, which must all have a list."""
        counts, sizes, bits, identity = self.stores[setting].of(self.prepared.molecule[queries])
        indptr = pointers(sizes, np.int32)
        labels = (identity & IDENTITY_BITS[self.identity]) > 0
        return ListSlices(RowSlices(indptr, bits, None, self._bits), counts, labels)

    def peaks(self, queries: npt.NDArray[np.int64]) -> PeakSlices:
        """Peaks of the spectra, the largest `MAX_PEAKS` of each, in the order of m/z."""
        return peak_slices(
            [self.prepared.peaks(int(query)) for query in queries],
            self.prepared.precursor_mz[queries],
        )


def peak_slices(
    spectra: Sequence[tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]],
    precursor_mz: npt.NDArray[np.floating],
) -> PeakSlices:
    """m/z and intensities of spectra, the largest `MAX_PEAKS` of each, in the order of m/z."""
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
