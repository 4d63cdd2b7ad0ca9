"""Bit accuracy: the majority of each bit."""

import numpy as np

from mzseek.decision.decoders.result import Answer, Rules
from mzseek.decision.distributions import Distribution, Floats
from mzseek.similarity import bit_agreement_of


def decode_bits(candidates: Distribution, *, bound: bool = True) -> Answer:
    """Each bit that is set with more than one half of the probability."""
    chosen = candidates.marginals > 0.5
    agreement = np.where(chosen, candidates.marginals, 1 - candidates.marginals)
    value = float(agreement.mean()) if candidates.width else 1.0
    return Answer(chosen.astype(np.uint8), value, value)


def _of_candidates(candidates: Distribution) -> Floats:
    if not candidates.width:
        return np.ones(len(candidates))
    q = candidates.marginals
    return np.asarray(((1 - q).sum() + candidates.sums_over_bits(2 * q - 1)) / candidates.width)


RULES = Rules(bit_agreement_of, decode_bits, _of_candidates)
