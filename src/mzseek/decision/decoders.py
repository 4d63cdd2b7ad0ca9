"""Bayes decoders over all fingerprints: bits, cosine, F1, Tanimoto, hit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mzseek.decision.distributions import (
    Distribution,
    Floats,
    Ints,
    expected,
    expected_of_candidates,
)
from mzseek.similarity import bit_agreement_of, cosine_of, f1_of, tanimoto_of


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
    decode: Callable[..., Decoded]
    of_candidates: Callable[[Distribution], Floats] | None = None


def exact(width: int, chosen: npt.NDArray[np.int64], value: float) -> Decoded:
    """Return a decision that is optimal, from its set bits."""
    bits = np.zeros(width, np.uint8)
    bits[chosen] = 1
    return Decoded(bits, float(value), float(value))


def decode_bits(candidates: Distribution, *, bound: bool = True) -> Decoded:
    """Each bit that is set with more than one half of the probability."""
    chosen = candidates.marginals > 0.5
    agreement = np.where(chosen, candidates.marginals, 1 - candidates.marginals)
    value = float(agreement.mean()) if candidates.width else 1.0
    return Decoded(chosen.astype(np.uint8), value, value)


def _bits_of_candidates(candidates: Distribution) -> Floats:
    if not candidates.width:
        return np.ones(len(candidates))
    q = candidates.marginals
    return np.asarray(((1 - q).sum() + candidates.sums_over_bits(2 * q - 1)) / candidates.width)


def decode_cosine(candidates: Distribution, *, bound: bool = True) -> Decoded:
    r"""Return the exact maximiser of expected cosine over all of {0,1}^m (theorem "cosine Bayes").

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


def _cosine_of_candidates(candidates: Distribution) -> Floats:
    # Linear in the decision's bits, so that no pair of candidates has to be looked at.
    sizes = candidates.sizes
    values = candidates.sums_over_bits(cosine_weights(candidates)) / np.sqrt(np.maximum(sizes, 1))
    return np.where(sizes == 0, candidates.probability_of_zero, values)


def decode_f1(candidates: Distribution, *, bound: bool = True) -> Decoded:
    r"""Return the exact maximiser of expected F1 over all of {0,1}^m.

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
    """Return bits that can be among the k largest Δ for one of these k.

    Since ``2 q / (s_max + k) ≤ Δ ≤ 2 q / (s_min + k)``, such a bit has at least
    ``(s_min + k) / (s_max + k)`` of the k-th largest marginal q.
    """
    ranked = np.sort(marginals)[::-1]
    kth = ranked[k.astype(int) - 1]
    least = (kth * (sizes[0] + k) / (sizes[-1] + k)).min()
    return np.flatnonzero((marginals > 0) & (marginals >= least * (1 - 1e-9)))


def size_marginals(candidates: Distribution, used: Ints, sizes: Floats) -> Floats:
    """``P(y_i = 1, |y| = s)`` for the used bits and the sizes there are."""
    column_of = np.full(candidates.width, -1)
    column_of[used] = np.arange(len(used))
    column = np.searchsorted(sizes, candidates.sizes)[candidates.row_of_entry]
    row = column_of[candidates.indices]
    inside = row >= 0
    flat = np.bincount(
        row[inside] * len(sizes) + column[inside],
        weights=candidates.probabilities[candidates.row_of_entry][inside],
        minlength=len(used) * len(sizes),
    )
    return np.asarray(flat, np.float64).reshape(len(used), len(sizes))


def largest(values: Floats, count: int) -> Ints:
    """Return indices of the ``k`` largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count - 1)[:count]


def decode_hit(candidates: Distribution, *, bound: bool = True) -> Decoded:
    """Return the most probable fingerprint; the first of several.

    Nothing outside the candidates has any probability, so that looking further is of no use.
    """
    best = int(np.argmax(candidates.probabilities))
    value = float(candidates.probabilities[best])
    return Decoded(candidates.bits_of(best), value, value)


# Decisions times candidates that enumeration may look at: some 40 ms.
_ENUMERATED = 2**21
_STARTING_CANDIDATES = 2
_GAIN = 1e-12


def decode_tanimoto(candidates: Distribution, *, bound: bool = True) -> Decoded:
    """Return the best decision found for expected Tanimoto over all of {0,1}^m.

    The problem is believed to be NP-hard. With few used bits all decisions are enumerated and the
    result is exact; otherwise it is that of `search_tanimoto`.
    """
    used = np.flatnonzero(candidates.used)
    if len(used) <= 20 and len(candidates) << len(used) <= _ENUMERATED:
        return enumerate_tanimoto(candidates)
    return search_tanimoto(candidates, bound=bound)


def enumerate_tanimoto(candidates: Distribution) -> Decoded:
    """Return the exact maximiser, by looking at every subset of the used bits.

    A bit that no candidate has can only make a union larger.
    """
    used = np.flatnonzero(candidates.used)
    column_of = np.zeros(candidates.width, np.int64)
    column_of[used] = np.arange(len(used))
    codes = np.bincount(
        candidates.row_of_entry,
        weights=2.0 ** column_of[candidates.indices],
        minlength=len(candidates),
    ).astype(np.uint32)
    decisions = np.arange(1 << len(used), dtype=np.uint32)
    decided = np.bitwise_count(decisions).astype(np.float64)
    values = np.zeros(len(decisions))
    for code, size, p in zip(codes, candidates.sizes, candidates.probabilities, strict=True):
        if size:
            common = np.bitwise_count(decisions & code).astype(np.float64)
            values += p * (common / (decided + size - common))
    values[0] = candidates.probability_of_zero
    best = int(np.argmax(values))
    chosen = used[(best >> np.arange(len(used))) & 1 == 1]
    return exact(candidates.width, chosen, values[best])


def search_tanimoto(candidates: Distribution, *, bound: bool = True) -> Decoded:
    """Search from several starts, each followed by the best bit flips.

    Starts are the best prefix of the bits sorted by their marginals, the best prefix sorted by the
    weights of the cosine theorem, and the best candidates. The value is exact for the decision that
    is returned; that no decision is better is not claimed, only that none exceeds the bound.

    Parameters
    ----------
    candidates : Distribution
    bound : bool
        Also compute the upper bound; 1 is returned without.
    """
    zero = candidates.probability_of_zero
    if not len(candidates.indices):
        return exact(candidates.width, candidates.indices, zero)
    of_candidates = expected_of_candidates("tanimoto", candidates)
    ranked = np.argsort(-of_candidates, kind="stable")
    least = max(float(of_candidates[ranked[0]]), zero)
    starts = [candidates.bits_of(int(row)) for row in ranked[:_STARTING_CANDIDATES]]
    longest = _longest(candidates, least)
    orders = candidates.marginals, cosine_weights(candidates)
    starts += [_best_prefix(candidates, weights, longest) for weights in orders]
    best, best_value = np.zeros(candidates.width, np.uint8), zero
    seen: set[bytes] = set()
    for start in starts:
        if start.tobytes() not in seen:
            bits, value = _climb(candidates, start, seen)
            if value > best_value:
                best, best_value = bits, value
    ceiling = max(tanimoto_bound(candidates, best_value), best_value) if bound else 1.0
    return Decoded(best, best_value, ceiling)


def tanimoto_bound(candidates: Distribution, least: float = 0.0) -> float:
    r"""Return an upper bound of the expected Tanimoto of any decision.

    For a decision h of k bits and a candidate of s, ``t = a / (k + s − a)`` is convex in the
    overlap a, hence at most the chord from a = 0 to a = min(k, s), which is a / max(k, s). That is
    linear in h: the best h of k bits takes the k largest
    :math:`\sum_s P(y_i = 1, \lvert y \rvert = s) / \max(k, s)`. The bound is the largest over k, or
    p(0), or ``least`` where all are below that.

    Parameters
    ----------
    candidates : Distribution
    least : float
        A value that is known to be reached: sizes that cannot beat it are left out.
    """
    sizes, mass = candidates.by_size
    best = max(candidates.probability_of_zero, least)
    ranked = np.sort(candidates.marginals[candidates.used])[::-1]
    k = np.arange(1, len(ranked) + 1, dtype=np.float64)
    longer = np.maximum(k[:, None], sizes)
    reach = np.minimum((np.minimum(k[:, None], sizes) / longer) @ mass, np.cumsum(ranked) / k)
    able = reach > best
    k, reach = k[able], reach[able]
    if not len(k):
        return best
    # As in the decoder for F1: q / max(k, s_max) ≤ weight ≤ q / max(k, s_min).
    kth = ranked[k.astype(int) - 1]
    floor = (kth * np.maximum(k, sizes[0]) / np.maximum(k, sizes[-1])).min() * (1 - 1e-9)
    used = np.flatnonzero(candidates.used & (candidates.marginals >= floor))
    joint = size_marginals(candidates, used, sizes)
    for at in np.argsort(-reach, kind="stable"):
        if reach[at] <= best:
            break
        size = int(k[at])
        weights = joint @ (1 / np.maximum(sizes, size))
        best = max(best, float(weights[largest(weights, size)].sum()))
    return min(best, 1.0)


def _longest(candidates: Distribution, least: float) -> int:
    """Return the size beyond which no decision reaches a value: it falls with the size k."""
    sizes, mass = candidates.by_size
    total = int(candidates.used.sum())
    k = np.arange(1, total + 1, dtype=np.float64)
    reach = (np.minimum(k[:, None], sizes) / k[:, None]) @ mass
    able = np.flatnonzero(reach >= least)
    return int(able[-1]) + 1 if len(able) else 1


def _best_prefix(candidates: Distribution, weights: Floats, longest: int) -> npt.NDArray[np.uint8]:
    """Return the best of the decisions that take the first bits in falling order of weights."""
    used = np.flatnonzero(weights > 0)
    order = used[np.argsort(-weights[used], kind="stable")][:longest]
    bits = np.zeros(candidates.width, np.uint8)
    if not len(order):
        return bits
    common = np.cumsum(candidates.dense_bits(order), axis=1, dtype=np.float32)
    decided = np.arange(1, len(order) + 1, dtype=np.float32)
    union = candidates.sizes[:, None].astype(np.float32) + decided - common
    values = candidates.probabilities.astype(np.float32) @ (common / union)
    bits[order[: int(np.argmax(values)) + 1]] = 1
    return bits


def _climb(
    candidates: Distribution, bits: npt.NDArray[np.uint8], seen: set[bytes]
) -> tuple[npt.NDArray[np.uint8], float]:
    """Flip the bits that gain most, until none gains."""
    value, common, union = _reached(candidates, bits)
    while bits.tobytes() not in seen:
        seen.add(bits.tobytes())
        after = _after_flips(candidates, bits, common, union)
        gaining = np.flatnonzero(after > value + _GAIN)
        if not len(gaining):
            break
        gaining = gaining[np.argsort(-after[gaining], kind="stable")]
        # Many flips at once, if together they are worth more than the best alone; else fewer.
        count = len(gaining)
        while True:
            flipped = bits.copy()
            flipped[gaining[:count]] ^= 1
            reached = _reached(candidates, flipped)
            if count == 1 or reached[0] >= after[gaining[0]]:
                break
            count = max(count // 4, 1)
        bits = flipped
        value, common, union = reached
    return bits, value


def _after_flips(
    candidates: Distribution, bits: npt.NDArray[np.uint8], common: Floats, union: Floats
) -> Floats:
    """Expected Tanimoto after flipping each bit.

    Adding a bit: rows that have it gain an overlap, the others get a larger union. Removing: the
    reverse. Either is a constant plus a sum over the rows that have the bit.
    """
    p = candidates.probabilities
    some = np.maximum(union, 1)  # a union is 0 only for the zero vector against itself
    grown = p * common / (union + 1)
    gained = p * (common + 1) / some
    shrunk = p * common / np.maximum(union - 1, 1)
    lost = p * (common - 1) / some
    removed, added = (
        (lost - shrunk)[candidates.row_of_entry],
        (gained - grown)[candidates.row_of_entry],
    )
    weights = np.where(bits[candidates.indices] == 1, removed, added)
    sums = np.bincount(candidates.indices, weights=weights, minlength=candidates.width)
    after = np.where(bits == 1, shrunk.sum() + sums, grown.sum() + sums)
    if bits.sum() == 1:
        after[bits == 1] = candidates.probability_of_zero
    return np.asarray(after)


def _reached(candidates: Distribution, bits: npt.NDArray[np.uint8]) -> tuple[float, Floats, Floats]:
    """Expected Tanimoto, and the overlaps and unions that it comes from."""
    common = candidates.sums_over_bits(bits.astype(np.float64))
    union = candidates.sizes + bits.sum() - common
    if not bits.any():
        return candidates.probability_of_zero, common, union
    return float((common / union) @ candidates.probabilities), common, union


def _hit_of(dot: Any, size_a: Any, size_b: Any, width: int) -> Any:
    return ((dot == size_a) & (dot == size_b)).astype(np.float64)


RULES: dict[str, Rules] = {
    "hit": Rules(_hit_of, decode_hit, lambda candidates: candidates.probabilities),
    "bits": Rules(bit_agreement_of, decode_bits, _bits_of_candidates),
    "tanimoto": Rules(lambda d, a, b, _: tanimoto_of(d, a, b), decode_tanimoto),
    "cosine": Rules(lambda d, a, b, _: cosine_of(d, a, b), decode_cosine, _cosine_of_candidates),
    "f1": Rules(lambda d, a, b, _: f1_of(d, a, b), decode_f1),
}
