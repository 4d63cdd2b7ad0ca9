"""F1: the exact maximiser, by the general F-measure method."""

import numpy as np

from mzseek.decision.decoders.cosine import decode_cosine
from mzseek.decision.decoders.result import Answer, Rules, exact
from mzseek.decision.distributions import Distribution, Floats, Ints
from mzseek.decision.utilities import expected
from mzseek.similarity import f1_of


def decode_f1(candidates: Distribution, *, bound: bool = True) -> Answer:
    r"""The exact maximiser of expected F1 over all of {0,1}^m.

    For decisions of k bits, expected F1 is a sum over them of
    :math:`\Delta_{ik} = \sum_s 2 P(y_i = 1, \lvert y \rvert = s) / (s + k)`, so that the k largest
    are best (Waegeman et al. 2014; the m² + 1 parameters are the P and p(0)). Sizes k that cannot
    beat the decision for cosine are left out: overlaps are at most min(k, s), which bounds each k
    by :math:`\sum_s P(s) 2 \min(k, s) / (k + s)`.
    """
    sizes, mass = candidates.by_size
    start = decode_cosine(candidates)
    best, best_value = np.flatnonzero(start.bits), expected("f1", start.bits, candidates)
    k = np.arange(1, int(candidates.used.sum()) + 1, dtype=np.float64)
    reach = (2 * np.minimum(k[:, None], sizes) / (k[:, None] + sizes)) @ mass
    k = k[reach > best_value]
    if len(k):
        used = _can_be_chosen(candidates.marginals, k, sizes)
        joint = size_marginals(candidates, used, sizes)
        for size in k.astype(int):
            delta = joint @ (2 / (sizes + size))
            top = largest(delta, size)
            value = float(delta[top].sum())
            if value > best_value:
                best, best_value = used[top], value
    if candidates.probability_of_zero > best_value:
        return exact(candidates.width, best[:0], candidates.probability_of_zero)
    return exact(candidates.width, best, best_value)


def _can_be_chosen(marginals: Floats, k: Floats, sizes: Floats) -> Ints:
    """Bits that can be among the k largest Δ for one of these k.

    Since ``2 q / (s_max + k) ≤ Δ ≤ 2 q / (s_min + k)``, such a bit has at least
    ``(s_min + k) / (s_max + k)`` of the k-th largest marginal q.
    """
    ranked = np.sort(marginals)[::-1]
    kth = ranked[k.astype(int) - 1]
    least = (kth * (sizes[0] + k) / (sizes[-1] + k)).min()
    return np.flatnonzero((marginals > 0) & (marginals >= least * (1 - 1e-9)))


def size_marginals(candidates: Distribution, used: Ints, sizes: Floats) -> Floats:
    """``P(y_i = 1, |y| = s)`` for the used bits and the sizes there are."""
    place = np.full(candidates.width, -1)
    place[used] = np.arange(len(used))
    column = np.searchsorted(sizes, candidates.sizes)[candidates.row_of_entry]
    row = place[candidates.indices]
    inside = row >= 0
    flat = np.bincount(
        row[inside] * len(sizes) + column[inside],
        weights=candidates.probabilities[candidates.row_of_entry][inside],
        minlength=len(used) * len(sizes),
    )
    return np.asarray(flat, np.float64).reshape(len(used), len(sizes))


def largest(values: Floats, count: int) -> Ints:
    """Places of the so many largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count - 1)[:count]


RULES = Rules(lambda d, a, b, _: f1_of(d, a, b), decode_f1)
