"""The class of a feature's molecule: probabilities at three levels, and what they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mzseek.classes.taxonomy import LEVELS, NONE, Floats, Lineage, Taxonomy

NONE_OF_THESE = "none of these"
_SHOWN, _LEAST = 8, 0.01  # classes of a level, and the least probability of those
_REFERENCES = 5


@dataclass(frozen=True)
class ClassProbability:
    """A class with its probability.

    Attributes
    ----------
    lineage : tuple of str
        Superclass, class and subclass down to it. An empty last name means: none of the others.
    probability : float
    """

    lineage: Lineage
    probability: float

    @property
    def name(self) -> str:
        """Name of the class itself."""
        return self.lineage[-1] or NONE_OF_THESE

    @property
    def is_named(self) -> bool:
        """Whether it is a class, and not what is left beside those."""
        return self.lineage[-1] != NONE


@dataclass(frozen=True)
class ClassReference:
    """A similar reference spectrum whose molecule has a known class.

    Attributes
    ----------
    record, name, smiles : str
        Of the spectrum, and of its molecule.
    similarity : float
        Of the two spectra.
    lineage : tuple of str
        Of its molecule: superclass, class, subclass as far as they are assigned.
    """

    record: str
    name: str
    smiles: str
    similarity: float
    lineage: Lineage


@dataclass(frozen=True)
class CompoundClass:
    """Posterior over ChemOnt superclass, class and subclass.

    Attributes
    ----------
    levels : tuple of tuples of ClassProbability
        For each of `LEVELS` its classes, the most probable first; rare ones are left out.
    answer : ClassProbability or None
        The deepest class that reaches the confidence asked for; None where no superclass does.
    references : tuple of ClassReference
        The most similar reference spectra whose molecules have a known class, that or another.
    """

    levels: tuple[tuple[ClassProbability, ...], ...]
    answer: ClassProbability | None
    references: tuple[ClassReference, ...] = ()

    @property
    def name(self) -> str:
        """Name of the answer; empty for none."""
        return "" if self.answer is None else self.answer.name

    @property
    def level(self) -> str:
        """Level of the answer, one of `LEVELS`; empty for none."""
        return "" if self.answer is None else LEVELS[len(self.answer.lineage) - 1]

    @property
    def probability(self) -> float | None:
        """Probability of the answer."""
        return None if self.answer is None else self.answer.probability

    @property
    def best(self) -> ClassProbability:
        """The answer, or else the most probable superclass."""
        return self.levels[0][0] if self.answer is None else self.answer

    def is_supported_by(self, reference: ClassReference) -> bool:
        """Whether a reference molecule is of the class `best`."""
        return reference.lineage[: len(self.best.lineage)] == self.best.lineage


def compound_class(
    tree: Taxonomy,
    probabilities: Floats,
    confidence: float,
    references: Sequence[ClassReference] = (),
) -> CompoundClass:
    """Describe a posterior over lineages.

    Parameters
    ----------
    tree : Taxonomy
    probabilities : float64 array, shape (lineages,)
    confidence : float
        Probability from which on a class is the answer.
    references : sequence of ClassReference
        The most similar first; a few are kept.

    Examples
    --------
    >>> tree = Taxonomy([("", "", ""), ("Lipids", "", ""), ("Lipids", "Fatty Acyls", "")])
    >>> found = compound_class(tree, np.array([0.1, 0.3, 0.6]), confidence=0.7)
    >>> found.name, found.level, round(found.probability, 2)
    ('Lipids', 'superclass', 0.9)
    >>> [round(item.probability, 2) for item in found.levels[1]]
    [0.6, 0.3, 0.1]
    """
    levels, answer = [], None
    for level, nodes in enumerate(tree.nodes):
        p = tree.at_level(probabilities, level)
        order = np.argsort(-p.round(12), kind="stable")
        entries = [ClassProbability(nodes[at], float(p[at])) for at in order.tolist()]
        shown = [entry for entry in entries if entry.probability >= _LEAST][:_SHOWN]
        levels.append(tuple(shown or entries[:1]))
        best = entries[0]
        if best.probability >= confidence and (best.is_named or level == 0):
            answer = best
    return CompoundClass(tuple(levels), answer, tuple(references[:_REFERENCES]))
