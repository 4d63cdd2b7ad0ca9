"""Cosine: the sorted-weights theorem."""

import numpy as np

from mzseek.decision.decoders.result import Answer, Rules, exact
from mzseek.decision.distributions import Distribution, Floats
from mzseek.similarity import cosine_of


def decode_cosine(known: Distribution, *, bound: bool = True) -> Answer:
    r"""The exact maximiser of expected cosine over all of {0,1}^m (theorem "cosine Bayes").

    With :math:`w_i = \sum_y y_i p(y) / \lVert y \rVert`, the best decision of s bits takes the s
    largest weights and is worth :math:`s^{-1/2} \sum w_{(t)}`. The zero vector, which the theorem
    leaves out, is worth p(0).
    """
    weights = cosine_weights(known)
    used = np.flatnonzero(weights > 0)
    zero = known.probability_of_zero
    if not len(used):
        return exact(known.width, used, zero)
    order = used[np.argsort(-weights[used], kind="stable")]
    values = np.cumsum(weights[order]) / np.sqrt(np.arange(1, len(order) + 1))
    size = int(np.argmax(values)) + 1
    if zero > values[size - 1]:
        return exact(known.width, order[:0], zero)
    return exact(known.width, order[:size], values[size - 1])


def cosine_weights(known: Distribution) -> Floats:
    """``w_i = Σ_y y_i p(y) / ‖y‖`` of the paper's cosine theorem."""
    return known.weighted_bits(known.probabilities / np.sqrt(np.maximum(known.sizes, 1)))


def _of_candidates(known: Distribution) -> Floats:
    # Linear in the decision's bits, so that no pair of candidates has to be looked at.
    sizes = known.sizes
    values = known.sums_over_bits(cosine_weights(known)) / np.sqrt(np.maximum(sizes, 1))
    return np.where(sizes == 0, known.probability_of_zero, values)


RULES = Rules(lambda d, a, b, _: cosine_of(d, a, b), decode_cosine, _of_candidates)
