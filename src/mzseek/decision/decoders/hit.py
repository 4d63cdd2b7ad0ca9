"""HR@1: the mode."""

from typing import Any

import numpy as np

from mzseek.decision.decoders.result import Answer, Rules
from mzseek.decision.distributions import Distribution


def decode_hit(candidates: Distribution, *, bound: bool = True) -> Answer:
    """The most probable fingerprint; the first of several.

    Nothing outside the candidates has any probability, so that looking further is of no use.
    """
    best = int(np.argmax(candidates.probabilities))
    value = float(candidates.probabilities[best])
    return Answer(candidates.bits_of(best), value, value)


def _of(dot: Any, size_a: Any, size_b: Any, width: int) -> Any:
    return ((dot == size_a) & (dot == size_b)).astype(np.float64)


RULES = Rules(_of, decode_hit, lambda candidates: candidates.probabilities)
