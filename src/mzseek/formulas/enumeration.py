"""Enumerate the formulas of a mass: element counts under rules of valence, ratio and size.

Counts are the columns of an integer array in the order of `ELEMENTS`. The kernel walks
through the counts of the other elements; carbon and hydrogen follow from the mass that is left: its
fraction grows by 7.8 mDa with each hydrogen, so that few counts remain to be tried.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import ELEMENT_MASSES
from mzseek.chem.formulas import Formula
from mzseek.core.compiled import always_compiled
from mzseek.core.errors import MoleculeError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ELEMENTS = ("C", "H", "N", "O", "P", "S", "F", "Cl", "Br", "I", "Si", "B", "Se", "Na", "K")
DEFAULT_ELEMENTS = ELEMENTS[:10]
_SELENIUM = 79.9165213  # not among the elements of adducts
MASSES = np.array([ELEMENT_MASSES.get(name, _SELENIUM) for name in ELEMENTS])
# Twice the rings and double bonds (RDBE) of a molecule are 2 and these for each atom: the valence
# less 2. Nitrogen and phosphorus count as trivalent: nitro groups and phosphates are written so.
VALENCES = np.array([2, -1, 1, 0, 1, 0, -1, -1, -1, -1, 2, 1, 0, -1, -1])
_INDEX = {name: at for at, name in enumerate(ELEMENTS)}
_MINOR = np.array([name in ("P", "S", "F", "Cl", "Br", "I") for name in ELEMENTS])
_HILL = sorted(ELEMENTS, key=lambda name: (name != "C", name != "H", name))

# Most atoms of an element in the molecules of public databases (2.2 million), by mass in Da.
_MOST_ATOMS = {
    250.0: (20, 42, 10, 10, 4, 6, 10, 6, 3, 2, 5, 10, 2, 2, 2),
    500.0: (39, 84, 15, 18, 5, 8, 18, 10, 5, 3, 8, 10, 4, 3, 3),
    750.0: (60, 120, 18, 28, 8, 8, 28, 12, 6, 4, 10, 10, 6, 4, 4),
    1000.0: (78, 160, 25, 38, 9, 9, 36, 12, 9, 6, 14, 10, 6, 4, 4),
    math.inf: (160, 320, 48, 78, 9, 14, 48, 14, 10, 9, 15, 10, 6, 6, 6),
}
# Most atoms of an element for each carbon (Kind and Fiehn, BMC Bioinformatics 2007, 8:105, rules 4
# and 5, the extended ranges).
_RATIOS = np.array([1.0, 6.0, 4.0, 3.0, 2.0, 3.0, 6.0, 3.0, 3.0, 2.0, 1.0, 2.0, 2.0, 2.0, 2.0])
MAX_MINOR = 7
# Most atoms other than C and H for each carbon, of small molecules and of larger ones: of those
# databases, one molecule in 10,000 has more.
_SMALL, _MOST_HETERO = 250.0, (8.0, 3.0)
MAX_FORMULAS = 200_000  # of one mass: beyond it the tolerance tells nothing
MAX_MASS = 2_000.0
MAX_WIDTH = 0.1  # Da, of the range of masses


@dataclass(frozen=True)
class FormulaRule:
    """A condition that the formula of a molecule must meet.

    Attributes
    ----------
    name : str
    reason : str
        Why a formula that does not meet it is left out.
    """

    name: str
    reason: str


RULES: Mapping[str, FormulaRule] = {
    name: FormulaRule(name, reason)
    for name, reason in {
        "carbon": "no carbon",
        "valence": "more atoms of one bond than the others can bind",
        "electrons": "an odd number of electrons",
        "size": "more atoms of an element than molecules of its mass have",
        "ratio": "more atoms of an element for each carbon than molecules have",
        "hetero": "more atoms other than C and H for each carbon than molecules have",
        "minor": f"more than {MAX_MINOR} atoms of P, S, F, Cl, Br and I besides the commonest",
    }.items()
}


def element_limits(mass: float, elements: Sequence[str] = DEFAULT_ELEMENTS) -> Ints:
    """Return the most atoms of each element of `ELEMENTS` in a molecule of a mass.

    Raises
    ------
    MoleculeError
        An element cannot be enumerated.
    """
    for name in elements:
        if name not in _INDEX:
            raise MoleculeError(f"element {name!r}: expected {', '.join(ELEMENTS)}")
    most = next(counts for upper, counts in _MOST_ATOMS.items() if mass <= upper)
    allowed = [n if name in elements else 0 for name, n in zip(ELEMENTS, most, strict=True)]
    return np.asarray(np.minimum(np.array(allowed), (mass / MASSES).astype(np.int64) + 1))


def parse_elements(text: str) -> tuple[str, ...]:
    """Read elements: ``CHNOS`` or ``C,H,N,O,S``; with a + before them, beside the default ones.

    Raises
    ------
    MoleculeError
        One of them cannot be enumerated, or carbon or hydrogen is missing.

    Examples
    --------
    >>> parse_elements("CHNOCl"), parse_elements("+Si,Se")[-2:]
    (('C', 'H', 'N', 'O', 'Cl'), ('Si', 'Se'))
    """
    plain = text.strip().removeprefix("+").replace(",", " ")
    names = re.findall(r"[A-Z][a-z]?", plain)
    if "".join(names) != "".join(plain.split()) or not set(names) <= set(ELEMENTS):
        raise MoleculeError(f"elements {text[:40]!r}: expected some of {', '.join(ELEMENTS)}")
    chosen = {*names, *(DEFAULT_ELEMENTS if text.strip().startswith("+") else ())}
    if not {"C", "H"} <= chosen:
        raise MoleculeError(f"elements {text[:40]!r}: expected C and H among them")
    return tuple(name for name in ELEMENTS if name in chosen)


def enumerate_formulas(
    mass: float,
    reach: float,
    elements: Sequence[str] = DEFAULT_ELEMENTS,
    *,
    charged: bool = False,
) -> Ints:
    """Enumerate the formulas of molecules of a mass that meet all `RULES`.

    Parameters
    ----------
    mass, reach : float
        Monoisotopic mass of the atoms, and how far it may be off.
    elements : sequence of str
        Of `ELEMENTS`.
    charged : bool
        Formulas of an odd number of electrons instead, which a permanent charge makes even.

    Returns
    -------
    int64 array, shape (formulas, elements)
        By rising mass.

    Raises
    ------
    MoleculeError
        The mass is too large, or the tolerance too wide, to distinguish formulas.

    Examples
    --------
    >>> [formula_text(counts) for counts in enumerate_formulas(180.0634, 0.0005, "CHNO")]
    ['C6H12O6']
    """
    if not 0 < mass <= MAX_MASS:
        raise MoleculeError(f"mass {mass:g}: formulas are enumerated up to {MAX_MASS:,.0f} Da")
    if 2 * reach > MAX_WIDTH * (1 + 1e-9):  # 0.05 Da is not refused for its rounding
        raise MoleculeError(
            f"a tolerance of {reach:.4g} Da is too wide (formulas are enumerated within "
            f"{MAX_WIDTH / 2:g} Da or less)"
        )
    limits = element_limits(mass, elements)
    found, number = _enumerated(
        mass - reach, mass + reach, limits, -int(charged), int(charged), True
    )
    if number > len(found):
        raise MoleculeError(
            f"mass {mass:.4f} has {number:,} formulas within {reach * 1e6 / mass:.1f} ppm, "
            f"expected at most {MAX_FORMULAS:,}: narrow the tolerance"
        )
    return found[np.argsort(found @ MASSES, kind="stable")]


def parts_of_mass(low: float, high: float, limits: Ints, least_rdbe: int) -> Ints:
    """Enumerate what may be a part of a molecule: by element limits and twice the least RDBE."""
    found, _ = _enumerated(low, high, limits, least_rdbe, -1, False)
    return found


def _enumerated(
    low: float, high: float, limits: Ints, least_rdbe: int, parity: int, is_molecule: bool
) -> tuple[Ints, int]:
    capacity = 4_096
    while True:
        found = np.zeros((capacity, len(ELEMENTS)), np.int64)
        number = _enumerate(
            max(low, 0.0), high, limits, least_rdbe, parity, is_molecule,
            MASSES, VALENCES, _RATIOS, _MINOR, MAX_MINOR, _most_hetero(high), found,
        )  # fmt: skip
        if number <= capacity or capacity >= MAX_FORMULAS:
            return found[: min(number, capacity)], int(number)
        capacity = min(4 * capacity, MAX_FORMULAS)


@always_compiled
def _enumerate(
    low: float,
    high: float,
    limits: Ints,
    least_rdbe: int,
    parity: int,
    is_molecule: bool,
    masses: Floats,
    valences: Ints,
    ratios: Floats,
    minor: npt.NDArray[np.bool_],
    most_minor: int,
    most_hetero: float,
    found: Ints,
) -> int:
    """Fill `found` with counts whose mass is from `low` to `high`; return how many there are."""
    elements, capacity, number = len(limits), len(found), 0
    counts = np.zeros(elements, np.int64)
    defect, width = masses[1] - 1.0, high - low
    per_hydrogen = 1.0 / defect
    while True:
        # A combination of all elements but C, H, N and O.
        used, rdbe_used, atoms, commonest, needed, hetero = 0.0, 2, 0, 0, 1.0, 0
        for at in range(4, elements):
            used += counts[at] * masses[at]
            rdbe_used += valences[at] * counts[at]
            hetero += counts[at]
            needed = max(needed, counts[at] / ratios[at])  # carbons
            if minor[at]:
                atoms += counts[at]
                commonest = max(commonest, counts[at])
        is_possible = used <= high
        if is_molecule and is_possible:
            needed = max(needed, hetero / most_hetero)
            is_possible = atoms - commonest <= most_minor and used + 12.0 * needed <= high
        if is_possible:
            for nitrogens in range(limits[2] + 1):
                with_nitrogen = used + nitrogens * masses[2]
                least_mass = with_nitrogen
                if is_molecule:
                    least_mass += 12.0 * (hetero + nitrogens) / most_hetero
                if least_mass > high:
                    break
                for oxygens in range(limits[3] + 1):
                    rest_high = high - with_nitrogen - oxygens * masses[3]
                    if rest_high < 0.0:
                        break
                    if is_molecule and rest_high * most_hetero < 12.0 * (
                        hetero + nitrogens + oxygens
                    ):
                        break
                    nominal = int(rest_high)
                    while nominal >= 0:
                        fraction = rest_high - nominal
                        most = int(fraction * per_hydrogen)
                        if most * defect < fraction - width and most < limits[1]:
                            nominal -= 1
                            continue
                        least = max(math.ceil((fraction - width) * per_hydrogen), 0)
                        if least > limits[1] or least > nominal:
                            break
                        for hydrogens in range(least, min(most, nominal, limits[1]) + 1):
                            if (nominal - hydrogens) % 12:
                                continue
                            carbons = (nominal - hydrogens) // 12
                            rdbe = rdbe_used + 2 * carbons - hydrogens + nitrogens
                            if rdbe < least_rdbe or carbons > limits[0]:
                                continue
                            if parity >= 0 and (rdbe & 1) != parity:
                                continue
                            if is_molecule and (
                                carbons < needed
                                or hydrogens > ratios[1] * carbons
                                or nitrogens > ratios[2] * carbons
                                or oxygens > ratios[3] * carbons
                                or hetero + nitrogens + oxygens > most_hetero * carbons
                            ):
                                continue
                            if number < capacity:
                                found[number] = counts
                                found[number, 0] = carbons
                                found[number, 1] = hydrogens
                                found[number, 2] = nitrogens
                                found[number, 3] = oxygens
                            number += 1
                        nominal -= 1
        # The next combination; elements whose next atom makes it too heavy begin again.
        at = 4
        while at < elements:
            counts[at] += 1
            used += masses[at]
            if is_possible and counts[at] <= limits[at] and used <= high:
                break
            used -= counts[at] * masses[at]
            counts[at] = 0
            at += 1
            is_possible = True
        if at == elements:
            return number


def _most_hetero(mass: float) -> float:
    return _MOST_HETERO[int(mass > _SMALL)]


def counts_of(formula: Formula) -> Ints:
    """Return the counts of a formula in the order of `ELEMENTS`.

    Raises
    ------
    MoleculeError
        It has another element.
    """
    counts = np.zeros(len(ELEMENTS), np.int64)
    for name, number in formula.counts.items():
        if name not in _INDEX:
            raise MoleculeError(f"formula {formula}: element {name} cannot be enumerated")
        counts[_INDEX[name]] = number
    return counts


def formula_text(counts: Sequence[int] | Ints, charge: int = 0) -> str:
    """Write counts in Hill order, with a charge.

    Examples
    --------
    >>> from mzseek.chem.formulas import parse_formula
    >>> formula_text(counts_of(parse_formula("O2N4H10C8")))
    'C8H10N4O2'
    """
    atoms = {name: int(counts[_INDEX[name]]) for name in _HILL if counts[_INDEX[name]]}
    return str(Formula(atoms, charge))


def twice_rdbe(counts: Ints) -> Ints:
    """Return twice the rings and double bonds of formulas."""
    return np.asarray(2 + counts @ VALENCES)


def broken_rule(formula: Formula, elements: Sequence[str] = DEFAULT_ELEMENTS) -> FormulaRule | None:
    """Return the first rule that a formula does not meet, or None.

    Examples
    --------
    >>> from mzseek.chem.formulas import parse_formula
    >>> broken_rule(parse_formula("C2H9NO")).reason
    'more atoms of one bond than the others can bind'
    >>> broken_rule(parse_formula("C8H10N4O2")) is None
    True
    """
    counts = counts_of(formula)
    rdbe = int(twice_rdbe(counts))
    tests = {
        "carbon": counts[0] == 0,
        "valence": rdbe < -abs(formula.charge),
        "electrons": (rdbe + formula.charge) % 2 == 1,
        "size": (counts > element_limits(float(counts @ MASSES), elements)).any(),
        "ratio": (counts[1:] > _RATIOS[1:] * counts[0]).any(),
        "hetero": counts[2:].sum() > _most_hetero(float(counts @ MASSES)) * counts[0],
        "minor": np.sort(counts[_MINOR])[:-1].sum() > MAX_MINOR,
    }
    return next((RULES[name] for name, is_broken in tests.items() if is_broken), None)
