"""The MLP on peaks and losses, as `mzseek.models.encoders.peaks_and_losses` has it."""

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.networks.encoders.base import Peaks
from mzseek.networks.layers import Block, Linear, SparseLinear
from mzseek.networks.weights import Array, Weights

BELOW, LOG_SCALE = 10.0, 100.0


class PeaksAndLosses:
    """``E(x) = … W3 B(W2 B(W1 x))`` of peaks, neutral losses and the precursor in bins."""

    reads: ClassVar[str] = "peaks"

    def __init__(self, weights: Weights, options: Any, bins: int) -> None:
        width, highest = options.width, options.highest
        self.bin_width, self.precursor_bin = options.bin_width, options.precursor_bin
        self.intensities = options.intensities
        self.peak_bins = int(highest / self.bin_width) + 1
        self.loss_bins = int((highest + BELOW) / self.bin_width) + 1
        self.precursor_bins = int(highest / self.precursor_bin) + 1 if self.precursor_bin else 0
        self.bins = self.peak_bins + self.loss_bins + self.precursor_bins
        self.first = SparseLinear(weights.under("first"), self.bins, width)
        rest = weights.under("rest")
        self.rest = [
            (Block(rest.under(f"{2 * n}"), width), Linear(rest.under(f"{2 * n + 1}"), width, width))
            for n in range(options.blocks)
        ]

    def __call__(self, spectra: Peaks) -> Array:
        """Embeddings, shape (batch, width)."""
        state = self.first(self._rows(spectra))
        for block, linear in self.rest:
            state = linear(block(state))
        return state

    def _rows(self, peaks: Peaks) -> csr_array:
        """Peaks and losses as sparse rows; a bin that two peaks share has two entries."""
        mz, whole = peaks.mz.astype(np.float64), peaks.precursor_mz.astype(np.float64)[:, None]
        heights = self._heights(peaks.intensities)
        losses = _bins(whole - mz + BELOW, self.bin_width, self.loss_bins) + self.peak_bins
        columns = [_bins(mz, self.bin_width, self.peak_bins), losses]
        values, used = [heights, heights], [peaks.real, peaks.real]
        if self.precursor_bins:
            place = _bins(whole, self.precursor_bin, self.precursor_bins)
            columns.append(place + self.peak_bins + self.loss_bins)
            values.append(np.ones(place.shape, np.float32))
            used.append(np.ones(place.shape, bool))
        entries = np.concatenate(used, 1)
        starts = np.concatenate([[0], entries.sum(1).cumsum()]).astype(np.int32)
        data = np.concatenate(values, 1)[entries], np.concatenate(columns, 1)[entries], starts
        return csr_array(data, shape=(len(entries), self.bins))

    def _heights(self, intensities: Array) -> Array:
        if self.intensities == "sqrt":
            return np.asarray(np.sqrt(intensities), np.float32)
        if self.intensities == "log":
            scaled = np.log1p(intensities * np.float32(LOG_SCALE))
            return np.asarray(scaled / np.float32(math.log1p(LOG_SCALE)), np.float32)
        return intensities


def _bins(mz: npt.NDArray[np.float64], width: float, count: int) -> npt.NDArray[np.int32]:
    """Places in so many bins; what is beyond them is in the first or in the last."""
    return np.floor(mz / width).clip(0, count - 1).astype(np.int32)
