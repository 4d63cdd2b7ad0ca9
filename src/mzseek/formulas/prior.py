"""Prior of formulas: which of the formulas of one mass molecules have.

A small network over element counts and ratios, fitted to tell the formulas of known molecules from
the other formulas of the same mass (`benchmarks/fit_formulas.py`). It knows no formula by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.formulas.enumeration import MASSES, twice_rdbe

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_RATIO = 1.0  # carbons added to the denominator of ratios


@dataclass(frozen=True, eq=False)
class FormulaPrior:
    """Log-odds of formulas, from the weights of a network with rectified units.

    Attributes
    ----------
    weights : sequence of float64 arrays, shape (inputs, outputs)
    biases : sequence of float64 arrays, shape (outputs,)
    """

    weights: Sequence[Floats]
    biases: Sequence[Floats]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "FormulaPrior":
        """Return the prior that `to_dict` has written."""
        return cls(*([np.array(array) for array in data[name]] for name in ("weights", "biases")))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, with five digits."""
        return {
            name: [_rounded(array) for array in getattr(self, name)]
            for name in ("weights", "biases")
        }

    def log_odds(self, counts: Ints) -> Floats:
        """Return the log-odds of formulas, up to a constant of each mass, shape (formulas,)."""
        values = descriptors(counts)
        for at, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            # Not by BLAS, whose rounding depends on the number of rows.
            values = np.einsum("fi,io->fo", values, weight) + bias
            if at < len(self.weights) - 1:
                values = np.maximum(values, 0.0)
        return values[:, 0]


def descriptors(counts: Ints) -> Floats:
    """Return what the prior sees of formulas, shape (formulas, descriptors).

    Logarithms of counts, presence of the rarer elements, ratios to carbon, RDBE and mass.
    """
    carbons = counts[:, :1] + _RATIO
    hetero = counts[:, 2:].sum(1, keepdims=True)
    rdbe = twice_rdbe(counts)[:, None] / 2
    mass = (counts @ MASSES)[:, None]
    return np.concatenate(
        [
            np.log1p(counts),
            counts[:, 2:13] > 0,
            np.minimum(counts[:, 1:13] / carbons, 4.0),
            np.minimum(hetero / carbons, 4.0),
            rdbe / 10.0,
            np.maximum(rdbe / carbons, -1.0),
            counts[:, 2:3] % 2,
            (counts[:, 4:10] > 0).sum(1, keepdims=True),
            mass / 300.0,
            np.log(np.maximum(mass, 1.0) / 300.0),
        ],
        axis=1,
    ).astype(np.float64)


def _rounded(array: Floats) -> Any:
    return np.vectorize(lambda value: float(f"{value:.5g}"))(array).tolist() if array.size else []
