"""Peak lists, and the same peaks in other words."""

from collections.abc import Callable

import pytest
import torch

from mzseek.tensors import PeakLists


@pytest.fixture
def peaks() -> PeakLists:
    """Three spectra of five, two and no peaks."""
    generator = torch.Generator().manual_seed(0)
    real = torch.arange(5) < torch.tensor([5, 2, 0])[:, None]
    mz = 50 + 900 * torch.rand(3, 5, generator=generator)
    intensities = torch.rand(3, 5, generator=generator)
    return PeakLists(mz * real, intensities * real, real, torch.tensor([300.1, 500.2, 999.9]))


@pytest.fixture
def reordered() -> Callable[[PeakLists], PeakLists]:
    """The same peaks from last to first, padding before them."""

    def reorder(peaks: PeakLists) -> PeakLists:
        return PeakLists(
            peaks.mz.flip(1), peaks.intensities.flip(1), peaks.real.flip(1), peaks.precursor_mz
        )

    return reorder


@pytest.fixture
def padded() -> Callable[[PeakLists], PeakLists]:
    """The same peaks with three more places, and garbage wherever there is no peak."""

    def pad(peaks: PeakLists) -> PeakLists:
        more = peaks.mz.new_zeros(len(peaks.mz), 3)
        real = torch.cat([peaks.real, more.bool()], 1)
        mz = torch.cat([peaks.mz, more], 1).masked_fill(~real, 777.0)
        intensities = torch.cat([peaks.intensities, more], 1).masked_fill(~real, 0.9)
        return PeakLists(mz, intensities, real, peaks.precursor_mz)

    return pad
