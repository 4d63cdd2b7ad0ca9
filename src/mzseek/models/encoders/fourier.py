"""Fourier features of m/z."""

import math

import torch
from torch import Tensor, nn


class FourierFeatures(nn.Module):
    """Sines and cosines of a mass at wavelengths from 1,000 down to 0.02.

    A network reads neither the third decimal nor the hundreds off one number; waves of many lengths
    spell them out.

    Parameters
    ----------
    waves : int
        Wavelengths there are, equally spaced in their logarithm.
    longest, shortest : float
        In units of m/z.
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
