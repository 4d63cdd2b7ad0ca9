"""Adduct arithmetic: m/z of an ion to the mass of the neutral molecule and back.

An adduct such as ``[2M+FA-H]-`` is a count of molecules, what was added to or lost from them,
and a charge. With molecule mass M, ``n`` molecules, mass shift ``d`` and charge ``z``,

    m/z = (n · M + d − z · mₑ) / |z|

where mₑ is the electron's mass. This module needs no RDKit, since readers of spectra use it, too.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from mzseek.core.errors import AdductError
from mzseek.core.text import shorten

ELECTRON_MASS = 0.00054857990946

# Monoisotopic masses of what adducts are made of (for each element, its most abundant isotope).
ELEMENT_MASSES = {
    "H": 1.00782503207, "Li": 7.01600455, "B": 11.0093054, "C": 12.0, "N": 14.0030740048,
    "O": 15.99491461956, "F": 18.99840322, "Na": 22.9897692809, "Mg": 23.9850417,
    "Al": 26.98153863, "Si": 27.9769265325, "P": 30.97376163, "S": 31.972071, "Cl": 34.96885268,
    "K": 38.96370668, "Ca": 39.96259098, "Mn": 54.9380451, "Fe": 55.9349375, "Co": 58.933195,
    "Ni": 57.9353429, "Cu": 62.9295975, "Zn": 63.9291422, "Br": 78.9183371, "Rb": 84.911789738,
    "Ag": 106.905097, "I": 126.904473, "Cs": 132.905451933,
}  # fmt: skip

# What chemists write instead of a formula.
_ABBREVIATIONS = {
    "FA": "CH2O2", "HFA": "CH2O2", "ACN": "C2H3N", "MeOH": "CH4O", "EtOH": "C2H6O",
    "IsoProp": "C3H8O", "DMSO": "C2H6OS", "TFA": "C2HF3O2", "HAc": "C2H4O2", "Hac": "C2H4O2",
    "AcOH": "C2H4O2", "Ac": "C2H3O2", "OAc": "C2H3O2",
}  # fmt: skip

# The charge a part brings along, where chemistry leaves no choice. Parts not listed (a lost
# methyl may leave as radical or cation) put no constraint on the adduct's charge.
_PART_CHARGES = {
    "H": 1, "Li": 1, "Na": 1, "K": 1, "Rb": 1, "Cs": 1, "Ag": 1, "NH4": 1, "Mg": 2, "Ca": 2,
    "F": -1, "Cl": -1, "Br": -1, "I": -1, "HCOO": -1, "CHO2": -1, "CH3COO": -1, "Ac": -1,
    "OAc": -1,
    "H2O": 0, "NH3": 0, "CO": 0, "CO2": 0, "FA": 0, "HFA": 0, "HCOOH": 0, "CH2O2": 0, "ACN": 0,
    "C2H3N": 0, "CH3CN": 0, "MeOH": 0, "CH3OH": 0, "CH4O": 0, "EtOH": 0, "IsoProp": 0, "DMSO": 0,
    "TFA": 0, "HAc": 0, "Hac": 0, "AcOH": 0, "CH3COOH": 0, "C2H4O2": 0,
}  # fmt: skip

# The names under which adducts are reported; any other spelling of the same ion is turned into
# the one listed here.
_KNOWN = (
    "[M+H]+", "[M+Na]+", "[M+K]+", "[M+NH4]+", "[M+Li]+", "[M+H-H2O]+", "[M+H-2H2O]+",
    "[M+H-NH3]+", "[M+ACN+H]+", "[M+MeOH+H]+", "[M+2Na-H]+", "[M+2H]2+", "[M+H+Na]2+",
    "[M+3H]3+", "[2M+H]+", "[2M+Na]+", "[2M+NH4]+", "[M]+", "[M-H]-", "[M+Cl]-", "[M+Br]-",
    "[M+FA-H]-", "[M+HAc-H]-", "[M+TFA-H]-", "[M-H-H2O]-", "[M+Na-2H]-", "[M+K-2H]-",
    "[M-2H]2-", "[2M-H]-", "[2M+FA-H]-", "[M]-",
)  # fmt: skip
_EXPECTED = "expected one like " + ", ".join(_KNOWN)

# What is tried where a file names no ion, by charge, the commonest first. Of those without a part
# that brings the charge ([M]+), only molecules with a permanent charge are candidates.
USUAL_ADDUCTS = {
    1: ("[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M+H-H2O]+", "[M]+"),
    2: ("[M+2H]2+", "[M+H+Na]2+", "[M+H+K]2+", "[M+H+NH4]2+", "[M]2+"),
    3: ("[M+3H]3+", "[M+2H+Na]3+"),
    -1: ("[M-H]-", "[M+FA-H]-", "[M+Cl]-", "[M+HAc-H]-", "[M]-"),
    -2: ("[M-2H]2-",),
    -3: ("[M-3H]3-",),
}

_ADDUCT = re.compile(
    r"(?P<open>\[)?(?P<count>\d{0,2})M(?P<parts>(?:[+-]\d{0,2}[A-Za-z][A-Za-z0-9]{0,20}){0,8})"
    r"(?P<close>\])?[*.•]?(?P<charge>\d{0,2}[+-]|[+-]\d{1,2}|\+{1,4}|-{1,4})?[*.•]?"
)
_PART = re.compile(r"([+-])(\d*)([A-Za-z][A-Za-z0-9]*)")
_MARKS = str.maketrans({"⁺": "+", "⁻": "-", "−": "-", "(": "[", ")": "]", " ": None})
_SHORTHANDS = {"MH+": "[M+H]+", "[MH]+": "[M+H]+", "MNa+": "[M+Na]+", "MNH4+": "[M+NH4]+"}

# More of one part than any ion has: "13C" and "Cl37" mean isotopes, not thirteen or 37 atoms.
_MAX_OF_ONE = 9
_MAX_LENGTH = 200
_ATOM = re.compile(r"([A-Z][a-z]?)(\d*)")


@dataclass(frozen=True)
class Adduct:
    """An ion form: how many molecules, what mass is added, which charge.

    Attributes
    ----------
    name : str
        The usual spelling, such as ``"[M+H]+"``.
    molecules : int
        Molecules in one ion (2 in ``[2M+H]+``).
    mass_shift : float
        Mass of the atoms gained minus those lost, without electrons.
    charge : int
        Signed, never 0.
    """

    name: str
    molecules: int
    mass_shift: float
    charge: int

    @property
    def slope(self) -> float:
        """m/z gained for each unit of molecule mass: m/z = slope · M + offset."""
        return self.molecules / abs(self.charge)

    @property
    def offset(self) -> float:
        """m/z that the ion would have without the molecule."""
        return (self.mass_shift - self.charge * ELECTRON_MASS) / abs(self.charge)

    @property
    def parts(self) -> list[tuple[int, str]]:
        """What was added to the molecules (+) or lost from them (−): a signed number and a name.

        Examples
        --------
        >>> parse_adduct("[M+2Na-H]+").parts
        [(2, 'Na'), (-1, 'H')]
        """
        return _parts(self.name.partition("M")[2].partition("]")[0])

    @property
    def parts_charge(self) -> int | None:
        """Charge that the parts bring to the molecules; None where a part leaves it open.

        Examples
        --------
        >>> parse_adduct("[M+2Na-H]+").parts_charge, parse_adduct("[M]+").parts_charge
        (1, 0)
        """
        return _implied_charge(self.parts)

    def precursor_mz(self, mass: float) -> float:
        """Return the m/z of this ion of a molecule of exact mass ``mass``."""
        _require_positive(mass, "exact mass")
        mz = self.slope * mass + self.offset
        if mz <= 0:
            raise AdductError(f"{self.name} loses more than a molecule of mass {mass:.4f} has")
        return mz

    def neutral_mass(self, mz: float) -> float:
        """Return the exact mass of the molecule whose ion of this form has this m/z."""
        _require_positive(mz, "m/z")
        mass = (mz - self.offset) / self.slope
        if mass <= 0:
            raise AdductError(f"m/z {mz:.4f} is too small for {self.name}")
        return mass


def known_adducts() -> tuple[str, ...]:
    """Return the adducts that mzseek knows by name; other well-formed ones are understood."""
    return _KNOWN


def parse_adduct(text: str, mode: str | None = None) -> Adduct:
    """Read an adduct in any of its usual spellings.

    Parameters
    ----------
    text : str
        ``[M+H]+``, ``M+H`` (GNPS), ``[M+2H]++`` (MassBank), ``[M-H2O+H]+`` …
    mode : str, optional
        ``"positive"`` or ``"negative"``: the sign where the text has none.

    Raises
    ------
    AdductError
        Malformed, of an unknown part, without a charge, or chemically impossible.

    Examples
    --------
    >>> parse_adduct("M+H").name
    '[M+H]+'
    >>> parse_adduct("[M+HCOOH-H]-").name
    '[M+FA-H]-'
    >>> round(parse_adduct("[M+2H]++").precursor_mz(300.0), 4)
    151.0073
    """
    if not isinstance(text, str):
        raise AdductError(f"{text!r} is no adduct; {_EXPECTED}")
    if len(text) > _MAX_LENGTH:  # which the cache must not keep
        raise AdductError(f"{shorten(text, 40)!r} is not an adduct; {_EXPECTED}")
    return _parse(text, mode)


@lru_cache(maxsize=4096)
def _parse(text: str, mode: str | None) -> Adduct:
    shown = shorten(text, 40)
    plain = text.strip().translate(_MARKS)
    match = _ADDUCT.fullmatch(_SHORTHANDS.get(plain, plain))
    if match is None or bool(match["open"]) != bool(match["close"]):
        raise AdductError(f"{shown!r} is not an adduct; {_EXPECTED}")
    molecules = int(match["count"] or 1)
    if molecules == 0:
        raise AdductError(f"{shown!r} has no molecule in it; {_EXPECTED}")
    parts = _parts(match["parts"])
    if not match["open"] and match["charge"] and match["parts"][-1:].isdigit():
        raise AdductError(f"{shown!r} could be read in two ways: put it in brackets, [M+2H]2+")
    shift = _mass_shift(parts, shown)
    implied = _implied_charge(parts)
    if match["charge"]:
        charge = _stated_charge(match["charge"], mode)
    elif implied:
        charge = implied
        if mode is not None and (implied > 0) != (mode == "positive"):
            raise AdductError(f"{shown!r} contradicts {mode} ion mode")
    elif mode is not None and not parts:
        charge = 1 if mode == "positive" else -1
    else:
        raise AdductError(f"{shown!r} states no charge; {_EXPECTED}")
    if implied is not None and charge != implied:
        # Hydride abstraction ([M-H]+, [M-2H]-), radicals, and molecules that are ions themselves
        # ([M]+, [M]2+, [M-H2O]+) have a charge that no part brings along.
        if all(part == "H" and number < 0 for number, part in parts):
            is_possible = abs(charge) <= (1 if parts else 2)
        else:
            is_possible = implied == 0 and abs(charge) == 1
        if not is_possible:
            raise AdductError(f"{shown!r} is impossible: its parts make no charge of {charge:+d}")
    for usual in _known_by_charge().get((molecules, charge), ()):
        if abs(usual.mass_shift - shift) < 1e-6:
            return Adduct(usual.name, molecules, shift, charge)
    body = "".join(
        ("+" if number > 0 else "-") + (str(abs(number)) if abs(number) > 1 else "") + part
        for number, part in parts
    )
    size = "" if abs(charge) == 1 else str(abs(charge))
    count = "" if molecules == 1 else str(molecules)
    name = f"[{count}M{body}]{size}{'+' if charge > 0 else '-'}"
    return Adduct(name, molecules, shift, charge)


def atoms_of(part: str, text: str = "") -> dict[str, int]:
    """Count the atoms of each element in a part of an adduct, such as ``FA`` or ``H2O``."""
    formula = _ABBREVIATIONS.get(part, part)
    symbols = _ATOM.findall(formula)
    is_formula = "".join(symbol + number for symbol, number in symbols) == formula
    atoms: Counter[str] = Counter()
    for symbol, number in symbols:
        if not is_formula or symbol not in ELEMENT_MASSES or number.startswith("0"):
            is_formula = False
            break
        if int(number or 1) > (99 if symbol in "CHNO" else _MAX_OF_ONE):
            raise AdductError(f"{text or part!r} has {part!r} in it; isotopes are not understood")
        atoms[symbol] += int(number or 1)
    if not is_formula:
        raise AdductError(f"{text or part!r} has the unknown part {part!r}; {_EXPECTED}")
    return atoms


def precursor_mz(mass: float, adduct: str) -> float:
    """Return the m/z of the ``adduct`` ion of a molecule of exact mass ``mass``.

    Examples
    --------
    >>> round(precursor_mz(194.0804, "[M+H]+"), 4)
    195.0877
    """
    return parse_adduct(adduct).precursor_mz(mass)


def neutral_mass(mz: float, adduct: str) -> float:
    """Return the exact mass of the molecule whose ``adduct`` ion has this m/z."""
    return parse_adduct(adduct).neutral_mass(mz)


def fitting_adducts(
    mz: float, mass: float, ppm: float, charge: int | None = None, mode: str | None = None
) -> list[Adduct]:
    """Return the known adducts whose ion of a molecule of mass `mass` is within `ppm` of `mz`.

    The signed `charge` and the `mode` (``"positive"``, ``"negative"``) narrow the choice, where
    they are known.

    Examples
    --------
    >>> [adduct.name for adduct in fitting_adducts(195.0877, 194.0804, 10.0)]
    ['[M+H]+']
    """
    _require_positive(mz, "m/z")
    _require_positive(mass, "exact mass")
    return [
        adduct
        for group in _known_by_charge().values()
        for adduct in group
        if (charge is None or adduct.charge == charge)
        and (mode is None or (adduct.charge > 0) == (mode == "positive"))
        and abs(adduct.slope * mass + adduct.offset - mz) <= ppm * 1e-6 * mz
    ]


def _require_positive(value: float, what: str) -> None:
    try:
        positive = math.isfinite(value) and value > 0
    except TypeError:
        positive = False
    if not positive:
        raise AdductError(f"{what} {value!r} is not a positive number")


def _parts(text: str) -> list[tuple[int, str]]:
    """Return signed number and name of each part."""
    return [
        ((1 if sign == "+" else -1) * int(number or 1), part)
        for sign, number, part in _PART.findall(text)
    ]


def _mass_shift(parts: list[tuple[int, str]], shown: str) -> float:
    for number, part in parts:
        if number == 0:
            raise AdductError(f"{shown!r} has 0 of {part}; {_EXPECTED}")
        if abs(number) > _MAX_OF_ONE:
            raise AdductError(f"{shown!r} has {abs(number)} of {part}; isotopes are not understood")
    atoms: Counter[str] = Counter()
    for number, part in parts:
        for symbol, count in atoms_of(part, shown).items():
            atoms[symbol] += number * count
    # By element, not by part: one ion in two spellings has one mass, to the last digit.
    return sum(atoms[symbol] * mass for symbol, mass in ELEMENT_MASSES.items() if atoms[symbol])


def _stated_charge(text: str, mode: str | None) -> int:
    sign = 1 if "+" in text else -1
    digits = text.strip("+-")
    size = int(digits) if digits else len(text)
    if size == 0:
        raise AdductError("a charge of 0 makes no ion")
    if mode is not None and sign != (1 if mode == "positive" else -1):
        raise AdductError(f"charge {text} contradicts {mode} ion mode")
    return sign * size


def _implied_charge(parts: list[tuple[int, str]]) -> int | None:
    """Return the charge that the parts bring along, or None where one of them leaves it open."""
    if any(part not in _PART_CHARGES for _, part in parts):
        return None
    return sum(number * _PART_CHARGES[part] for number, part in parts)


@lru_cache(maxsize=1)
def _known_by_charge() -> dict[tuple[int, int], list[Adduct]]:
    table: dict[tuple[int, int], list[Adduct]] = {}
    for name in _KNOWN:
        match = _ADDUCT.fullmatch(name)
        assert match is not None, name
        molecules, charge = int(match["count"] or 1), _stated_charge(match["charge"], None)
        shift = _mass_shift(_parts(match["parts"]), name)
        table.setdefault((molecules, charge), []).append(Adduct(name, molecules, shift, charge))
    return table
