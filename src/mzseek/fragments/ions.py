"""Which ions a piece can be seen as, given the ion that was broken.

A piece of mass m that took up h hydrogens (or lost them) and carries an atom of mass c that made
the molecule an ion (sodium, chloride …) is seen at

    m/z = (m + c + h · mH − z · mₑ) / |z|

for each charge z up to that of the ion that was broken, of the same sign. What is bound loosely
(ammonia, formic acid, a second molecule) leaves first, and no piece carries it.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt
from rdkit.Chem import GetPeriodicTable

from mzseek.adducts import ELECTRON_MASS, Adduct, parse_adduct, parts_of
from mzseek.fragments.graph import HYDROGEN, PER_DALTON, nano_mass

MOST_HYDROGENS = 4
SHIFTS = 2 * MOST_HYDROGENS + 1
# Atoms that stay with a piece as often as they go.
_CARRIED = ("Li", "Na", "K", "Rb", "Cs", "Ag", "Mg", "Ca", "F", "Cl", "Br", "I")


@dataclass(frozen=True, eq=False)
class IonForms:
    """Ions that a piece can be seen as, one a row.

    Attributes
    ----------
    charges : int64 array
        Signed.
    hydrogens : int64 array
        Taken up (+) or lost (−).
    carried : tuple of tuples of str
        Symbols of atoms that the piece carries.
    shifts : float64 array
        What is added to the piece's mass before it is divided by the charge.
    electrons : int64 array
        What is added to the piece's electrons; the sum is odd for a radical.
    """

    charges: npt.NDArray[np.int64]
    hydrogens: npt.NDArray[np.int64]
    carried: tuple[tuple[str, ...], ...]
    shifts: npt.NDArray[np.float64]
    electrons: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.charges)


def ion_forms(adduct: str | Adduct) -> IonForms:
    """Ions that pieces of an ion of this form can be seen as.

    Examples
    --------
    >>> forms = ion_forms("[M+Na]+")
    >>> sorted(set(forms.carried)), len(forms)
    ([(), ('Na',)], 18)
    """
    return _forms(parse_adduct(adduct) if isinstance(adduct, str) else adduct)


@lru_cache(maxsize=512)
def _forms(adduct: Adduct) -> IonForms:
    most = [(part, number) for number, part in parts_of(adduct) if part in _CARRIED and number > 0]
    loads = [
        tuple(symbol for (symbol, _), taken in zip(most, count, strict=True) for _ in range(taken))
        for count in product(*(range(number + 1) for _, number in most))
    ]
    sign = 1 if adduct.charge > 0 else -1
    rows = [
        (sign * size, hydrogens, load)
        for size in range(1, abs(adduct.charge) + 1)
        for load in loads
        for hydrogens in range(-MOST_HYDROGENS, MOST_HYDROGENS + 1)
    ]
    number = GetPeriodicTable().GetAtomicNumber
    return IonForms(
        np.array([charge for charge, _, _ in rows]),
        np.array([hydrogens for _, hydrogens, _ in rows]),
        tuple(load for _, _, load in rows),
        np.array([_shift(*row) for row in rows]),
        np.array([h - charge + sum(map(number, load)) for charge, h, load in rows]),
    )


def _shift(charge: int, hydrogens: int, load: tuple[str, ...]) -> float:
    number = GetPeriodicTable().GetAtomicNumber
    atoms = hydrogens * nano_mass(HYDROGEN) + sum(nano_mass(number(symbol)) for symbol in load)
    return atoms / PER_DALTON - charge * ELECTRON_MASS
