"""Batches of a prepared folder as tensors. The only module of this package that needs torch."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.tensors import PeakLists, SparseRows


@dataclass(frozen=True)
class BatchLists:
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

    def to(self, device: torch.device | str) -> "BatchLists":
        """Copy to a device."""
        return BatchLists(self.rows.to(device), self.counts.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Batch:
    """Input of a step of training or prediction.

    Attributes
    ----------
    queries : int64 array, shape (batch,)
        Indices of the spectra in the prepared folder.
    spectra : SparseRows, shape (batch, bins), or PeakLists
        As the encoder reads them.
    target : SparseRows of ones, shape (batch, bits)
        Fingerprints of the true molecules.
    lists : dict of str to BatchLists
        Candidates by retrieval setting.
    """

    queries: npt.NDArray[np.int64]
    spectra: SparseRows | PeakLists
    target: SparseRows
    lists: dict[str, BatchLists]

    def to(self, device: torch.device | str) -> "Batch":
        """Copy to a device."""
        lists = {name: part.to(device) for name, part in self.lists.items()}
        return Batch(self.queries, self.spectra.to(device), self.target.to(device), lists)


class BatchMaker:
    """Makes batches of a prepared folder.

    Parameters
    ----------
    prepared : Prepared
    reads : str
        ``bins`` or ``peaks``: what the encoder reads.
    settings, queries, identity
        As in `mzseek.datasets.slices.Slices`.
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
        self.prepared = prepared
        self.slices = Slices(prepared, settings, queries, identity=identity)
        self.reads = reads
        self.backward = backward
        self.backward_lists = backward_lists

    def with_lists(
        self, queries: npt.NDArray[np.int64], setting: str, identity: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the spectra that have a candidate list: see `Slices.with_lists`."""
        return self.slices.with_lists(queries, setting, identity)

    def lists(self, queries: npt.NDArray[np.int64], setting: str) -> BatchLists:
        """Return the candidates of spectra, which must all have a list."""
        rows, counts, labels = self.slices.lists(queries, setting)
        return BatchLists(
            SparseRows.from_arrays(*rows, transpose=self.backward_lists),
            torch.from_numpy(counts),
            torch.from_numpy(labels),
        )

    def make(
        self, queries: npt.NDArray[np.int64], settings: tuple[str, ...] | None = None
    ) -> Batch:
        """Make the batch of spectra, with candidates of the settings (all by default)."""
        names = tuple(self.slices.stores) if settings is None else settings
        spectra: SparseRows | PeakLists
        if self.reads == "bins":
            spectra = SparseRows.from_arrays(*self.slices.bins(queries), transpose=self.backward)
        else:
            spectra = PeakLists(*map(torch.from_numpy, self.slices.peaks(queries)))
        target = SparseRows.from_arrays(*self.slices.targets(queries))
        return Batch(queries, spectra, target, {name: self.lists(queries, name) for name in names})
