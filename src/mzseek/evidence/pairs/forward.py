"""What pairs are worth under given weights, one pair after the other, as machine code.

The same as the products of `mzseek.evidence.pairs.network`, which train it: there whole batches are
multiplied, and most of what is multiplied is 0. Here nothing depends on how many pairs there are.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mzseek.compiled import compiled
from mzseek.evidence.lists import Ints
from mzseek.evidence.pairs.inputs import FIRST, HYDROGENS, RADICAL, PairInputs
from mzseek.fragments.ions import MOST_HYDROGENS

Floats = npt.NDArray[np.float64]


def worths(weights: Mapping[str, npt.NDArray[np.floating]], inputs: PairInputs) -> Floats:
    """What each pair is worth, before its peak's share is counted in."""
    pairs, found = inputs.pairs, np.zeros(len(inputs.pairs.row))
    rows = np.stack(
        [
            np.asarray(pairs.code, np.int64),
            RADICAL + np.asarray(pairs.radical, np.int64),
            HYDROGENS + MOST_HYDROGENS + np.asarray(pairs.hydrogens, np.int64),
        ]
    )
    # As the network has seen them when it was trained: rounded.
    error = np.asarray(pairs.error / inputs.tolerance[pairs.peak], np.float32)
    own = {name: np.ascontiguousarray(values, np.float64) for name, values in weights.items()}
    _fill(
        rows, np.asarray(pairs.peak, np.int64), inputs.of_peak, error,
        own["first"], own["first_bias"], own["second"], own["second_bias"],
        own["last"], own["last_bias"], found,
    )  # fmt: skip
    return found


@compiled
def _fill(
    rows: Ints,
    peak: Ints,
    of_peak: npt.NDArray[np.float32],
    error: npt.NDArray[np.float32],
    first: Floats,
    first_bias: Floats,
    second: Floats,
    second_bias: Floats,
    last: Floats,
    last_bias: Floats,
    found: Floats,
) -> None:
    width = of_peak.shape[1]
    one, two = np.zeros(len(first_bias)), np.zeros(len(second_bias))
    numbers = np.zeros(width + 3)
    for pair in range(len(peak)):
        numbers[:width] = of_peak[peak[pair]]
        numbers[width] = error[pair]
        numbers[width + 1] = abs(error[pair])
        numbers[width + 2] = np.exp(-8 * error[pair] ** 2)
        one[:] = first_bias
        for kind in range(3):
            row = rows[kind, pair]
            for unit in range(len(one)):
                one[unit] += first[row, unit]
        for number in range(len(numbers)):
            value = numbers[number]
            for unit in range(len(one)):
                one[unit] += value * first[FIRST + number, unit]
        two[:] = second_bias
        for before in range(len(one)):
            value = one[before]
            if value > 0:
                for unit in range(len(two)):
                    two[unit] += value * second[before, unit]
        worth = last_bias[0]
        for unit in range(len(two)):
            worth += max(two[unit], 0.0) * last[unit]
        found[pair] = worth
