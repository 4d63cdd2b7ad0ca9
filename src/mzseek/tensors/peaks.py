"""Peak lists as padded tensors."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PeakLists:
    """The peaks of a batch of spectra, padded to the longest.

    Attributes
    ----------
    mz : float32 tensor, shape (batch, peaks)
    intensities : float32 tensor, shape (batch, peaks)
        Divided by the spectrum's largest.
    real : bool tensor, shape (batch, peaks)
        False where a shorter list is padded.
    precursor_mz : float32 tensor, shape (batch,)
    """

    mz: Tensor
    intensities: Tensor
    real: Tensor
    precursor_mz: Tensor

    def to(self, device: torch.device | str) -> "PeakLists":
        """The same on another device."""
        return PeakLists(
            self.mz.to(device),
            self.intensities.to(device),
            self.real.to(device),
            self.precursor_mz.to(device),
        )
