"""Enumeration of formulas against a plain loop, and its rules."""

import math

import numpy as np
import pytest

from mzseek.chem.formulas import Formula, parse_formula
from mzseek.core.errors import MoleculeError
from mzseek.formulas import (
    ELEMENTS,
    RULES,
    broken_rule,
    enumerate_formulas,
    formula_text,
    parse_elements,
)
from mzseek.formulas.enumeration import MASSES, counts_of, parts_of_mass, twice_rdbe


def by_loop(mass: float, reach: float) -> set[str]:
    """All formulas of C, H, N, O, S and Cl that meet the rules, tried one by one."""
    found = set()
    for c in range(1, int(mass / 12) + 1):
        for n in range(int(mass / 14) + 1):
            for o in range(int(mass / 16) + 1):
                for s in range(4):
                    for cl in range(4):
                        counts = np.array([c, 0, n, o, 0, s, 0, cl, 0, 0, 0, 0, 0, 0, 0])
                        rest = mass - counts @ MASSES
                        h = round(rest / MASSES[1])
                        if h < 0 or abs(rest - h * MASSES[1]) > reach:
                            continue
                        atoms = {"C": c, "H": h, "N": n, "O": o, "S": s, "Cl": cl}
                        formula = Formula({e: k for e, k in atoms.items() if k})
                        if broken_rule(formula) is None:
                            found.add(str(formula))
    return found


@pytest.mark.parametrize(("mass", "reach"), [(180.0634, 0.002), (212.04, 0.003), (94.042, 0.0005)])
def test_formulas_are_those_of_a_plain_loop(mass: float, reach: float) -> None:
    counts = enumerate_formulas(mass, reach, ("C", "H", "N", "O", "S", "Cl"))
    few = counts[(counts[:, 5] < 4) & (counts[:, 7] < 4)]
    assert {formula_text(row) for row in few} == by_loop(mass, reach)
    assert (np.diff(counts @ MASSES) >= 0).all()
    assert (np.abs(counts @ MASSES - mass) <= reach).all()


KNOWN = [
    "C8H10N4O2", "C6H12O6", "C12H8F3N5O3S", "C8HF15O2", "C12H22O11", "C14H9Cl5", "C9H11IN2O5",
    "C15H24N2O17P2", "C21H36N7O16P3S", "C10H6F17O4P",
]  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_formulas_of_known_molecules_are_found(text: str) -> None:
    counts = counts_of(parse_formula(text))
    assert broken_rule(parse_formula(text)) is None
    mass = float(counts @ MASSES)
    found = enumerate_formulas(mass, mass * 1e-6)
    assert (found == counts).all(1).any()


def test_charged_molecules_have_an_odd_number_of_electrons() -> None:
    mass = float(counts_of(parse_formula("C5H14NO+")) @ MASSES)
    texts = [formula_text(row, 1) for row in enumerate_formulas(mass, 0.001, charged=True)]
    assert texts == ["C5H14NO+"]
    assert all(twice_rdbe(enumerate_formulas(mass, 0.05)) % 2 == 0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [("H2O", "carbon"), ("C2H9NO", "valence"), ("C2H6N", "electrons"), ("CO4", "ratio"),
     ("C6H12O6P6", "size"), ("C20H20Cl4F4S4", "minor"), ("C6H3N9O15", "hetero")],
)  # fmt: skip
def test_each_rule_has_a_formula_that_breaks_it(text: str, rule: str) -> None:
    assert broken_rule(parse_formula(text)) is RULES[rule]


def test_parts_are_limited_by_the_atoms_of_the_ion() -> None:
    ion = counts_of(parse_formula("C8H11N4O2"))
    parts = parts_of_mass(137.9, 138.1, ion, -1)
    assert {formula_text(row) for row in parts} >= {"C6H8N3O"}
    assert (parts <= ion).all()


@pytest.mark.parametrize("text", ["CHXx", "NOS", "+Fe", ""])
def test_elements_that_cannot_be_enumerated_are_refused(text: str) -> None:
    with pytest.raises(MoleculeError, match="elements"):
        parse_elements(text)


def test_elements_are_added_to_the_default_ones() -> None:
    assert parse_elements("+Si,B,Se,Na,K") == ELEMENTS
    mass = float(counts_of(parse_formula("C14H20FN3OSi")) @ MASSES)
    texts = {formula_text(c) for c in enumerate_formulas(mass, 0.001, parse_elements("+Si"))}
    assert "C14H20FN3OSi" in texts


@pytest.mark.parametrize(("mass", "reach"), [(2500.0, 0.01), (300.0, 0.5)])
def test_masses_that_tell_no_formula_are_refused(mass: float, reach: float) -> None:
    with pytest.raises(MoleculeError, match="formulas are enumerated"):
        enumerate_formulas(mass, reach)


def test_the_widest_tolerance_is_not_refused_for_its_rounding() -> None:
    assert len(enumerate_formulas(180.0634, math.nextafter(0.05, 1)))
