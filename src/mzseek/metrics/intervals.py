"""How far a mean would move with other molecules: intervals by the bootstrap.

Spectra of one molecule are not independent. So molecules are resampled, each with all its values;
resampling spectra would give intervals that are too narrow.

A percentile interval knows only what was seen: from 24 molecules without a hit it reads "0 to 0".
Where the mean rests on few molecules, a bound that reckons with the unseen takes its place.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import MetricError

Values = npt.NDArray[np.float64]

Bounds = tuple[float, float] | None

# Draws that are held at once: 8 MB.
_DRAWS = 2**20
# With fewer molecules than this off the usual value, percentiles cover too rarely (of 24 molecules
# at a rate of 2 %: in 38 % of the cases); from here on they cover in 93 % or more.
_MIN_GROUPS = 10
# Draws of the cautious bounds, which read a far tail: right to about 1 %.
_CAUTIOUS_DRAWS = 20_000
# Tolerance of float32 metrics beyond their bounds.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Interval:
    """A mean and the interval around it.

    Attributes
    ----------
    mean : float
        Over all values.
    low, high : float
        Bounds of the interval.
    level : float
        Share of intervals, made in this way, that contain the mean of the population.
    values, groups : int
        How many values and groups stand behind it.
    single_group : bool
        Only one group: next to nothing can be said about others.
    """

    mean: float
    low: float
    high: float
    level: float
    values: int
    groups: int
    single_group: bool


def bootstrap(
    values: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    bounds: Bounds = (0.0, 1.0),
) -> Interval:
    """Interval of the mean, from resampled groups.

    The percentiles of the means of resamples. But where fewer than ten groups have another value
    than the usual one (counted by `deciding_groups`), Gaffke's bounds: weights of the groups are
    drawn from a flat Dirichlet distribution, with one group more, which is at the lowest value for
    the lower bound and at the highest for the upper. For groups that are hits or misses, these are
    the bounds of Clopper and Pearson, also for no hit at all.

    Parameters
    ----------
    values : array, shape (n,)
        One value for each query, as the metrics return them.
    groups : array of names or numbers, shape (n,), optional
        Which values belong together: the molecule of each query. Each value is its own group where
        none are given.
    resamples : int
        How many means the interval is read from.
    level : float
        Share of the means that lie inside.
    seed : int
        The same seed gives the same interval.
    bounds : (float, float) or None
        What a value can be. None where there is no limit: then percentiles are all there is, and
        equal values or a single group give an interval without width.

    Returns
    -------
    Interval
        The mean with its lower and upper bound.

    References
    ----------
    Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable, 2005; Learned-Miller and Thomas, A new confidence interval for the mean of
    a bounded random variable, 2019. Clopper and Pearson, 1934.

    Examples
    --------
    >>> found = bootstrap([0] * 24)  # no hit, but up to one in seven may be one
    >>> found.mean, found.low, round(found.high, 2)
    (0.0, 0.0, 0.14)
    >>> found = bootstrap([0] * 60 + [1] * 40)
    >>> found.mean, round(found.low, 2), round(found.high, 2)
    (0.4, 0.31, 0.49)
    """
    if not 0 < level < 1:
        raise MetricError(f"level is {level}, expected a share between 0 and 1")
    if resamples < 1:
        raise MetricError(f"resamples is {resamples}, expected at least 1")
    values = _checked_values(values, "values", bounds)
    sums, sizes = _by_group(values, groups)
    mean = float(sums.sum() / sizes.sum())
    low = high = mean
    tail = (1 - level) / 2
    rng = np.random.default_rng(seed)
    if bounds is not None and deciding_groups(sums, sizes) < _MIN_GROUPS:
        low, high = _cautious(sums, sizes, tail, bounds, rng)
        low, high = min(low, mean), max(high, mean)
    elif len(sums) > 1:
        means = _resampled_means(sums, sizes, resamples, rng)
        low, high = (float(q) for q in np.quantile(means, [tail, (1 + level) / 2]))
    return Interval(mean, low, high, level, len(values), len(sums), single_group=len(sums) == 1)


def bootstrap_difference(
    values_a: npt.ArrayLike,
    values_b: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    bounds: Bounds = (0.0, 1.0),
) -> Interval:
    """Interval of mean(a) − mean(b), where both were measured on the same queries.

    Every resample takes the same molecules for both, so that what they have in common, easy and
    hard queries, cancels. The other parameters are those of `bootstrap`. What is counted there as
    another value than the usual one are here, as a rule, the molecules on which the two differ:
    where there is none, the interval says how often they may differ on others.

    Parameters
    ----------
    values_a, values_b : array, shape (n,)
        One value for each query, in the same order.
    bounds : (float, float) or None
        What a value of either can be.

    Returns
    -------
    Interval
        Of the difference; where it leaves 0 out, the two differ at this level.

    Examples
    --------
    >>> found = bootstrap_difference([0.9, 0.5, 0.4] * 20, [0.8, 0.4, 0.1] * 20)
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
    (0.17, 0.14, 0.19)
    """
    a = _checked_values(values_a, "values_a", bounds)
    b = _checked_values(values_b, "values_b", bounds)
    if len(a) != len(b):
        raise MetricError(f"{len(a):,} values_a and {len(b):,} values_b, expected pairs")
    # The mean is linear: resampling differences is resampling both with the same draws.
    difference_bounds = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    return bootstrap(a - b, groups, resamples, level, seed, difference_bounds)


def deciding_groups(sums: Values, sizes: Values) -> float:
    """Count the groups that a mean rests on: those off the usual value, each by its weight.

    With deviations ``d = |sum − c · size|`` from the median c of all values, ``(Σd)² / Σd²``: of
    groups of equal size that are hits or misses, how many there are of the rarer kind. At most the
    same of the sizes, so that a group with most of the values does not count as many.

    Parameters
    ----------
    sums, sizes : float64 arrays, shape (groups,)
        Sum and number of the values of each group.

    Returns
    -------
    float
        0 where all values are equal.

    Examples
    --------
    >>> deciding_groups(np.array([0, 0, 2, 0, 2.0]), np.array([2, 2, 2, 2, 2.0]))
    2.0
    """
    order = np.argsort(sums / sizes, kind="stable")
    half = np.searchsorted(np.cumsum(sizes[order]), sizes.sum() / 2)
    usual = (sums / sizes)[order[half]]
    off = np.abs(sums - usual * sizes)
    off[off < 1e-12 * sizes] = 0
    if not off.any():
        return 0.0
    return float(min(off.sum() ** 2 / (off @ off), sizes.sum() ** 2 / (sizes @ sizes)))


def _cautious(
    sums: Values, sizes: Values, tail: float, bounds: tuple[float, float], rng: np.random.Generator
) -> tuple[float, float]:
    """Return Gaffke's bounds: the mean if one more group has the worst, or the best, value."""
    lowest, highest = bounds
    share = np.clip((sums - lowest * sizes) / (highest - lowest), 0, sizes)
    pairs, times = np.unique(np.stack([share, sizes], axis=1), axis=0, return_counts=True)
    # The size of a group that a value drawn at random is in; all have it where sizes are equal.
    one_more = float(sizes @ sizes / sizes.sum())
    # Evenly over its distribution instead of drawn, since the bounds rest on its tail.
    of_one_more = -np.log1p(-(np.arange(_CAUTIOUS_DRAWS) + 0.5) / _CAUTIOUS_DRAWS)
    below, above = np.empty(_CAUTIOUS_DRAWS), np.empty(_CAUTIOUS_DRAWS)
    step = max(1, _DRAWS // len(pairs))
    for start in range(0, _CAUTIOUS_DRAWS, step):
        here = slice(start, start + step)
        # Flat Dirichlet weights are exponentials; those of equal groups are summed: a gamma.
        unseen = of_one_more[here] * one_more
        weights = rng.standard_gamma(times, size=(len(unseen), len(times)))
        seen, total = weights @ pairs[:, 0], weights @ pairs[:, 1] + unseen
        below[here], above[here] = seen / total, (seen + unseen) / total
    low, high = np.quantile(below, tail), np.quantile(above, 1 - tail)
    width = highest - lowest
    return float(lowest + width * low), float(lowest + width * high)


def _checked_values(values: npt.ArrayLike, name: str, bounds: Bounds) -> Values:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise MetricError(f"{name} have shape {array.shape}, expected one value for each query")
    if array.dtype.kind not in "biuf":
        raise MetricError(f"{name} are of type {array.dtype}, expected numbers")
    array = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise MetricError(f"{name} hold {array[bad[0]]} at query {bad[0]}, expected numbers")
    if bounds is None:
        return array
    lowest, highest = bounds
    if not (np.isfinite(bounds).all() and lowest < highest):
        raise MetricError(f"bounds are {lowest} and {highest}, expected a smaller and a larger one")
    slack = _ROUNDING * (highest - lowest)
    bad = np.flatnonzero((array < lowest - slack) | (array > highest + slack))
    if len(bad):
        raise MetricError(
            f"{name} hold {array[bad[0]]:g} at query {bad[0]}, expected {lowest:g} to {highest:g}; "
            "name other bounds"
        )
    return array


def _by_group(values: Values, groups: npt.ArrayLike | None) -> tuple[Values, Values]:
    """Sum and number of values in each group: all that the means of resamples depend on."""
    if groups is None:
        return values, np.ones(len(values))
    names = np.asarray(groups)
    if names.shape != values.shape:
        raise MetricError(f"groups have shape {names.shape} for {len(values):,} values")
    try:
        _, group = np.unique(names, return_inverse=True)
    except TypeError:
        raise MetricError("groups mix names of several types, expected one type") from None
    sums = np.bincount(group, weights=values).astype(np.float64)
    return sums, np.bincount(group).astype(np.float64)


def _resampled_means(
    sums: Values, sizes: Values, resamples: int, rng: np.random.Generator
) -> Values:
    means = np.empty(resamples)
    step = max(1, _DRAWS // len(sums))
    for start in range(0, resamples, step):
        part = means[start : start + step]
        # As many groups as there are, with replacement: their multiplicities are multinomial.
        drawn = rng.integers(len(sums), size=(len(part), len(sums)))
        part[:] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means
