"""What a decoder returns, and what a utility is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.decision.distributions import Distribution, Floats


class Answer(NamedTuple):
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


@dataclass(frozen=True)
class Rules:
    """How a utility is computed and decided for.

    Attributes
    ----------
    of : callable of (common bits, bits of the one, bits of the other, width)
        What a decision is worth against a truth.
    decode : callable of (Distribution, bound=True)
        The best decision over all fingerprints; ``bound=False`` where nobody reads the upper bound
        and it would cost time.
    of_candidates : callable of Distribution, or None
        Expected utility of deciding for each candidate, where there is a shorter way than to look
        at every pair of them.
    """

    of: Callable[[Any, Any, Any, int], Any]
    decode: Callable[..., Answer]
    of_candidates: Callable[[Distribution], Floats] | None = None


def exact(width: int, chosen: npt.NDArray[np.int64], value: float) -> Answer:
    """A decision that is optimal, from its set bits."""
    bits = np.zeros(width, np.uint8)
    bits[chosen] = 1
    return Answer(bits, float(value), float(value))
