"""From a structure to its class: a network with one hidden layer on fingerprint bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack
from threadpoolctl import threadpool_limits

from mzseek.classes.taxonomy import Floats, Ints, Taxonomy
from mzseek.core.errors import BundleError

KINDS = ("morgan2", "rdkit4")  # fingerprints that candidates have anyway
_STEPS = 127  # of a weight that is stored in a byte
_SEED = 0
_BATCH, _LEAST_BATCHES = 128, 1_000
_RATE, _DECAY = 2e-3, 3e-3  # of Adam: its rate falls as a half cosine; decay of weights per step
_MOMENTS = 0.9, 0.999
_DROPPED_BITS, _DROPPED_UNITS = 0.2, 0.3  # shares, in training
_NAMES = ("hidden", "hidden_bias", "output", "output_bias")
Values = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StructureModel:
    """Network from the bits of a molecule to its lineage: rectified hidden units, and a softmax.

    Attributes
    ----------
    columns : int64 array, shape (features,)
        Bits that it reads, as columns of the fingerprints side by side.
    hidden : int8 array, shape (features, units)
    hidden_bias : float32 array, shape (units,)
    output : int8 array, shape (units, lineages)
    output_bias : float32 array, shape (lineages,)
    steps : float64 array, shape (2,)
        Factors of the two arrays of weights.
    """

    columns: Ints
    hidden: npt.NDArray[np.int8]
    hidden_bias: Values
    output: npt.NDArray[np.int8]
    output_bias: Values
    steps: Floats

    def probabilities(self, bits: csr_array) -> Floats:
        """Return probabilities of lineages, shape (molecules, lineages).

        Parameters
        ----------
        bits : CSR of 0/1
            Fingerprints of the `KINDS` side by side (`side_by_side`).
        """
        hidden, output = self._tables
        rows = csr_array(bits[:, self.columns], dtype=np.float64)
        units = np.maximum(rows @ hidden + self.hidden_bias, 0.0)
        # A sparse product: that of dense matrices adds in an order that depends on other rows.
        logits = csr_array(units) @ output + self.output_bias
        p = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(p / p.sum(1, keepdims=True))

    @cached_property
    def _tables(self) -> tuple[Floats, Floats]:
        return self.hidden * self.steps[0], self.output * self.steps[1]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All numbers as arrays by name."""
        return {name: getattr(self, name) for name in ("columns", *_NAMES, "steps")}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], tree: Taxonomy, where: object
    ) -> "StructureModel":
        """Open what `arrays` returned; raises `BundleError` where shapes do not fit the tree."""
        try:
            columns = np.asarray(arrays["columns"], np.int64)
            steps = np.asarray(arrays["steps"], np.float64)
            hidden, hidden_bias, output, output_bias = (np.asarray(arrays[n]) for n in _NAMES)
        except KeyError as error:
            raise BundleError(
                f"{where}: {error.args[0]} of the classifier of structures is missing; make it "
                "again with `mzseek model classes`"
            ) from None
        shapes = [array.shape for array in (hidden, hidden_bias, output, output_bias, steps)]
        units, size = len(hidden_bias), len(tree)
        if shapes != [(len(columns), units), (units,), (units, size), (size,), (2,)]:
            raise BundleError(f"{where}: weights of structures do not fit the tree of classes")
        return cls(columns, hidden, hidden_bias, output, output_bias, steps)


def side_by_side(fingerprints: Mapping[str, csr_array]) -> csr_array:
    """Return the fingerprints of the `KINDS` as one matrix."""
    return csr_array(hstack([fingerprints[kind] for kind in KINDS], format="csr"))


def fit_structure_model(
    tree: Taxonomy,
    bits: csr_array,
    lineage: Ints,
    *,
    min_molecules: int = 30,
    units: int = 192,
    epochs: int = 30,
) -> StructureModel:
    """Fit the network by Adam, with dropout of bits and units.

    Parameters
    ----------
    tree : Taxonomy
    bits : CSR of 0/1, shape (molecules, bits)
    lineage : int array, shape (molecules,)
    min_molecules : int
        That must have a bit, for it to be a feature; a twentieth of all where that is fewer.
    units : int
        Of the hidden layer.
    epochs : int
        More where these are fewer than a thousand batches.
    """
    least = min(min_molecules, max(len(lineage) // 20, 1))
    columns = np.flatnonzero(np.bincount(bits.indices, minlength=bits.shape[1]) >= least)
    # Inputs of length 1, on average.
    scale = 1 / np.sqrt(max(bits[:, columns].sum() / len(lineage), 1.0))
    rows = csr_array(bits[:, columns] * scale, dtype=np.float32)
    epochs = max(epochs, _LEAST_BATCHES // -(-len(lineage) // _BATCH))
    with threadpool_limits(1, "blas"):  # more threads add in another order
        hidden, hidden_bias, output, output_bias = _fitted(rows, lineage, units, len(tree), epochs)
    hidden_bytes, hidden_step = _as_bytes(hidden * np.float32(scale))
    output_bytes, output_step = _as_bytes(output)
    steps = np.array([hidden_step, output_step])
    return StructureModel(columns, hidden_bytes, hidden_bias, output_bytes, output_bias, steps)


def _as_bytes(weights: Values) -> tuple[npt.NDArray[np.int8], float]:
    """Return weights in steps of one size, and the size."""
    step = float(np.abs(weights).max(initial=0.0)) / _STEPS or 1.0
    return np.rint(weights / step).astype(np.int8), step


def _fitted(
    rows: csr_array, label: Ints, units: int, classes: int, epochs: int
) -> tuple[Values, Values, Values, Values]:
    """Return weights and biases of the hidden and the output layer."""
    rng = np.random.default_rng(_SEED)
    parameters = [
        (0.4 * rng.standard_normal((rows.shape[1], units))).astype(np.float32),
        np.zeros(units, np.float32),
        (rng.standard_normal((units, classes)) / np.sqrt(units)).astype(np.float32),
        np.zeros(classes, np.float32),
    ]
    means = [np.zeros_like(values) for values in parameters]
    squares = [np.zeros_like(values) for values in parameters]
    batches = epochs * -(-len(label) // _BATCH)
    number = 0
    for _ in range(epochs):
        order = rng.permutation(len(label))
        for start in range(0, len(label), _BATCH):
            chosen = order[start : start + _BATCH]
            slopes = _slopes(parameters, rows[chosen], label[chosen], rng)
            rate = 0.5 * _RATE * (1 + np.cos(np.pi * number / batches))
            number += 1
            for values, slope, mean, square in zip(parameters, slopes, means, squares, strict=True):
                mean += (1 - _MOMENTS[0]) * (slope - mean)
                square += (1 - _MOMENTS[1]) * (slope**2 - square)
                spread = np.sqrt(square / (1 - _MOMENTS[1] ** number)) + 1e-8
                values -= rate * mean / (1 - _MOMENTS[0] ** number) / spread
                if values.ndim == 2:
                    values *= 1 - rate * _DECAY
    hidden, hidden_bias, output, output_bias = parameters
    return hidden, hidden_bias, output, output_bias


def _slopes(
    parameters: list[Values], rows: csr_array, label: Ints, rng: np.random.Generator
) -> tuple[Values, Values, Values, Values]:
    """Return the gradient of the mean of −log P(label), some bits and units dropped."""
    hidden, hidden_bias, output, output_bias = parameters
    kept = rng.random(rows.nnz) >= _DROPPED_BITS
    data = (rows.data * kept / (1 - _DROPPED_BITS)).astype(np.float32)
    rows = csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    units = rows @ hidden + hidden_bias
    open_units = (units > 0) & (rng.random(units.shape) >= _DROPPED_UNITS)
    gate = open_units.astype(np.float32) / np.float32(1 - _DROPPED_UNITS)
    units *= gate
    logits = units @ output + output_bias
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(label)), label] -= 1.0
    p /= len(label)
    of_units = (p @ output.T) * gate
    return np.asarray(rows.T @ of_units), of_units.sum(0), units.T @ p, p.sum(0)
