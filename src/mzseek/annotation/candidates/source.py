"""What a source of candidates is: molecules by mass, by formula, or by feature."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mzseek.annotation.candidates.index import MoleculeIndex
from mzseek.chem.formulas import parse_formula
from mzseek.errors import AnnotationError, MoleculeError


@dataclass(frozen=True)
class Molecule:
    """A molecule as a source knows it.

    Attributes
    ----------
    smiles, key, formula : str
        ``key`` is the first block of the InChIKey.
    mass : float
    name : str
    sources, identifiers : tuple of str
    row : int
        Its place in a store; −1 where it comes from none.
    """

    smiles: str
    key: str
    formula: str
    mass: float
    name: str = ""
    sources: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    row: int = -1


class Source(ABC):
    """Molecules to choose from.

    Attributes
    ----------
    label : str
        What answers call it.
    by_feature : bool
        Whether each feature has a list of its own, so that no mass is looked up.
    index : MoleculeIndex or None
        What was read of its molecules before, by their rows.
    """

    label: str
    by_feature: bool = False
    index: MoleculeIndex | None = None

    @abstractmethod
    def __len__(self) -> int:
        """How many molecules there are."""

    @abstractmethod
    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""

    def of_feature(self, name: str) -> list[Molecule]:
        """Molecules that are listed for a feature."""
        raise AnnotationError(f"{self.label}: has no lists for single features ({name})")

    def of_formula(self, formula: str, mass: float, reach: float) -> list[Molecule]:
        """Of the molecules within a mass those of a formula, its elements in any order."""
        wanted = formula_text(formula)
        return [each for each in self.within(mass, reach) if each.formula == wanted]

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What a run folder says of it: how large, from where, which checksum."""


def formula_text(formula: str) -> str:
    """A formula in the order that molecules have it."""
    try:
        return str(parse_formula(formula))
    except MoleculeError as error:
        raise AnnotationError(f"formula {formula[:40]!r}: {error}") from error


def distinct(molecules: Iterable[Molecule]) -> list[Molecule]:
    """Molecules of one key as one, with the names and sources of all, in an order of their own.

    Spellings, tautomers of one skeleton and stereoisomers cannot be told apart here. The order is
    by key, so that no order of a file shows.

    Examples
    --------
    >>> one = Molecule("CCO", "LFQSCWFLJHTTHZ", "C2H6O", 46.04, sources=("a",))
    >>> [each.sources for each in distinct([one, replace(one, sources=("b",))])]
    [('a', 'b')]
    """
    found: dict[str, list[Molecule]] = {}
    for molecule in molecules:
        found.setdefault(molecule.key or molecule.smiles, []).append(molecule)
    return [_merged(found[key]) for key in sorted(found)]


def _merged(same: Sequence[Molecule]) -> Molecule:
    if len(same) == 1:
        return same[0]
    first = min(same, key=lambda each: (len(each.smiles), each.smiles))
    names = [each.name for each in sorted(same, key=lambda each: each.smiles) if each.name]
    return replace(
        first,
        name=first.name or (names[0] if names else ""),
        sources=tuple(dict.fromkeys(s for each in same for s in each.sources)),
        identifiers=tuple(dict.fromkeys(i for each in same for i in each.identifiers)),
    )
