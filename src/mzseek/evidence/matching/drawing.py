"""Decoys that nothing but the evidence tells from the truth: drawn by how likely each is to be it.

Let p be the probability of each molecule of a pool, the truth among them, to be the one that was
measured. A list L of n molecules is drawn such that each is in it with probability n·p, given that
the truth is in it (systematic sampling, in an order drawn anew for each list). Whatever the list,
each of its members is then the truth with probability 1/n:

    P(truth = x and list = L) = p(x) · P(L) / (n·p(x)) = P(L) / n.

It takes n·p ≤ 1 for all that may be drawn. Drawing decoys one after the other with weights p does
not do it, however few: the likeliest are in the list less often than n·p says, and a truth that is
one of them stands out.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST = 5
# The likeliest molecules of a pool are no candidates where they stand in the way of a list of
# ENOUGH, as long as no more than LEFT_OUT of the probability goes with them.
ENOUGH, LEFT_OUT = 30, 0.2

TOO_FEW = f"fewer than {LEAST} candidates are as likely as it to be measured"
TOO_LIKELY = "likelier to be measured than all that could be drawn"


def probabilities(scores: npt.ArrayLike) -> Floats:
    """Softmax of the scores of one pool."""
    values = np.asarray(scores, np.float64)
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())


def effective_size(p: Floats) -> float:
    """How many equally likely molecules would be as many: 1 / Σp².

    Examples
    --------
    >>> round(effective_size(np.array([0.25, 0.25, 0.25, 0.25])), 6)
    4.0
    """
    return float(1.0 / (p @ p))


def list_size(p: Floats, enough: int = ENOUGH, left_out: float = LEFT_OUT) -> tuple[int, int]:
    """How long a list can be, and how many of the likeliest molecules must be left out for it.

    Parameters
    ----------
    p : float64 array, falling
    enough : int
        Leave out no more than it takes to reach this length.
    left_out : float
        Leave out no more probability than this.

    Returns
    -------
    size : int
        At most the effective size of what is left.
    skipped : int

    Examples
    --------
    >>> list_size(np.array([0.25, 0.25, 0.25, 0.25]))
    (4, 0)
    >>> list_size(np.array([0.2] + [0.01] * 80))
    (80, 1)
    """
    before = np.cumsum(p) - p
    allowed = np.flatnonzero(before <= left_out + 1e-12)
    # In units of the likeliest that is left; a little more, lest 0.999… of one be none.
    sizes = np.floor((1.0 - before[allowed]) / p[allowed] * (1 + 1e-9)).astype(np.int64)
    sizes = np.minimum(sizes, len(p) - allowed)
    long_enough = np.flatnonzero(sizes >= enough)
    skipped = int(long_enough[0]) if len(long_enough) else int(sizes.argmax())
    return int(sizes[skipped]), skipped


def draw_list(
    p: Floats, truth: int, rng: np.random.Generator, most: int, enough: int = ENOUGH
) -> Ints | str:
    """Members of a list, the truth among them, in an order that tells nothing.

    Parameters
    ----------
    p : float64 array, shape (pool,)
        How likely each molecule is to be measured; they sum to 1.
    truth : int
        Place of the one that was.
    rng : Generator
    most : int
        Members at the most.
    enough : int
        See `list_size`.

    Returns
    -------
    int64 array of places, or str
        Why there is no list. Whether there is one, and how long it is, the truth decides only by
        being among the likeliest that are left out.
    """
    order = rng.permutation(len(p))  # equally likely ones must not stand in any order
    order = order[np.argsort(-p[order], kind="stable")]
    size, skipped = list_size(p[order], enough)
    if min(size, most) < LEAST:
        return TOO_FEW
    if truth in order[:skipped]:
        return TOO_LIKELY
    pool = rng.permutation(order[skipped:])
    return rng.permutation(_systematic(pool, p[pool], truth, min(size, most), rng))


def _systematic(pool: Ints, p: Floats, truth: int, size: int, rng: np.random.Generator) -> Ints:
    """So many of a pool, each with a probability in proportion to p, given that the truth is in.

    Molecules lie in a row, each as wide as its probability to be drawn, and points at distance 1
    fall on them: the first anywhere, here where one of the points falls on the truth.
    """
    width = p * (size / p.sum())
    ends = np.cumsum(width)
    place = int(np.flatnonzero(pool == truth)[0])
    on_truth = ends[place] - width[place] * rng.random()
    nth = min(int(on_truth), size - 1)
    points = on_truth - nth + np.arange(size)
    found = np.minimum(np.searchsorted(ends, points, side="left"), len(pool) - 1)
    found[nth] = place  # also where a sum was rounded the other way
    return np.asarray(pool[np.unique(found)], np.int64)
