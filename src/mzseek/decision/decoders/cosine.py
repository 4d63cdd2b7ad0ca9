"""Cosine: the sorted-weights theorem."""

import numpy as np

from mzseek.decision.decoders.result import Answer, Rules, exact
from mzseek.decision.distributions import Distribution, Floats
from mzseek.similarity import cosine_of


def decode_cosine(candidates: Distribution, *, bound: bool = True) -> Answer:
    r"""The exact maximiser of expected cosine over all of {0,1}^m (theorem "cosine Bayes").

    With :math:`w_i = \sum_y y_i p(y) / \lVert y \rVert`, the best decision of s bits takes the s
    largest weights and is worth :math:`s^{-1/2} \sum w_{(t)}`. The zero vector, which the theorem
    leaves out, is worth p(0).
    """
    weights = cosine_weights(candidates)
    used = np.flatnonzero(weights > 0)
    zero = candidates.probability_of_zero
    if not len(used):
        return exact(candidates.width, used, zero)
    order = used[np.argsort(-weights[used], kind="stable")]
    values = np.cumsum(weights[order]) / np.sqrt(np.arange(1, len(order) + 1))
    size = int(np.argmax(values)) + 1
    if zero > values[size - 1]:
        return exact(candidates.width, order[:0], zero)
    return exact(candidates.width, order[:size], values[size - 1])


def cosine_weights(candidates: Distribution) -> Floats:
    """``w_i = Σ_y y_i p(y) / ‖y‖`` of the paper's cosine theorem."""
    return candidates.weighted_bits(
        candidates.probabilities / np.sqrt(np.maximum(candidates.sizes, 1))
    )


def _of_candidates(candidates: Distribution) -> Floats:
    # Linear in the decision's bits, so that no pair of candidates has to be looked at.
    sizes = candidates.sizes
    values = candidates.sums_over_bits(cosine_weights(candidates)) / np.sqrt(np.maximum(sizes, 1))
    return np.where(sizes == 0, candidates.probability_of_zero, values)


RULES = Rules(lambda d, a, b, _: cosine_of(d, a, b), decode_cosine, _of_candidates)
