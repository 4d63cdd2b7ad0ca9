"""Molecular networks: edges between similar spectra of one study."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.library.library import Index
from mzseek.library.options import NetworkOptions
from mzseek.library.similarity import peak_lists
from mzseek.spectra import Spectrum

Ints = npt.NDArray[np.int64]
_ROUND = 9  # decimals of similarities: two ways round may differ in the last bits


@dataclass(frozen=True, eq=False)
class Network:
    """Edges between spectra, by the indices of these.

    Attributes
    ----------
    ends : int64 array, shape (edges, 2)
        Rising; the smaller index first.
    similarities : float64 array, shape (edges,)
    matched_peaks : int64 array, shape (edges,)
    components : int64 array, shape (spectra,)
        Number of the component of each spectrum: from 1, the largest first; 0 for one without
        edges.
    """

    ends: Ints
    similarities: npt.NDArray[np.float64]
    matched_peaks: Ints
    components: Ints

    @property
    def sizes(self) -> list[int]:
        """Number of spectra of each component, the largest first."""
        return [int(size) for size in np.bincount(self.components)[1:]]


def network_of(
    spectra: Sequence[Spectrum], options: NetworkOptions | None = None, threads: int | None = None
) -> Network:
    """Connect similar spectra of one ion mode.

    Parameters
    ----------
    spectra : sequence of Spectrum
        Each with peaks and a precursor.
    options : NetworkOptions, optional
    threads : int, optional
        All cores by default.
    """
    options = options or NetworkOptions()
    count = len(spectra)
    if not count:
        empty = np.zeros((0, 2), np.int64)
        return Network(empty, np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    lists, ions = peak_lists(spectra)
    best = Index(options.similarity, lists, ions, options.tolerance).search(
        lists, ions, min(options.neighbours + 1, count), np.arange(count), np.ones(count, np.bool_),
        threads=threads, least=(options.min_similarity, options.min_peaks),
    )  # fmt: skip
    edges: dict[tuple[int, int], tuple[float, int, int]] = {}
    for query in range(count):
        found = [
            (int(record), float(score), int(matches))
            for record, score, matches in zip(
                best.records[query], best.scores[query], best.matches[query], strict=True
            )
            if record >= 0 and record != query
        ]
        for record, score, matches in found[: options.neighbours]:
            ends = (min(query, record), max(query, record))
            known = edges.get(ends, (0.0, 0, 0))
            rounded = round(score, _ROUND)
            edges[ends] = max(known[0], rounded), max(known[1], matches), known[2] + 1
    chosen = [
        (ends, score, matches)
        for ends, (score, matches, ways) in edges.items()
        if ways == 2 or not options.mutual
    ]
    chosen.sort(key=lambda edge: (-edge[1], edge[0]))
    kept, root = _connected(chosen, count, options.max_component)
    kept.sort()
    return Network(
        np.array([ends for ends, _, _ in kept], np.int64).reshape(-1, 2),
        np.array([score for _, score, _ in kept], np.float64),
        np.array([matches for _, _, matches in kept], np.int64),
        _numbered(root),
    )


def _connected(
    edges: Sequence[tuple[tuple[int, int], float, int]], count: int, largest: int
) -> tuple[list[tuple[tuple[int, int], float, int]], list[int]]:
    """Keep edges in their order that make no component too large; also the root of each node."""
    root, sizes = list(range(count)), [1] * count

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    kept = []
    for edge in edges:
        first, second = sorted(map(find, edge[0]))
        if first != second:
            if largest and sizes[first] + sizes[second] > largest:
                continue
            root[second] = first
            sizes[first] += sizes[second]
        kept.append(edge)
    return kept, [find(node) for node in range(count)]


def _numbered(root: Sequence[int]) -> Ints:
    """Number components from the largest; equal ones by their first spectrum."""
    roots, index, sizes = np.unique(root, return_inverse=True, return_counts=True)
    order = np.lexsort((roots, -sizes))
    numbers = np.zeros(len(roots), np.int64)
    numbers[order] = np.arange(1, len(roots) + 1)
    numbers[sizes == 1] = 0
    return np.asarray(numbers[index], np.int64)
