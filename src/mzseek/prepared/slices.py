"""What a batch is made of, as arrays: gathered from a prepared folder, without torch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.errors import CacheError
from mzseek.prepared.layout import SAME_BLOCK, SAME_FINGERPRINT
from mzseek.prepared.loaded_lists import LoadedLists
from mzseek.prepared.reader import Prepared
from mzseek.ragged import gather, pointers
from mzseek.registry import check_name

IDENTITIES = {"fingerprint": SAME_FINGERPRINT, "inchikey": SAME_BLOCK}
MOST_PEAKS = 128


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
        check_name(IDENTITIES, identity, "identity", CacheError)
        self.prepared = prepared
        self.identity = identity
        self._bits = int(prepared.manifest["fingerprint_bits"])
        molecules = np.unique(prepared.molecule[queries])
        self.stores = {name: LoadedLists(prepared, name, molecules) for name in settings}
        # Views without numpy's memmap class, whose every slice costs a microsecond more.
        self._indptr = np.asarray(prepared.bins.indptr)
        self._columns = np.asarray(prepared.bins.indices)
        self._values = np.asarray(prepared.bins.data)
        self._fingerprint_indptr, self._fingerprint_bits = prepared.own_fingerprints()

    def with_lists(
        self, queries: npt.NDArray[np.int64], setting: str, identity: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Those of the spectra that have a candidate list.

        With an identity, only those in whose list the truth is labelled in that sense.
        """
        label = IDENTITIES[identity] if identity else SAME_FINGERPRINT | SAME_BLOCK
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
        labels = (identity & IDENTITIES[self.identity]) > 0
        return ListSlices(RowSlices(indptr, bits, None, self._bits), counts, labels)

    def peaks(self, queries: npt.NDArray[np.int64]) -> PeakSlices:
        """Peaks of the spectra, the largest `MOST_PEAKS` of each, in the order of m/z."""
        return peak_slices(
            [self.prepared.peaks(int(query)) for query in queries],
            self.prepared.precursor_mz[queries],
        )


def peak_slices(
    spectra: Sequence[tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]],
    precursor_mz: npt.NDArray[np.floating],
) -> PeakSlices:
    """m/z and intensities of spectra, the largest `MOST_PEAKS` of each, in the order of m/z."""
    parts = [_largest_peaks(*peaks) for peaks in spectra]
    longest = max(1, max(len(mz) for mz, _ in parts))
    mz = np.zeros((len(parts), longest), np.float32)
    intensities = np.zeros((len(parts), longest), np.float32)
    real = np.zeros((len(parts), longest), bool)
    for row, (places, heights) in enumerate(parts):
        mz[row, : len(places)] = places
        intensities[row, : len(places)] = heights / max(heights.max(initial=0.0), 1e-30)
        real[row, : len(places)] = True
    return PeakSlices(mz, intensities, real, np.asarray(precursor_mz, np.float32))


def _largest_peaks(
    mz: npt.NDArray[np.floating], intensities: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    if len(mz) > MOST_PEAKS:
        kept = np.sort(np.argsort(-intensities, kind="stable")[:MOST_PEAKS])
        mz, intensities = mz[kept], intensities[kept]
    return mz, intensities
