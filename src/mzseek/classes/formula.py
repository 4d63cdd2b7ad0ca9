"""From a molecular formula to its class: the classes of labelled molecules of similar formulas."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mzseek.chem.formulas import parse_formula
from mzseek.classes.taxonomy import Floats, Ints
from mzseek.core.errors import MoleculeError

ELEMENTS = ("C", "H", "N", "O", "S", "P", "F", "Cl", "Br", "Si")
WIDTH = 0.7  # of the Gaussian kernel, in the units of `coordinates`
# Weights of the coordinates: a step of one changes the class about equally, whichever it is of.
_CARBON, _HYDROGEN, _RINGS = 2.5, 5.0, 2.0
_ATOMS = (2.5, 2.5, 4.0, 5.0, 2.0, 1.5, 1.5, 4.0)


@lru_cache(maxsize=100_000)
def composition(formula: str) -> tuple[int, ...]:
    """Count the atoms of the `ELEMENTS` in a formula; others are passed over.

    Empty for a formula that cannot be read, such as one with isotopes.

    Examples
    --------
    >>> composition("C8H10N4O2"), composition("[13C]H4")
    ((8, 10, 4, 2, 0, 0, 0, 0, 0, 0), ())
    """
    try:
        atoms = parse_formula(formula).counts
    except MoleculeError:
        return ()
    return tuple(atoms.get(element, 0) for element in ELEMENTS)


def coordinates(compositions: Sequence[Sequence[int]] | Ints) -> Floats:
    """Return coordinates of formulas, shape (formulas, 11): near ones tend to be of one class.

    Carbon, hydrogen per carbon, rings and double bonds, and each heteroatom, on scales on which
    many atoms differ less than few.
    """
    counts = np.asarray(compositions, np.float64).reshape(-1, len(ELEMENTS))
    carbon, hydrogen = counts[:, 0], counts[:, 1]
    halogens = counts[:, 6:9].sum(1)
    rings = carbon + counts[:, 9] - (hydrogen + halogens) / 2 + (counts[:, 2] + counts[:, 5]) / 2
    return np.column_stack(
        [
            _CARBON * np.log1p(carbon),
            _HYDROGEN * hydrogen / np.maximum(carbon, 1),
            _RINGS * np.log1p(np.maximum(rings + 1, 0)),
            *(weight * np.sqrt(counts[:, at + 2]) for at, weight in enumerate(_ATOMS)),
        ]
    )


def formula_votes(at: Floats, labelled: Floats) -> Floats:
    """Return how much each labelled molecule counts for a formula: a Gaussian kernel of `WIDTH`.

    Parameters
    ----------
    at : float64 array, shape (11,)
        `coordinates` of the formula.
    labelled : float64 array, shape (molecules, 11)
    """
    return np.asarray(np.exp(((labelled - at) ** 2).sum(1) / (-2 * WIDTH**2)))
