"""HR@1: the mode."""

import numpy as np

from mzseek.decision.decoders.result import Decoded
from mzseek.decision.distributions import Distribution


def decode_hit(known: Distribution) -> Decoded:
    """The most probable fingerprint; the first of several.

    Nothing outside the candidates has any probability, so that looking further is of no use.
    """
    best = int(np.argmax(known.probabilities))
    value = float(known.probabilities[best])
    return Decoded(known.bits_of(best), value, value)
