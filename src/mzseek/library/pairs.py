"""How alike two spectra are: cosine, modified cosine, spectral entropy. Compiled."""

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled

Floats = npt.NDArray[np.float64]


@compiled
def _matches(
    mz: Floats, other_mz: Floats, tolerance: float, shift: float, first: list[int],
    second: list[int],
) -> None:  # fmt: skip
    """Add all pairs of peaks that lie within the tolerance, the other ones moved by the shift."""
    lowest = 0
    for i in range(len(mz)):
        for j in range(lowest, len(other_mz)):
            moved = other_mz[j] + shift
            if moved > mz[i] + tolerance:
                break
            if moved < mz[i] - tolerance:
                lowest = j + 1
            else:
                first.append(i)
                second.append(j)


@compiled
def greedy_cosine(
    mz: Floats, heights: Floats, other_mz: Floats, other_heights: Floats, tolerance: float,
    shift: float,
) -> tuple[float, int]:  # fmt: skip
    """Cosine of two spectra whose peaks are paired greedily, the largest product first.

    With ``shift`` (precursor − the other's precursor) beyond the tolerance, peaks also match at
    this distance: the modified cosine. Of equal products the pair that was found last goes first,
    as in matchms.

    Parameters
    ----------
    mz, heights, other_mz, other_heights : float64 arrays
        Of the reference, and of the query; m/z rising.
    tolerance, shift : float

    Returns
    -------
    score, matches : float, int
    """
    first = [0 for _ in range(0)]
    second = [0 for _ in range(0)]
    _matches(mz, other_mz, tolerance, 0.0, first, second)
    if abs(shift) > tolerance:
        _matches(mz, other_mz, tolerance, shift, first, second)
    if len(first) == 0:
        return 0.0, 0
    products = np.empty(len(first))
    for pair in range(len(first)):
        products[pair] = heights[first[pair]] * other_heights[second[pair]]
    used = np.zeros(len(mz), np.bool_)
    other_used = np.zeros(len(other_mz), np.bool_)
    score, matches = 0.0, 0
    for pair in np.argsort(products, kind="mergesort")[::-1]:
        i, j = first[pair], second[pair]
        if not used[i] and not other_used[j]:
            used[i] = other_used[j] = True
            score += products[pair]
            matches += 1
    return score / np.sqrt((heights**2).sum() * (other_heights**2).sum()), matches


@compiled
def shared_entropy(weight: float, other: float) -> float:
    """What two peaks add to twice the similarity: f(a + b) − f(a) − f(b), f(x) = x log₂ x."""
    total = weight + other
    added: float = total * np.log2(total) - weight * np.log2(weight) - other * np.log2(other)
    return added


@compiled
def entropy_similarity(
    mz: Floats, weights: Floats, other_mz: Floats, other_weights: Floats, tolerance: float
) -> tuple[float, int]:
    """Spectral entropy similarity of two weighted spectra (`mzseek.library.entropy`).

    Their peaks lie at least twice the tolerance apart, so that each has one partner at most.
    """
    i = j = matches = 0
    score = 0.0
    while i < len(mz) and j < len(other_mz):
        # In single precision, as the m/z are: see `mzseek.library.entropy`.
        difference = np.float32(mz[i]) - np.float32(other_mz[j])
        if difference < -np.float32(tolerance):
            i += 1
        elif difference > np.float32(tolerance):
            j += 1
        else:
            score += shared_entropy(weights[i], other_weights[j])
            matches += 1
            i += 1
            j += 1
    return score / 2, matches
