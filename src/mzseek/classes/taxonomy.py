"""The tree of compound classes: superclasses, their classes, and subclasses of these."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

LEVELS = ("superclass", "class", "subclass")
NONE = ""  # name of a residual: no class is assigned here, or a rarer one than those of the tree
_ROOTS = ("Organic compounds", "Inorganic compounds")

Lineage = tuple[str, ...]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Taxonomy:
    """Lineages that a molecule can have; probabilities over them are consistent by construction.

    A probability of a superclass or class is the sum over its lineages, so that no child is more
    probable than its parent.

    Parameters
    ----------
    lineages : iterable of (superclass, class, subclass)
        Sorted, each once. Below a node the name `NONE` stands for every molecule without a class of
        the tree there.

    Examples
    --------
    >>> tree = Taxonomy([("", "", ""), ("Lipids", "", ""), ("Lipids", "Fatty Acyls", "")])
    >>> tree.nodes[0], tree.nodes[1]
    ((('',), ('Lipids',)), (('', ''), ('Lipids', ''), ('Lipids', 'Fatty Acyls')))
    >>> tree.at_level(np.array([0.1, 0.2, 0.7]), 0).round(1).tolist()
    [0.1, 0.9]
    """

    def __init__(self, lineages: Iterable[Sequence[str]]) -> None:
        self.lineages: tuple[Lineage, ...] = tuple(tuple(lineage) for lineage in lineages)

    def __len__(self) -> int:
        return len(self.lineages)

    @classmethod
    def of(cls, lineages: Sequence[Lineage], min_molecules: int = 1) -> "Taxonomy":
        """Return the tree of the classes that so many molecules have.

        Parameters
        ----------
        lineages : sequence of tuples
            Of molecules: superclass, and class and subclass where they are assigned.
        min_molecules : int
        """
        counts = Counter(lineage[:depth] for lineage in lineages for depth in (1, 2, 3)
                         if len(lineage) >= depth)  # fmt: skip
        found = {padded(())}
        for node, count in counts.items():
            if count >= min_molecules:
                found |= {padded(node[:depth]) for depth in range(1, len(node) + 1)}
        return cls(sorted(found))

    @cached_property
    def nodes(self) -> tuple[tuple[Lineage, ...], ...]:
        """Nodes of each level, sorted."""
        return tuple(
            tuple(sorted({lineage[: depth + 1] for lineage in self.lineages}))
            for depth in range(len(LEVELS))
        )

    @cached_property
    def node_of(self) -> tuple[Ints, ...]:
        """For each level the node of each lineage."""
        indices = []
        for depth, nodes in enumerate(self.nodes):
            index = {node: number for number, node in enumerate(nodes)}
            indices.append(np.array([index[lineage[: depth + 1]] for lineage in self.lineages]))
        return tuple(indices)

    @cached_property
    def parents(self) -> tuple[Ints, ...]:
        """For each level the parent of each node, a node of the level above; 0 for superclasses."""
        parents = [np.zeros(len(self.nodes[0]), np.int64)]
        for above, nodes in zip(self.nodes, self.nodes[1:], strict=False):
            index = {node: number for number, node in enumerate(above)}
            parents.append(np.array([index[node[:-1]] for node in nodes]))
        return tuple(parents)

    def index(self, lineage: Lineage) -> int:
        """Return the lineage of the tree that a molecule's belongs to."""
        for depth in range(min(len(lineage), len(LEVELS)), 0, -1):
            found = self._index.get(padded(lineage[:depth]))
            if found is not None:
                return found
        return self._index[padded(())]

    def named(self, lineage: int) -> Lineage:
        """Return the names of a lineage, as far as there are any."""
        return tuple(name for name in self.lineages[lineage] if name != NONE)

    @cached_property
    def _index(self) -> dict[Lineage, int]:
        return {lineage: number for number, lineage in enumerate(self.lineages)}

    @cached_property
    def _starts(self) -> tuple[Ints, ...]:
        """For each level the first lineage of each node: lineages are sorted."""
        return tuple(np.unique(node, return_index=True)[1] for node in self.node_of)

    @cached_property
    def _first_children(self) -> tuple[Ints, ...]:
        """For each level the first child of each node of the level above."""
        return tuple(np.unique(parents, return_index=True)[1] for parents in self.parents)

    def at_level(self, probabilities: Floats, level: int) -> Floats:
        """Sum probabilities of lineages (last axis) to those of the nodes of a level."""
        return np.asarray(np.add.reduceat(probabilities, self._starts[level], axis=-1))

    def joined(self, logits: Sequence[Floats]) -> Floats:
        """Return probabilities of lineages: at each level a softmax over the children of a node.

        Parameters
        ----------
        logits : sequence of arrays, shape (…, nodes of the level)
        """
        probabilities = np.ones((*logits[0].shape[:-1], 1))
        for of_level, parents, first in zip(
            logits, self.parents, self._first_children, strict=True
        ):
            values = np.exp(of_level - np.maximum.reduceat(of_level, first, axis=-1)[..., parents])
            sums = np.add.reduceat(values, first, axis=-1)
            probabilities = probabilities[..., parents] * values / sums[..., parents]
        return np.asarray(probabilities)  # nodes of the last level are the lineages


def padded(lineage: Sequence[str]) -> Lineage:
    """Return a lineage of full length.

    Examples
    --------
    >>> padded(["Lipids"])
    ('Lipids', '', '')
    """
    return (*lineage, *[NONE] * (len(LEVELS) - len(lineage)))


def parse_lineage(text: str) -> Lineage:
    """Return superclass, class and subclass of a lineage as MassBank's records state it.

    Examples
    --------
    >>> parse_lineage("Organic compounds; Benzenoids; Triphenyl compounds")
    ('Benzenoids', 'Triphenyl compounds')
    >>> parse_lineage("Organic compounds"), parse_lineage("")
    ((), ())
    """
    names = [name.strip() for name in text.split(";")]
    if names[0] not in _ROOTS:
        return ()
    return tuple(name for name in names[1 : len(LEVELS) + 1] if name)
