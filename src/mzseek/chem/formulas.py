"""Molecular formulas as people write them: any order, any case where it leaves no choice."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from rdkit import Chem

from mzseek.chem.adducts import ELECTRON_MASS
from mzseek.core.errors import MoleculeError
from mzseek.core.text import shorten

_ELEMENTS = frozenset(Chem.GetPeriodicTable().GetElementSymbol(n) for n in range(1, 119))
# Up to uranium: what comes behind it is in no collection of molecules, so that the "no" of
# "c9h11no2" is nitrogen and oxygen, not nobelium.
_USUAL = frozenset(Chem.GetPeriodicTable().GetElementSymbol(n) for n in range(1, 93))
_ISOTOPES = frozenset("DT")
_ATOM = re.compile(r"([A-Z][a-z]?)(\d*)")
_LETTERS = re.compile(r"([A-Za-z]+)(\d*)")
_CHARGE = re.compile(r"(\++|-+|[+-]\d{1,2})$")
_SMALL = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋⁺⁻−", "0123456789+-+--")
_MAX_LENGTH = 200
_MAX_ATOMS = 100_000
_MAX_READINGS = 1_000


@dataclass(frozen=True)
class Formula:
    """Number of atoms of each element of a molecule, and its charge."""

    counts: Mapping[str, int]
    charge: int = 0

    @property
    def mass(self) -> float:
        """Monoisotopic, without isotope labels; electrons are counted, as RDKit does."""
        table = Chem.GetPeriodicTable()
        atoms = sum(n * table.GetMostCommonIsotopeMass(s) for s, n in self.counts.items())
        return float(atoms - self.charge * ELECTRON_MASS)

    def __str__(self) -> str:
        """Write Hill order as RDKit does: carbon, hydrogen, then the alphabet, and the charge."""
        first = [symbol for symbol in ("C", "H") if symbol in self.counts]
        order = [*first, *sorted(set(self.counts) - set(first))]
        atoms = "".join(s + (str(self.counts[s]) if self.counts[s] > 1 else "") for s in order)
        if not self.charge:
            return atoms
        size = abs(self.charge)
        return atoms + ("+" if self.charge > 0 else "-") + (str(size) if size > 1 else "")


def parse_formula(text: str) -> Formula:
    """Parse a formula in any order: ``C8H10N4O2``, ``O2N4H10C8``, ``c8h10n4o2``, ``CH3CH2OH``.

    Read as it is written first: ``CO`` is carbon monoxide and ``Co`` is cobalt. Where that gives
    unknown elements, and all letters are small or all are capitals, case is ignored, if only one
    formula comes of it.

    Blanks and small digits (C₆H₆) are understood, and a charge at the end (``C5H14NO+``, two of
    them ``+2``). Raises `MoleculeError` for one that is empty, holds an unknown element or an
    isotope, or can be read in two ways.

    Examples
    --------
    >>> str(parse_formula("O2N4H10C8")), str(parse_formula("c8h10n4o2")), str(parse_formula("NACL"))
    ('C8H10N4O2', 'C8H10N4O2', 'ClNa')
    >>> parse_formula("co")
    Traceback (most recent call last):
    ...
    mzseek.core.errors.MoleculeError: formula 'co' can be read as CO or Co; write capitals as they \
are
    """
    plain = "".join(str(text).translate(_SMALL).split())
    shown = repr(shorten(plain, 40))
    if not plain:
        raise MoleculeError("the formula is empty")
    if len(plain) > _MAX_LENGTH:
        raise MoleculeError(f"formula {shown} has {len(plain):,} characters, at most {_MAX_LENGTH}")
    atoms, charge = plain, 0
    if end := _CHARGE.search(plain):
        size = int(end[1][1:]) if end[1][1:].isdecimal() else len(end[1])
        atoms, charge = plain[: end.start()], size if end[1][0] == "+" else -size
    if "[" in atoms or "^" in atoms:
        raise MoleculeError(f"formula {shown} names isotopes; give the elements alone")
    if other := re.sub(r"[A-Za-z0-9]", "", atoms):
        raise MoleculeError(
            f"formula {shown} holds {other[0]!r}, expected elements and numbers such as C8H10N4O2"
        )
    if not atoms or atoms[0].isdecimal():
        raise MoleculeError(f"formula {shown} does not begin with an element")
    exact = _ATOM.findall(atoms)
    if "".join(s + n for s, n in exact) == atoms and all(s in _ELEMENTS for s, _ in exact):
        return Formula(_element_counts(exact, shown), charge)
    is_one_case = atoms == atoms.lower() or atoms == atoms.upper()
    readings = _distinct(_readings(atoms), shown) if is_one_case else []
    if len(readings) > 1:
        listed = " or ".join(str(Formula(counts, charge)) for counts in readings)
        raise MoleculeError(f"formula {shown} can be read as {listed}; write capitals as they are")
    if not readings or "D" in readings[0]:
        raise MoleculeError(f"formula {shown} {_unknown(atoms)}")
    return Formula(readings[0], charge)


def _element_counts(atoms: list[tuple[str, str]], shown: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for symbol, number in atoms:
        size = int(number or 1) if len(number) <= 6 else _MAX_ATOMS + 1
        counts[symbol] = counts.get(symbol, 0) + size
        if size == 0 or counts[symbol] > _MAX_ATOMS:
            raise MoleculeError(
                f"formula {shown} has {number[:12]} of {symbol}, expected 1 to {_MAX_ATOMS:,}"
            )
    return counts


def _readings(atoms: str) -> Iterator[list[tuple[str, str]]]:
    """Yield ways to read letters of any case as elements, at most `_MAX_READINGS`."""
    ways: list[list[list[tuple[str, str]]]] = []
    for letters, number in _LETTERS.findall(atoms):
        split = islice(_symbols(letters), _MAX_READINGS)
        ways.append([[*((s, "") for s in symbols[:-1]), (symbols[-1], number)]
                     for symbols in split])  # fmt: skip
    for chosen in islice(product(*ways), _MAX_READINGS):
        yield [atom for way in chosen for atom in way]


def _symbols(letters: str) -> Iterator[list[str]]:
    """Yield ways to cut letters into symbols of elements, single letters first."""
    ends = {len(letters)}  # positions from which the rest can be cut
    for start in range(len(letters) - 1, -1, -1):
        if any(_symbol(letters, start, n) and start + n in ends for n in (1, 2)):
            ends.add(start)
    pending: list[tuple[int, list[str]]] = [(0, [])]
    while pending:
        start, symbols = pending.pop()
        if start == len(letters):
            yield symbols
            continue
        for n in (2, 1):  # the last that is put there is taken first
            symbol = _symbol(letters, start, n)
            if symbol and start + n in ends:
                pending.append((start + n, [*symbols, symbol]))


def _symbol(letters: str, start: int, size: int) -> str:
    """Return the element of ``size`` letters from a position; empty if there is none."""
    text = letters[start : start + size].capitalize()
    # CD4 may be meant as deuterated: not a reading to give, but one that leaves a choice.
    return text if len(text) == size and (text in _USUAL or text == "D") else ""


def _distinct(readings: Iterator[list[tuple[str, str]]], shown: str) -> list[dict[str, int]]:
    """Return the first two formulas that differ."""
    seen: list[dict[str, int]] = []
    for reading in readings:
        counts = _element_counts(reading, shown)
        if counts not in seen:
            seen.append(counts)
        if len(seen) == 2:
            break
    return seen


def _unknown(atoms: str) -> str:
    symbols = [symbol for symbol, _ in _ATOM.findall(atoms if atoms != atoms.lower() else "")]
    if _ISOTOPES & set(symbols) or "d" in atoms:
        return "names isotopes of hydrogen; give the elements alone"
    unknown = next((s for s in symbols if s not in _ELEMENTS), None)
    if unknown is None:
        return "is no row of elements and numbers such as C8H10N4O2"
    return f"has the unknown element {unknown!r}"
