"""From a structure to its class: logistic regressions on fingerprint bits, one for each node."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack

from mzseek.classes.taxonomy import Floats, Ints, Taxonomy
from mzseek.core.errors import BundleError

KINDS = ("morgan2", "rdkit4")  # fingerprints that candidates have anyway
_STEPS = 127  # of a weight that is stored in a byte


@dataclass(frozen=True, eq=False)
class StructureModel:
    """Linear model of the lineage of a molecule.

    Attributes
    ----------
    columns : int64 array, shape (features,)
        Bits that it reads, as columns of the fingerprints side by side.
    weights : list of int8 arrays, shape (features, nodes of the level)
    bias : list of float64 arrays, shape (nodes of the level,)
    steps : float64 array, shape (levels,)
        Factor of the weights of each level.
    """

    columns: Ints
    weights: list[npt.NDArray[np.int8]]
    bias: list[Floats]
    steps: Floats

    def probabilities(self, tree: Taxonomy, bits: csr_array) -> Floats:
        """Return probabilities of lineages, shape (molecules, lineages).

        Parameters
        ----------
        tree : Taxonomy
        bits : CSR of 0/1
            Fingerprints of the `KINDS` side by side (`side_by_side`).
        """
        rows = csr_array(bits[:, self.columns], dtype=np.float64)
        logits = [
            np.asarray(rows @ table) + bias
            for table, bias in zip(self._tables, self.bias, strict=True)
        ]
        return tree.joined(logits)

    @cached_property
    def _tables(self) -> list[Floats]:
        return [weights * step for weights, step in zip(self.weights, self.steps, strict=True)]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All numbers as arrays by name."""
        numbered: dict[str, npt.NDArray[Any]] = {
            f"weights.{level}": array for level, array in enumerate(self.weights)
        }
        numbered |= {f"bias.{level}": array for level, array in enumerate(self.bias)}
        return {"columns": self.columns, "steps": self.steps, **numbered}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], tree: Taxonomy, where: object
    ) -> "StructureModel":
        """Open what `arrays` returned; raises `BundleError` where shapes do not fit the tree."""
        sizes = [len(nodes) for nodes in tree.nodes]
        try:
            columns = np.asarray(arrays["columns"], np.int64)
            steps = np.asarray(arrays["steps"], np.float64)
            weights = [np.asarray(arrays[f"weights.{level}"]) for level in range(len(sizes))]
            bias = [np.asarray(arrays[f"bias.{level}"], np.float64) for level in range(len(sizes))]
        except KeyError as error:
            raise BundleError(f"{where}: {error.args[0]} is missing") from None
        expected = [(len(columns), size) for size in sizes]
        fits = [array.shape for array in weights] == expected and steps.shape == (len(sizes),)
        if not fits or [array.shape for array in bias] != [(size,) for size in sizes]:
            raise BundleError(f"{where}: weights of structures do not fit the tree of classes")
        return cls(columns, weights, bias, steps)


def side_by_side(fingerprints: Mapping[str, csr_array]) -> csr_array:
    """Return the fingerprints of the `KINDS` as one matrix."""
    return csr_array(hstack([fingerprints[kind] for kind in KINDS], format="csr"))


def fit_structure_model(
    tree: Taxonomy,
    bits: csr_array,
    lineage: Ints,
    *,
    min_molecules: int = 60,
    l2: float = 1.0,
    iterations: int = 100,
) -> StructureModel:
    """Fit a logistic regression over the children of each node.

    Parameters
    ----------
    tree : Taxonomy
    bits : CSR of 0/1, shape (molecules, bits)
    lineage : int array, shape (molecules,)
    min_molecules : int
        That must have a bit, for it to be a feature; a twentieth of all where that is fewer.
    l2 : float
        Half of it times the squares of all weights is added to the loss summed over molecules.
    iterations : int
        Of L-BFGS, at most, for each node.
    """
    least = min(min_molecules, max(len(lineage) // 20, 1))
    columns = np.flatnonzero(np.bincount(bits.indices, minlength=bits.shape[1]) >= least)
    rows = csr_array(bits[:, columns], dtype=np.float64)
    weights, bias, steps = [], [], []
    for level, parents in enumerate(tree.parents):
        node = tree.node_of[level][lineage]
        above = tree.node_of[level - 1][lineage] if level else np.zeros(len(lineage), np.int64)
        of_level = np.zeros((len(columns), len(parents)))
        bias_of_level = np.zeros(len(parents))
        for parent in np.unique(parents).tolist():
            children = np.flatnonzero(parents == parent)
            members = np.flatnonzero(above == parent)
            if len(children) == 1 or not len(members):
                continue
            label = np.searchsorted(children, node[members])
            fitted = _softmax_regression(rows[members], label, len(children), l2, iterations)
            of_level[:, children], bias_of_level[children] = fitted
        step = float(np.abs(of_level).max(initial=0.0)) / _STEPS or 1.0
        weights.append(np.rint(of_level / step).astype(np.int8))
        bias.append(bias_of_level.astype(np.float32).astype(np.float64))
        steps.append(step)
    return StructureModel(columns, weights, bias, np.array(steps))


def _softmax_regression(
    rows: csr_array, label: Ints, classes: int, l2: float, iterations: int
) -> tuple[Floats, Floats]:
    """Return weights, shape (features, classes), and the bias of each class."""
    features = rows.shape[1]
    columns = csr_array(rows.T)
    truth = np.arange(len(label)), label

    def loss(at: Floats) -> tuple[float, Floats]:
        table = at.reshape(features + 1, classes)
        logits = rows @ table[:-1] + table[-1]
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(1, keepdims=True)
        value = float(np.log(total).sum() - logits[truth].sum())
        p /= total
        p[truth] -= 1.0
        slope = np.vstack([columns @ p + l2 * table[:-1], p.sum(0) + 1e-3 * table[-1]])
        penalty = 0.5 * l2 * float((table[:-1] ** 2).sum())
        return value + penalty + 0.5e-3 * float((table[-1] ** 2).sum()), slope.reshape(-1)

    start = np.zeros((features + 1) * classes)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    table = found.x.reshape(features + 1, classes)
    return table[:-1], table[-1]
