"""Isotope patterns: measured, predicted and compared."""

import numpy as np
import pytest

from mzseek.chem.formulas import parse_formula
from mzseek.formulas.enumeration import counts_of
from mzseek.formulas.isotopes import measured_pattern, pattern_scores, predicted_ratios


def counts(text: str) -> np.ndarray:
    return counts_of(parse_formula(text))


def test_predicted_patterns_are_those_of_natural_abundances() -> None:
    # 13C is 1.08 % of carbon; 81Br 49.3 % of bromine; two chlorines are as (a + b)².
    assert predicted_ratios(counts("C60"))[1] == pytest.approx(60 * 0.0108, rel=0.01)
    assert predicted_ratios(counts("CBr"))[2] == pytest.approx(0.973, abs=0.01)
    chlorine = 0.2424 / 0.7576
    assert predicted_ratios(counts("CCl2"))[4] == pytest.approx(chlorine**2, rel=0.01)


@pytest.mark.parametrize("charge", [1, 2])
def test_a_pattern_is_read_around_its_precursor(charge: int) -> None:
    mz = 250.0 + np.array([-0.5, 0.0, 1.00336, 1.99705, 30.0]) / charge
    pattern = measured_pattern(mz, np.array([9.0, 100.0, 11.0, 32.0, 50.0]), 250.0, charge, 10.0)
    assert pattern is not None
    assert pattern.ratios.tolist() == pytest.approx([1.0, 0.11, 0.32, 0.0, 0.0])


@pytest.mark.parametrize("mz", [[249.0, 251.0], [250.0, 253.0]])
def test_a_precursor_without_isotopologues_has_no_pattern(mz: list[float]) -> None:
    assert measured_pattern(np.array(mz), np.ones(2), 250.0, 1, 10.0) is None


def test_the_true_formula_fits_its_own_pattern_best() -> None:
    formulas = ["C15H10O6", "C12H11ClN2O3", "C13H18O3S2", "C10H7BrN2O2"]
    ions = np.array([counts(text) for text in formulas])
    for at, ion in enumerate(ions):
        ratios = predicted_ratios(ion)
        mz = 287.0 + 1.0028 * np.arange(5)
        pattern = measured_pattern(mz, ratios + 1e-9, 287.0, 1, 10.0)
        assert pattern is not None
        assert int(pattern_scores(pattern, ions).argmax()) == at
