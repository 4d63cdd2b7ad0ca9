"""Ranking of formulas, with the model that comes with mzseek."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.chem.adducts import parse_adduct
from mzseek.chem.formulas import parse_formula
from mzseek.core.errors import MoleculeError
from mzseek.formulas import rank_formulas, shipped_model
from mzseek.formulas.enumeration import MASSES, counts_of, formula_text
from mzseek.formulas.isotopes import predicted_ratios
from mzseek.formulas.model import FEATURES, FormulaModel
from mzseek.formulas.subformulas import Ions, chosen_peaks, matched
from mzseek.spectra import Spectrum

ELECTRON = 0.00054857990946


def spectrum(formula: str, adduct: str, fragments: list[str], shift_ppm: float = 0.0) -> Spectrum:
    """A spectrum with exact fragments of an ion, all off by some ppm."""
    ion = parse_adduct(adduct)
    sign = 1 if ion.charge > 0 else -1
    masses = [float(counts_of(parse_formula(text)) @ MASSES) for text in fragments]
    mz = np.sort(np.array(masses) - sign * ELECTRON) * (1 + shift_ppm * 1e-6)
    precursor = ion.precursor_mz(float(counts_of(parse_formula(formula)) @ MASSES))
    return Spectrum(mz, np.linspace(1.0, 2.0, len(mz)), precursor, adduct, ion.charge, "s", {})


CAFFEINE = ["C8H11N4O2", "C6H8N3O", "C5H8N3", "C4H7N2"]


def test_peaks_are_explained_by_parts_of_the_ion() -> None:
    one = spectrum("C8H10N4O2", "[M+H]+", CAFFEINE)
    best = rank_formulas(one)[0]
    assert (best.formula, best.adduct, best.peaks_explained) == ("C8H10N4O2", "[M+H]+", 4)
    assert [peak.formula for peak in best.peaks] == ["C4H7N2+", "C5H8N3+", "C6H8N3O+", "C8H11N4O2+"]
    assert max(abs(peak.error_ppm) for peak in best.peaks) < 0.1
    assert best.isotope_score is None


def test_probabilities_add_up_over_formulas_and_ions() -> None:
    one = replace(spectrum("C8H10N4O2", "[M+H]+", CAFFEINE), adduct=None)
    ranked = rank_formulas(one, top=10_000)
    assert sum(formula.probability for formula in ranked) == pytest.approx(1.0)
    assert {formula.adduct for formula in ranked} >= {"[M+H]+", "[M+H-H2O]+"}
    assert [f.probability for f in ranked] == sorted((f.probability for f in ranked), reverse=True)


def test_ranking_does_not_depend_on_the_scale_of_intensities() -> None:
    one = spectrum("C8H10N4O2", "[M+H]+", CAFFEINE)
    louder = replace(one, intensities=one.intensities * 1024.0)
    assert rank_formulas(one) == rank_formulas(louder)


def test_an_isotope_pattern_tells_sulfur_and_chlorine() -> None:
    ion = counts_of(parse_formula("C10H13ClN2O")) + counts_of(parse_formula("CH")) * 0
    ion[1] += 1
    one = spectrum("C10H13ClN2O", "[M+H]+", ["C3H8N"])
    ratios = predicted_ratios(ion)
    mz = one.precursor_mz + 1.0028 * np.arange(5)
    text = " ".join(f"{m!r}:{i!r}" for m, i in zip(mz.tolist(), ratios.tolist(), strict=True))
    best = rank_formulas(replace(one, metadata={"ms1_peaks": text}))[0]
    assert best.formula == "C10H13ClN2O"
    assert best.isotope_score == 0.0


def test_permanent_cations_are_written_with_their_charge() -> None:
    mass = float(counts_of(parse_formula("C5H14NO+")) @ MASSES)
    one = Spectrum(np.array([60.0808]), np.ones(1), mass - ELECTRON, None, 1, "choline", {})
    ions = {(f.formula, f.adduct) for f in rank_formulas(one, top=1_000)}
    assert ("C5H14NO+", "[M]+") in ions
    assert ("C5H13NO", "[M+H]+") in ions


def test_a_shifted_spectrum_is_explained_as_well() -> None:
    ions = Ions.of(counts_of(parse_formula("C8H10N4O2"))[None], parse_adduct("[M+H]+"))
    model = shipped_model()
    odds = []
    for shift in (0.0, 12.0):
        one = spectrum("C8H10N4O2", "[M+H]+", CAFFEINE, shift)
        peaks = chosen_peaks(one.mz, one.intensities, one.precursor_mz)
        found = matched(peaks, ions, 1, float(ions.masses[0]), 20.0, model.part_weights)
        odds.append(found.log_odds(np.full(found.ratios.shape[2], 1 / 12)).sum())
    assert min(odds) > 0
    assert odds[0] > odds[1]  # what is narrow is less probable by chance


def test_ions_of_elements_that_are_not_enumerated_are_refused() -> None:
    one = replace(spectrum("C8H10N4O2", "[M+H]+", CAFFEINE), adduct="[M+Ag]+")
    with pytest.raises(MoleculeError, match="formulas with Ag"):
        rank_formulas(one)


def test_the_model_is_read_as_it_was_written() -> None:
    model = shipped_model()
    again = FormulaModel.from_dict(model.to_dict())
    one = spectrum("C8H10N4O2", "[M+H]+", CAFFEINE)
    assert rank_formulas(one, model=again) == rank_formulas(one)
    assert len(FEATURES) == len(model.modes[1].weights)


def test_fragments_are_complements_of_losses() -> None:
    ion = counts_of(parse_formula("C8H11N4O2"))
    ions = Ions(ion[None], np.array([ion @ MASSES]))
    one = spectrum("C8H10N4O2", "[M+H]+", CAFFEINE)
    peaks = chosen_peaks(one.mz, one.intensities, one.precursor_mz)
    found = matched(peaks, ions, 1, float(ion @ MASSES), 5.0, shipped_model().part_weights)
    texts = [formula_text(found.fragment(ion, 0, at)) for at in range(4)]  # type: ignore[arg-type]
    assert texts == sorted(CAFFEINE, key=lambda t: float(counts_of(parse_formula(t)) @ MASSES))
    assert found.is_loss.tolist() == [False, True, True, True]
