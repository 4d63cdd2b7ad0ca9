"""What a decoder returns."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Decoded(NamedTuple):
    """A decision over all fingerprints.

    Attributes
    ----------
    bits : uint8 array, shape (width,)
    value : float
        Its expected utility.
    upper_bound : float
        No decision has a higher one; equal to ``value`` where the decision is known to be optimal.
    """

    bits: npt.NDArray[np.uint8]
    value: float
    upper_bound: float


def exact(width: int, chosen: npt.NDArray[np.int64], value: float) -> Decoded:
    """A decision that is optimal, from its set bits."""
    bits = np.zeros(width, np.uint8)
    bits[chosen] = 1
    return Decoded(bits, float(value), float(value))
