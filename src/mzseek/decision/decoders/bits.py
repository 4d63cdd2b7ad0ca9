"""Bit accuracy: the majority of each bit."""

import numpy as np

from mzseek.decision.decoders.result import Answer, Rules
from mzseek.decision.distributions import Distribution, Floats
from mzseek.similarity import bit_agreement_of


def decode_bits(known: Distribution, *, bound: bool = True) -> Answer:
    """Each bit that is set with more than one half of the probability."""
    chosen = known.marginals > 0.5
    agreement = np.where(chosen, known.marginals, 1 - known.marginals)
    value = float(agreement.mean()) if known.width else 1.0
    return Answer(chosen.astype(np.uint8), value, value)


def _of_candidates(known: Distribution) -> Floats:
    if not known.width:
        return np.ones(len(known))
    q = known.marginals
    return np.asarray(((1 - q).sum() + known.sums_over_bits(2 * q - 1)) / known.width)


RULES = Rules(bit_agreement_of, decode_bits, _of_candidates)
