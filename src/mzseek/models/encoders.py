"""Encoders: networks from a spectrum to an embedding."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from mzseek.models.configs import ENCODERS, EncoderKind
from mzseek.models.layers import Block, Linear, SparseLinear
from mzseek.tensors import PeakLists, SparseRows

SpectrumInput = SparseRows | PeakLists


class Encoder(nn.Module, ABC):
    """Network from a batch of spectra to embeddings of length ``width``."""

    kind: ClassVar[EncoderKind]

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    @abstractmethod
    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embeddings, shape (batch, width)."""


class FourierFeatures(nn.Module):
    """Sines and cosines of a mass at wavelengths from 1,000 down to 0.02.

    A network reads neither the third decimal nor the hundreds off one number; waves of many lengths
    spell them out. Wavelengths, in units of m/z, are equally spaced in their logarithm.
    """

    def __init__(self, waves: int = 64, longest: float = 1000.0, shortest: float = 0.02) -> None:
        super().__init__()
        lengths = torch.logspace(
            math.log10(longest), math.log10(shortest), waves, dtype=torch.float64
        )
        self.register_buffer("frequencies", 2 * math.pi / lengths, persistent=False)
        self.width = 2 * waves

    def forward(self, mz: Tensor) -> Tensor:
        """Features, shape (…, 2 · waves), float32."""
        assert isinstance(self.frequencies, Tensor)
        # In double: at a wavelength of 0.02, float32 would lose the phase of a large mass.
        angles = mz.double()[..., None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


class BlindEncoder(Encoder):
    """One learned vector for every spectrum: what is left is the candidates' own prior."""

    kind: ClassVar[EncoderKind] = ENCODERS["blind"]

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.constant = nn.Parameter(torch.randn(width))

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Return the same embedding for each of the batch, shape (batch, width)."""
        assert isinstance(spectra, SparseRows)  # as its kind says
        return self.constant.expand(spectra.shape[0], -1)


class DeepSets(Encoder):
    """An MLP on each peak, their mean weighted by intensity, an MLP on that and the precursor."""

    kind: ClassVar[EncoderKind] = ENCODERS["deepsets"]

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(width)
        self.fourier = FourierFeatures()
        self.on_peak = nn.Sequential(
            Linear(self.fourier.width + 1, hidden), Block(hidden, dropout), Linear(hidden, hidden)
        )
        self.on_set = nn.Sequential(
            Linear(hidden + self.fourier.width, width), Block(width, dropout), Linear(width, width)
        )

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embed peak lists, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # as its kind says
        peaks = spectra
        features = torch.cat([self.fourier(peaks.mz), peaks.intensities[..., None]], -1)
        states = self.on_peak(features.flatten(0, 1)).unflatten(0, features.shape[:2])
        weights = peaks.intensities * peaks.real
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-12)
        pooled = (states * weights[..., None]).sum(1)  # (batch, hidden)
        result: Tensor = self.on_set(torch.cat([pooled, self.fourier(peaks.precursor_mz)], -1))
        return result


def _blocks(width: int, blocks: int, dropout: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(blocks):
        layers += [Block(width, dropout), Linear(width, width)]
    return nn.Sequential(*layers)


class BinnedMlp(Encoder):
    """``E(x) = W4 B(W3 B(W2 B(W1 x)))`` with three blocks B.

    The paper has 10,050 bins and a width of 1,024; its published runs used two blocks.
    """

    kind: ClassVar[EncoderKind] = ENCODERS["mlp"]

    def __init__(self, bins: int, width: int, blocks: int, dropout: float) -> None:
        super().__init__(width)
        self.first = SparseLinear(bins, width, may_defer=True)
        self.rest = _blocks(width, blocks, dropout)

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embed binned spectra, shape (batch, width)."""
        assert isinstance(spectra, SparseRows)  # as its kind says
        result: Tensor = self.rest(self.first(spectra))
        return result


# A peak above the precursor (an isotope, or noise) is a loss below zero: bins begin so far down.
BELOW = 10.0
LOG_SCALE = 100.0  # an intensity of a hundredth counts log 2, the largest log 101


class PeaksAndLosses(Encoder):
    """``E(x) = … W3 B(W2 B(W1 x))``, as the paper's MLP, of more bins.

    Every peak has an entry in the bin of its m/z and one in the bin of its neutral loss, which is
    the precursor m/z less its own. The precursor can have an entry, too, in wide bins: in narrow
    ones it would tell which of the training molecules it is, and nothing about others.
    ``peak_dropout`` leaves out peaks with their losses, in training.
    """

    kind: ClassVar[EncoderKind] = ENCODERS["peaks-and-losses"]

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
        self.rest = _blocks(width, blocks, dropout)

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embed peak lists, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # as its kind says
        result: Tensor = self.rest(self.first(self.rows(spectra)))
        return result

    def rows(self, peaks: PeakLists) -> SparseRows:
        """Return peaks and losses as sparse rows, shape (batch, all bins)."""
        real, whole = peaks.real, peaks.precursor_mz.double()[:, None]
        if self.training and self.peak_dropout > 0:
            real = real & (torch.rand(real.shape, device=real.device) >= self.peak_dropout)
        heights = self._heights(peaks.intensities)
        of_peaks, of_losses, of_precursor = self.counts
        mz = peaks.mz.double()
        losses = _bins(whole - mz + BELOW, self.bin_width, of_losses) + of_peaks
        columns = [_bins(mz, self.bin_width, of_peaks), losses]
        values, used = [heights, heights], [real, real]
        if of_precursor:
            columns.append(_bins(whole, self.precursor_bin, of_precursor) + of_peaks + of_losses)
            values.append(torch.ones_like(heights[:, :1]))
            used.append(torch.ones_like(real[:, :1]))
        entries = torch.cat(used, 1)
        starts = torch.zeros(len(real) + 1, dtype=torch.int32, device=real.device)
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
    """Return indices of bins; what is beyond them is in the first or in the last."""
    return (mz / width).floor().clamp(0, count - 1).int()


def bin_counts(bin_width: float, highest: float, precursor_bin: float) -> tuple[int, int, int]:
    """Count bins of peaks, of losses, and of the precursor.

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


class PrecursorMlp(Encoder):
    """An MLP on Fourier features of the precursor m/z."""

    kind: ClassVar[EncoderKind] = ENCODERS["precursor"]

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(width)
        self.fourier = FourierFeatures()
        self.layers = nn.Sequential(
            Linear(self.fourier.width, width), Block(width, dropout), Linear(width, width)
        )

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embed precursors, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # as its kind says
        result: Tensor = self.layers(self.fourier(spectra.precursor_mz))
        return result


class PeakTransformer(Encoder):
    """Self-attention over peaks, each a token of Fourier features of m/z and its intensity.

    The precursor is a token of its own, and the one whose last state is read.
    """

    kind: ClassVar[EncoderKind] = ENCODERS["transformer"]

    def __init__(self, width: int, tokens: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(width)
        self.fourier = FourierFeatures()
        self.embed = Linear(self.fourier.width + 2, tokens)
        layer = nn.TransformerEncoderLayer(
            tokens, heads, 4 * tokens, dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Sequential(nn.LayerNorm(tokens), Linear(tokens, width))

    def forward(self, spectra: SpectrumInput) -> Tensor:
        """Embed peak lists, shape (batch, width)."""
        assert isinstance(spectra, PeakLists)  # as its kind says
        peaks = spectra
        mz = torch.cat([peaks.precursor_mz[:, None], peaks.mz], 1)  # (batch, 1 + peaks)
        intensities = torch.cat([torch.zeros_like(mz[:, :1]), peaks.intensities], 1)
        is_precursor = torch.zeros_like(mz)
        is_precursor[:, 0] = 1
        features = torch.cat(
            [self.fourier(mz), intensities[..., None], is_precursor[..., None]], -1
        )
        padded = torch.cat([peaks.real.new_zeros(len(peaks.real), 1), ~peaks.real], 1)
        states = self.layers(self.embed(features), src_key_padding_mask=padded)
        result: Tensor = self.out(states[:, 0])
        return result
