"""How far a mean would move with other molecules: percentile intervals by the bootstrap.

Spectra of one molecule are not independent. So molecules are resampled, each with all its values;
resampling spectra would give intervals that are too narrow.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.errors import MetricError

Values = npt.NDArray[np.float64]

# Draws that are held at once: 8 MB.
_DRAWS = 2**20


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
        Only one group: nothing can be said about others, and low = high = mean.
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
) -> Interval:
    """Percentile interval of the mean, from resampled groups.

    Parameters
    ----------
    values : array, shape (n,)
        One value a query, as the metrics return them.
    groups : array of names or numbers, shape (n,), optional
        Which values belong together: the molecule of each query. Each value is its own group where
        none are given.
    resamples : int
        How many means the interval is read from.
    level : float
        Share of the means that lie inside.
    seed : int
        The same seed gives the same interval.

    Returns
    -------
    Interval
        The mean with its lower and upper bound.

    Examples
    --------
    >>> found = bootstrap([1, 1, 0, 0, 1, 1], groups=["a", "a", "b", "b", "c", "c"])
    >>> round(found.mean, 3), found.low, found.high, found.groups
    (0.667, 0.0, 1.0, 3)
    """
    values = _checked_values(values, "values")
    if not 0 < level < 1:
        raise MetricError(f"level is {level}, expected a share between 0 and 1")
    if resamples < 1:
        raise MetricError(f"resamples is {resamples}, expected at least 1")
    sums, sizes = _by_group(values, groups)
    mean = float(sums.sum() / sizes.sum())
    if len(sums) == 1:
        return Interval(mean, mean, mean, level, len(values), 1, single_group=True)
    means = _resampled_means(sums, sizes, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        mean, float(low), float(high), level, len(values), len(sums), single_group=False
    )


def bootstrap_difference(
    values_a: npt.ArrayLike,
    values_b: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Percentile interval of mean(a) − mean(b), where both were measured on the same queries.

    Every resample takes the same molecules for both, so that what they have in common, easy and
    hard queries, cancels. The other parameters are those of `bootstrap`.

    Parameters
    ----------
    values_a, values_b : array, shape (n,)
        One value a query, in the same order.

    Returns
    -------
    Interval
        Of the difference; where it leaves 0 out, the two differ at this level.

    Examples
    --------
    >>> found = bootstrap_difference([0.9, 0.5, 0.3], [0.8, 0.4, 0.2])
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.1, 0.1, 0.1)
    """
    a, b = _checked_values(values_a, "values_a"), _checked_values(values_b, "values_b")
    if len(a) != len(b):
        raise MetricError(f"{len(a):,} values_a and {len(b):,} values_b, expected pairs")
    # The mean is linear: resampling differences is resampling both with the same draws.
    return bootstrap(a - b, groups, resamples, level, seed)


def _checked_values(values: npt.ArrayLike, name: str) -> Values:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise MetricError(f"{name} have shape {array.shape}, expected one value a query")
    if array.dtype.kind not in "biuf":
        raise MetricError(f"{name} are of type {array.dtype}, expected numbers")
    array = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise MetricError(f"{name} hold {array[bad[0]]} at query {bad[0]}, expected numbers")
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
