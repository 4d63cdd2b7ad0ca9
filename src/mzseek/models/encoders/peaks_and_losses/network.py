"""The paper's MLP, fed with more: peaks and neutral losses in bins."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.blocks import Block
from mzseek.models.encoders.base import Encoder, SpectrumInput
from mzseek.models.encoders.kind import EncoderKind
from mzseek.models.encoders.peaks_and_losses import ENCODER
from mzseek.models.linear import Linear, SparseLinear
from mzseek.tensors import PeakLists, SparseRows

# A peak above the precursor (an isotope, or noise) is a loss below zero: bins begin so far down.
BELOW = 10.0
LOG_SCALE = 100.0  # an intensity of a hundredth counts log 2, the largest log 101


class PeaksAndLosses(Encoder):
    """``E(x) = … W3 B(W2 B(W1 x))``, as the paper's MLP, of more bins.

    Every peak has an entry in the bin of its m/z and one in the bin of its neutral loss, which is
    the precursor m/z less its own. The precursor can have an entry, too, in wide bins: in narrow
    ones it would tell which of the training molecules it is, and nothing about others.

    Parameters
    ----------
    width : int
        Length of an embedding.
    blocks : int
        Blocks B, as in the paper's MLP.
    dropout : float
    bin_width, highest : float
        Width of bins, and where the last of them begins.
    intensities : str
        ``sqrt``, ``log`` or ``linear``: what the entry of a peak is of its intensity.
    precursor_bin : float
        Width of bins of the precursor m/z; 0 leaves it out.
    peak_dropout : float
        Share of peaks that are left out in training, with their losses.
    """

    kind: ClassVar[EncoderKind] = ENCODER

    def __init__(
        self,
        width: int,
        blocks: int,
        dropout: float,
        bin_width: float,
        highest: float,
        intensities: str,
        precursor_bin: float,
        peak_dropout: float,
    ) -> None:
        super().__init__(width)
        self.bin_width, self.intensities = bin_width, intensities
        self.peak_dropout = peak_dropout
        self.precursor_bin = precursor_bin
        self.counts = bin_counts(bin_width, highest, precursor_bin)
        self.first = SparseLinear(sum(self.counts), width, may_defer=True)
        layers: list[nn.Module] = []
        for _ in range(blocks):
            layers += [Block(width, dropout), Linear(width, width)]
        self.rest = nn.Sequential(*layers)

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings of peak lists, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # the batch maker asks `reads`
        result: Tensor = self.rest(self.first(self.rows(spectra)))
        return result

    def rows(self, peaks: PeakLists) -> SparseRows:
        """Peaks and losses as sparse rows, shape (batch, all bins)."""
        kept, whole = peaks.real, peaks.precursor_mz.double()[:, None]
        if self.training and self.peak_dropout > 0:
            kept = kept & (torch.rand(kept.shape, device=kept.device) >= self.peak_dropout)
        heights = self._heights(peaks.intensities)
        of_peaks, of_losses, of_precursor = self.counts
        mz = peaks.mz.double()
        losses = _bins(whole - mz + BELOW, self.bin_width, of_losses) + of_peaks
        columns = [_bins(mz, self.bin_width, of_peaks), losses]
        values, used = [heights, heights], [kept, kept]
        if of_precursor:
            columns.append(_bins(whole, self.precursor_bin, of_precursor) + of_peaks + of_losses)
            values.append(torch.ones_like(heights[:, :1]))
            used.append(torch.ones_like(kept[:, :1]))
        entries = torch.cat(used, 1)
        starts = torch.zeros(len(kept) + 1, dtype=torch.int32, device=kept.device)
        starts[1:] = entries.sum(1).cumsum(0)
        return SparseRows(
            starts, torch.cat(columns, 1)[entries], torch.cat(values, 1)[entries], sum(self.counts)
        )

    def _heights(self, intensities: Tensor) -> Tensor:
        if self.intensities == "sqrt":
            return intensities.sqrt()
        if self.intensities == "log":
            return (intensities * LOG_SCALE).log1p() / math.log1p(LOG_SCALE)
        return intensities


def _bins(mz: Tensor, width: float, count: int) -> Tensor:
    """Places in so many bins; what is beyond them is in the first or in the last."""
    return (mz / width).floor().clamp(0, count - 1).int()


def bin_counts(bin_width: float, highest: float, precursor_bin: float) -> tuple[int, int, int]:
    """Bins of peaks, of losses, and of the precursor.

    Examples
    --------
    >>> bin_counts(0.1, 1000.0, 0.0), bin_counts(0.1, 1000.0, 50.0)
    ((10001, 10101, 0), (10001, 10101, 21))
    """
    return (
        int(highest / bin_width) + 1,
        int((highest + BELOW) / bin_width) + 1,
        int(highest / precursor_bin) + 1 if precursor_bin else 0,
    )
