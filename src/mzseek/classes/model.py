"""The model of compound classes: what each source says of a class, and how they are combined.

A molecule that is in the database has the class of its candidate; one that is not has, with
probability 1 − P(in database), a class that five sources point to: similar formulas, candidates
(its isomers), the regression on reference spectra, the most similar of these, and how frequent the
class is. At each level the sources are combined log-linearly over the children of a node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mzseek.classes.formula import composition, coordinates, formula_votes
from mzseek.classes.structure import StructureModel
from mzseek.classes.taxonomy import LEVELS, Floats, Ints, Taxonomy
from mzseek.core.errors import BundleError

SOURCES = ("formula", "candidates", "regression", "references", "frequency")
_PSEUDOCOUNTS = (0.5, 1.0, 0.05, 0.02)  # of the prior, beside the votes of each source but the last
_RARE = 1e-3  # share of lineages that nobody has, among those of labelled molecules
_CERTAIN = 0.97  # probability of the lineage that a labelled molecule has
_POWER = 4  # of the similarity of a reference spectrum, for its vote
_PULL = 0.02  # penalty on weights, per query
MAX_FORMULAS = 10
MAX_CANDIDATES = 30  # whose classes count
Keys = npt.NDArray[np.bytes_]


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """Votes of the sources for lineages, and the classes of the candidates.

    Attributes
    ----------
    votes : list of float64 arrays, shape (lineages,)
        Of the `SOURCES` but the last, not normalised: few votes say little.
    candidates : float64 array, shape (lineages,), or None
        Probabilities if the molecule is one of the candidates; None without candidates.
    p_in_database : float
    """

    votes: Sequence[Floats]
    candidates: Floats | None = None
    p_in_database: float = 0.0


@dataclass(frozen=True, eq=False)
class ClassModel:
    """Classes of labelled molecules, and the weights of the sources.

    Attributes
    ----------
    tree : Taxonomy
    keys : bytes array, shape (labelled,), rising
        First InChIKey blocks of molecules whose lineage is known.
    lineage : int64 array, shape (labelled,)
    compositions : int64 array, shape (labelled, elements)
    structure : StructureModel
    weights : float64 array, shape (levels, sources)
    metadata : mapping
        Source and licence of the labels, and how the weights were fitted.
    """

    tree: Taxonomy
    keys: Keys
    lineage: Ints
    compositions: Ints
    structure: StructureModel
    weights: Floats
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def prior(self) -> Floats:
        """Share of each lineage among labelled molecules."""
        counts = np.bincount(self.lineage, minlength=len(self.tree)) + _RARE * len(self.lineage)
        return np.asarray(counts / counts.sum())

    def find(self, keys: Sequence[str]) -> Ints:
        """Return the lineage of molecules by first InChIKey block; −1 where it is not known."""
        asked = np.array(keys, self.keys.dtype) if keys else np.empty(0, self.keys.dtype)
        if not len(self.keys):
            return np.full(len(asked), -1)
        at = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
        return np.where(self.keys[at] == asked, self.lineage[at], -1)

    def of_structures(self, keys: Sequence[str], bits: csr_array) -> Floats:
        """Return probabilities of lineages of molecules, shape (molecules, lineages).

        Parameters
        ----------
        keys : sequence of str
            First InChIKey blocks: a labelled molecule has its own lineage.
        bits : CSR of 0/1
            Fingerprints, see `mzseek.classes.structure.side_by_side`.
        """
        p = self.structure.probabilities(bits)
        found = self.find(keys)
        labelled = np.flatnonzero(found >= 0)
        p[labelled] *= 1 - _CERTAIN
        p[labelled, found[labelled]] += _CERTAIN
        return p

    @cached_property
    def _coordinates(self) -> Floats:
        return coordinates(self.compositions)

    @cached_property
    def _of_formula(self) -> dict[str, Floats]:
        return {}

    def formula_votes(self, formula: str, without: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return votes of labelled molecules of similar formulas, cached where all may vote.

        Parameters
        ----------
        formula : str
        without : bool array, shape (labelled,), optional
            Molecules that must not vote.
        """
        if without is None and formula in self._of_formula:
            return self._of_formula[formula]
        atoms, size = composition(formula), len(self.tree)
        if not atoms:
            return np.zeros(size)
        votes = formula_votes(coordinates([atoms])[0], self._coordinates)
        if without is not None:
            votes = np.where(without, 0.0, votes)
        sums = np.bincount(self.lineage, votes, minlength=size).astype(np.float64)
        if without is None:
            self._of_formula[formula] = sums
        return sums

    def formulas_votes(self, formulas: Mapping[str, float]) -> Floats:
        """Return votes for several formulas, weighted by their probabilities."""
        first = sorted(formulas.items(), key=lambda item: (-item[1], item[0]))[:MAX_FORMULAS]
        votes = np.zeros(len(self.tree))
        for formula, probability in first:
            votes += probability * self.formula_votes(formula)
        return votes

    def posterior(self, evidence: ClassEvidence) -> Floats:
        """Return probabilities of lineages, shape (lineages,)."""
        features = source_features(self.tree, [votes[None] for votes in evidence.votes], self.prior)
        logits = [
            # Not a matrix product: the order in which it adds depends on the number of threads.
            np.einsum("k,kn->n", weights, of_level[:, 0])
            for weights, of_level in zip(self.weights, features, strict=True)
        ]
        missing = self.tree.joined(logits)
        if evidence.candidates is None:
            return missing
        share = evidence.p_in_database
        return np.asarray(share * evidence.candidates + (1 - share) * missing)


def reference_votes(lineages: Floats, similarities: npt.ArrayLike) -> Floats:
    """Return votes of reference spectra: the lineages of their molecules by a power of similarity.

    Parameters
    ----------
    lineages : float64 array, shape (references, lineages)
    similarities : array, shape (references,)
    """
    weights = np.asarray(similarities, np.float64) ** _POWER
    # Not `@`: the order in which a matrix product adds depends on the number of threads.
    return np.asarray(np.einsum("ij,i->j", lineages, weights))


def source_features(tree: Taxonomy, votes: Sequence[Floats], prior: Floats) -> list[Floats]:
    """Return log-shares of the nodes by source, for each level (sources, queries, nodes).

    Parameters
    ----------
    tree : Taxonomy
    votes : sequence of float64 arrays, shape (queries, lineages)
        Of each source but the last; negative sums count as none.
    prior : float64 array, shape (lineages,)
    """
    features = []
    for level in range(len(LEVELS)):
        p = tree.at_level(prior, level)
        logs = []
        for of_source, pseudocount in zip(votes, _PSEUDOCOUNTS, strict=True):
            sums = np.maximum(tree.at_level(of_source, level), 0.0) + pseudocount * p
            logs.append(np.log(sums / sums.sum(1, keepdims=True)))
        features.append(np.stack([*logs, np.broadcast_to(np.log(p), logs[0].shape)]))
    return features


def fit_weights(
    tree: Taxonomy, votes: Sequence[Floats], prior: Floats, truth: Ints, counts: Floats
) -> Floats:
    """Fit the weights of the sources at each level, shape (levels, sources).

    Minimises the mean over queries of −log P(true child | true parent), plus a small penalty.

    Parameters
    ----------
    tree : Taxonomy
    votes : sequence of float64 arrays, shape (queries, lineages)
    prior : float64 array, shape (lineages,)
    truth : int array, shape (queries,)
    counts : float64 array, shape (queries,)
        How much each query counts.
    """
    fitted = []
    for level, features in enumerate(source_features(tree, votes, prior)):
        parents, node = tree.parents[level], tree.node_of[level][truth]
        is_sibling = parents[None, :] == parents[node][:, None]
        rows = np.flatnonzero((is_sibling.sum(1) > 1) & (counts > 0))
        inside, labels, weight = is_sibling[rows], node[rows], counts[rows] / counts[rows].sum()
        of_rows = features[:, rows]

        def loss(
            at: Floats,
            features: Floats = of_rows,
            inside: npt.NDArray[np.bool_] = inside,
            labels: Ints = labels,
            weight: Floats = weight,
        ) -> tuple[float, Floats]:
            logits = np.where(inside, np.tensordot(at, features, 1), -np.inf)
            logits -= logits.max(1, keepdims=True)
            p = np.exp(logits)
            p /= p.sum(1, keepdims=True)
            each = np.arange(len(labels))
            value = -float(weight @ np.log(np.maximum(p[each, labels], 1e-300)))
            p[each, labels] -= 1.0
            slope = np.einsum("kij,ij,i->k", features, p, weight)
            return value + 0.5 * _PULL * float(at @ at), slope + _PULL * at

        start = np.full(len(SOURCES), 1 / len(SOURCES))
        if not len(rows):
            fitted.append(start)
            continue
        fitted.append(minimize(loss, start, jac=True, method="L-BFGS-B").x.round(6))
    return np.array(fitted)


def check_weights(weights: npt.NDArray[np.floating], where: object) -> Floats:
    """Return weights of sources; raise `BundleError` where they have another shape."""
    expected = (len(LEVELS), len(SOURCES))
    if weights.shape != expected or not np.isfinite(weights).all():
        raise BundleError(f"{where}: has weights of shape {weights.shape}, expected {expected}")
    return np.asarray(weights, np.float64)
