"""Bit accuracy: the majority of each bit."""

import numpy as np

from mzseek.decision.decoders.result import Decoded
from mzseek.decision.distributions import Distribution


def decode_bits(known: Distribution) -> Decoded:
    """Each bit that is set with more than one half of the probability."""
    chosen = known.marginals > 0.5
    agreement = np.where(chosen, known.marginals, 1 - known.marginals)
    value = float(agreement.mean()) if known.width else 1.0
    return Decoded(chosen.astype(np.uint8), value, value)
