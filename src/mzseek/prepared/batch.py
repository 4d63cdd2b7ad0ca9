"""Typed batches, gathered from a prepared folder."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mzseek.errors import CacheError
from mzseek.prepared.liststore import ListStore, gather
from mzseek.prepared.reader import SAME_BLOCK, SAME_FINGERPRINT, Prepared
from mzseek.tensors import PeakLists, SparseRows

IDENTITIES = {"fingerprint": SAME_FINGERPRINT, "inchikey": SAME_BLOCK}
MOST_PEAKS = 128


@dataclass(frozen=True)
class Lists:
    """The candidate lists of a batch, concatenated.

    Attributes
    ----------
    rows : SparseRows of ones, shape (candidates, bits)
    counts : int64 tensor, shape (batch,)
        Candidates of each spectrum.
    labels : bool tensor, shape (candidates,)
        Every candidate that is identical to the truth.
    """

    rows: SparseRows
    counts: Tensor
    labels: Tensor

    def to(self, device: torch.device | str) -> "Lists":
        """The same on another device."""
        return Lists(self.rows.to(device), self.counts.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Batch:
    """What a step of training or prediction reads.

    Attributes
    ----------
    queries : int64 array, shape (batch,)
        Which spectra of the prepared folder these are.
    spectra : SparseRows, shape (batch, bins), or PeakLists
        As the encoder reads them.
    target : SparseRows of ones, shape (batch, bits)
        Fingerprints of the true molecules.
    lists : dict of str to Lists
        Candidates by retrieval setting.
    """

    queries: npt.NDArray[np.int64]
    spectra: SparseRows | PeakLists
    target: SparseRows
    lists: dict[str, Lists]

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device."""
        lists = {name: part.to(device) for name, part in self.lists.items()}
        return Batch(self.queries, self.spectra.to(device), self.target.to(device), lists)


class BatchMaker:
    """Makes batches of a prepared folder: gathers, no per-candidate Python, no dense rows.

    Parameters
    ----------
    prepared : Prepared
    reads : str
        ``bins`` or ``peaks``: what the encoder reads.
    settings : tuple of str
        Retrieval settings whose candidates go along.
    queries : int array
        Spectra that batches will be made of: the bits of their candidates are gathered once, here.
    identity : str
        ``fingerprint`` or ``inchikey``: which candidates are labelled as the truth.
    backward : bool
        Make spectra ready for a backward pass.
    backward_lists : bool
        Make candidates ready for one, too.
    """

    def __init__(
        self,
        prepared: Prepared,
        reads: str,
        settings: tuple[str, ...],
        queries: npt.NDArray[np.integer],
        *,
        identity: str = "fingerprint",
        backward: bool = True,
        backward_lists: bool = False,
    ) -> None:
        if identity not in IDENTITIES:
            raise CacheError(
                f"identity {identity!r} is unknown, expected one of: {', '.join(IDENTITIES)}"
            )
        self.prepared = prepared
        self.reads = reads
        self.backward = backward
        self.backward_lists = backward_lists
        self.identity = identity
        self._bits = int(prepared.manifest["fingerprint_bits"])
        molecules = np.unique(prepared.molecule[queries])
        self.stores = {name: ListStore(prepared, name, molecules) for name in settings}
        # Views without numpy's memmap class, whose every slice costs a microsecond more.
        self._indptr = np.asarray(prepared.bins.indptr)
        self._columns = np.asarray(prepared.bins.indices)
        self._values = np.asarray(prepared.bins.data)
        self._fingerprint_indptr = np.asarray(prepared.fingerprint_indptr)
        self._fingerprint_bits = np.asarray(prepared.fingerprint_bits)

    def with_lists(
        self, queries: npt.NDArray[np.int64], setting: str, identity: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Those of the spectra that have a candidate list.

        With an identity, only those in whose list the truth is labelled in that sense.
        """
        label = IDENTITIES[identity] if identity else SAME_FINGERPRINT | SAME_BLOCK
        usable = self.stores[setting].labelled(label)
        return queries[usable[self.prepared.molecule[queries]]]

    def lists(self, queries: npt.NDArray[np.int64], setting: str) -> Lists:
        """The candidates of the spectra asked for, which must all have a list."""
        return self._lists(self.stores[setting], self.prepared.molecule[queries])

    def make(
        self, queries: npt.NDArray[np.int64], settings: tuple[str, ...] | None = None
    ) -> Batch:
        """The batch of the spectra asked for, with candidates of the settings asked for."""
        molecules = self.prepared.molecule[queries]
        names = tuple(self.stores) if settings is None else settings
        return Batch(
            queries=queries,
            spectra=self._binned(queries) if self.reads == "bins" else self._peaks(queries),
            target=self._target(molecules),
            lists={name: self._lists(self.stores[name], molecules) for name in names},
        )

    def _binned(self, queries: npt.NDArray[np.int64]) -> SparseRows:
        indptr, (columns, values) = gather(self._indptr, (self._columns, self._values), queries)
        width = self.prepared.bins.shape[1]
        return SparseRows.from_arrays(indptr, columns, values, width, transpose=self.backward)

    def _target(self, molecules: npt.NDArray[np.int32]) -> SparseRows:
        indptr, (bits,) = gather(self._fingerprint_indptr, (self._fingerprint_bits,), molecules)
        return SparseRows.from_arrays(indptr, bits, None, self._bits)

    def _lists(self, store: ListStore, molecules: npt.NDArray[np.int32]) -> Lists:
        counts, sizes, bits, identity = store.of(molecules)
        indptr = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes, out=indptr[1:])
        return Lists(
            rows=SparseRows.from_arrays(
                indptr, bits, None, self._bits, transpose=self.backward_lists
            ),
            counts=torch.from_numpy(counts),
            labels=torch.from_numpy((identity & IDENTITIES[self.identity]) > 0),
        )

    def _peaks(self, queries: npt.NDArray[np.int64]) -> PeakLists:
        found = [self._largest_peaks(int(query)) for query in queries]
        longest = max(1, max(len(mz) for mz, _ in found))
        mz = np.zeros((len(found), longest), np.float32)
        intensities = np.zeros((len(found), longest), np.float32)
        real = np.zeros((len(found), longest), bool)
        for row, (places, heights) in enumerate(found):
            mz[row, : len(places)] = places
            intensities[row, : len(places)] = heights / max(heights.max(initial=0.0), 1e-30)
            real[row, : len(places)] = True
        precursor = self.prepared.precursor_mz[queries].astype(np.float32)
        return PeakLists(*(torch.from_numpy(a) for a in (mz, intensities, real, precursor)))

    def _largest_peaks(self, query: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        mz, intensities = self.prepared.peaks(query)
        if len(mz) > MOST_PEAKS:
            kept = np.sort(np.argsort(-intensities, kind="stable")[:MOST_PEAKS])
            mz, intensities = mz[kept], intensities[kept]
        return mz, intensities
