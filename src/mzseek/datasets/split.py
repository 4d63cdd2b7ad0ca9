"""Splits by structure: clusters of similar molecules, never torn between folds."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mzseek.similarity import tanimoto_blocks


def nearest_similarity(rows: csr_array, others: csr_array) -> npt.NDArray[np.float32]:
    """Largest Tanimoto similarity of each row to any of the others (0 where there are none)."""
    nearest = np.zeros(rows.shape[0], dtype=np.float32)
    if others.shape[0]:
        for start, block in tanimoto_blocks(rows, others):
            nearest[start : start + len(block)] = block.max(axis=1)
    return nearest


def structure_clusters(rows: csr_array, threshold: float = 0.6) -> npt.NDArray[np.int64]:
    """Single-linkage clusters: molecules at least ``threshold`` similar are in one cluster.

    Parameters
    ----------
    rows : CSR of 0/1, shape (molecules, bits)
    threshold : float
        Tanimoto similarity.

    Returns
    -------
    int64 array, shape (molecules,)
        Cluster numbers, in the order in which clusters are first met.
    """
    linked_rows, linked_columns = [], []
    for start, block in tanimoto_blocks(rows, rows):
        row, column = np.nonzero(block >= threshold)
        linked_rows.append(row + start)
        linked_columns.append(column)
    size = rows.shape[0]
    if size == 0:
        return np.empty(0, np.int64)
    row, column = np.concatenate(linked_rows), np.concatenate(linked_columns)
    graph = csr_array((np.ones(len(row), np.int8), (row, column)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def join_clusters(
    clusters: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Clusters united wherever they share a label (a formula, say).

    Examples
    --------
    >>> join_clusters(np.array([0, 0, 1, 2]), np.array([5, 6, 6, 7])).tolist()
    [0, 0, 0, 1]
    """
    size = len(clusters)
    if size == 0:
        return clusters
    first = np.unique(clusters, return_inverse=True)[1]
    second = np.unique(labels, return_inverse=True)[1] + first.max() + 1
    nodes = int(second.max()) + 1
    graph = csr_array((np.ones(size, np.int8), (first, second)), shape=(nodes, nodes))
    component = connected_components(graph, directed=False)[1]
    return np.unique(component[first], return_inverse=True)[1].astype(np.int64)


def assign_folds(
    clusters: npt.NDArray[np.int64], fractions: Mapping[str, float], seed: int = 0
) -> list[str]:
    """A fold for each molecule, whole clusters at a time.

    Clusters are taken from the largest to the smallest (equal ones in an order drawn from the
    seed), each by the fold that lacks most of its share.

    Examples
    --------
    >>> assign_folds(np.array([0, 0, 0, 1, 2]), {"train": 0.6, "val": 0.2, "test": 0.2}, seed=1)
    ['train', 'train', 'train', 'val', 'test']
    """
    names = list(fractions)
    sizes = np.bincount(clusters)
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    lacking = np.array([fractions[name] for name in names]) * len(clusters)
    fold_of = np.zeros(len(sizes), dtype=np.int64)
    for cluster in order:
        fold_of[cluster] = int(np.argmax(lacking))
        lacking[fold_of[cluster]] -= sizes[cluster]
    return [names[fold_of[cluster]] for cluster in clusters]
