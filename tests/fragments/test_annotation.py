import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from mzseek.chem import exact_mass
from mzseek.chem.adducts import ELECTRON_MASS, known_adducts, precursor_mz
from mzseek.core.errors import AdductError, MoleculeError, MzseekError, SpectrumError
from mzseek.fragments import explain, ion_forms, pieces
from mzseek.spectra import Spectrum

from ..molecules import KNOWN

LABELLED = ["[13CH3]C(=O)Nc1ccccc1", "[2H]C([2H])([2H])OC(=O)c1ccccc1", "C[15NH]CCBr"]
HEAVIER = 1.0033548  # of 13C
CAFFEINE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"


def measured(mz: list[float] | np.ndarray, intensities: list[float] | None = None) -> Spectrum:
    """A spectrum of caffeine."""
    heights = np.ones(len(mz)) if intensities is None else np.array(intensities)
    return Spectrum(np.array(mz), heights, 195.0877, "[M+H]+", 1, "a")


def seen(smiles: str, adduct: str, seed: int = 0) -> Spectrum:
    """A spectrum of ions that the molecule's fragments can be, each up to 1 ppm off.

    Less than the least half width that is allowed around the median error.
    """
    rng = np.random.default_rng(seed)
    found, forms = pieces(smiles), ion_forms(adduct)
    which = rng.integers(0, len(found), 25)
    form = rng.integers(0, len(forms), 25)
    mz = (found.masses[which] + forms.shifts[form]) / abs(forms.charges[form])
    good = (mz > 10) & (found.hydrogens[which] + forms.hydrogens[form] >= 0)
    mz = np.unique(mz[good] * (1 + rng.uniform(-1e-6, 1e-6, good.sum())))
    return Spectrum(mz, rng.uniform(1, 9, len(mz)), 500.0, adduct, None, "seen")


def formula_mass(formula: str) -> float:
    table = Chem.GetPeriodicTable()
    total = 0.0
    for isotope, labelled, plain, number in re.findall(
        r"(?:\[(\d+)([A-Z][a-z]?)\]|([A-Z][a-z]?))(\d*)", formula
    ):
        mass = (
            table.GetMassForIsotope(labelled, int(isotope))
            if isotope
            else table.GetMostCommonIsotopeMass(plain)
        )
        total += mass * int(number or 1)
    return total


@pytest.mark.parametrize("adduct", known_adducts())
def test_explanations_conserve_mass(adduct: str) -> None:
    for place, smiles in enumerate(KNOWN[::12] + LABELLED):
        spectrum = seen(smiles, adduct, place)
        rows = explain(spectrum, smiles)
        assert [row.mz for row in rows] == spectrum.mz.tolist()
        assert all(row.formula for row in rows)
        for row in rows:
            ion = (formula_mass(row.formula) - row.charge * ELECTRON_MASS) / abs(row.charge)
            assert row.mz / (1 + row.error_ppm * 1e-6) == pytest.approx(ion, abs=1e-6)
            assert abs(row.mz - ion) <= max(row.mz * 1e-5, 0.001)


def test_atoms_bonds_and_hydrogens_tell_the_formula() -> None:
    table = Chem.GetPeriodicTable()
    for smiles in KNOWN[::10]:
        molecule = Chem.MolFromSmiles(smiles)
        for row in explain(seen(smiles, "[M+Na]+"), smiles):
            atoms = [molecule.GetAtomWithIdx(atom) for atom in row.atoms]
            mass = sum(
                table.GetMostCommonIsotopeMass(atom.GetAtomicNum())
                + atom.GetTotalNumHs() * table.GetMostCommonIsotopeMass(1)
                for atom in atoms
            )
            mass += row.hydrogens * table.GetMostCommonIsotopeMass(1)
            mass += sum(table.GetMostCommonIsotopeMass(symbol) for symbol in row.carried)
            assert mass == pytest.approx(formula_mass(row.formula), abs=1e-6)
            inside = set(row.atoms)
            broken = [
                bond
                for bond in molecule.GetBonds()
                if (bond.GetBeginAtomIdx() in inside) != (bond.GetEndAtomIdx() in inside)
            ]
            assert len(broken) == row.bonds
            assert sum(bond.IsInRing() for bond in broken) == row.ring_bonds
            assert "." not in Chem.MolFragmentToSmiles(molecule, list(row.atoms))
            assert row.equivalents >= 1


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KNOWN), st.randoms(use_true_random=False))
def test_order_of_atoms_spelling_and_order_of_peaks_change_nothing(
    smiles: str, rng: random.Random
) -> None:
    spectrum = seen(smiles, "[M+H]+")
    first = Chem.MolFromSmiles(smiles)
    order = list(range(first.GetNumAtoms()))
    rng.shuffle(order)
    spelled = Chem.MolToSmiles(Chem.RenumberAtoms(first, order), canonical=False)
    second = Chem.MolFromSmiles(spelled)
    peaks = list(range(len(spectrum)))
    rng.shuffle(peaks)
    other = Spectrum(
        spectrum.mz[peaks], spectrum.intensities[peaks], 500.0, "[M+H]+", None, "shuffled"
    )
    ranks = [list(Chem.CanonicalRankAtoms(each, breakTies=False)) for each in (first, second)]
    one, two = explain(spectrum, smiles), explain(other, spelled)
    for place, peak in enumerate(peaks):
        mine, its = one[peak], two[place]
        assert mine._replace(atoms=()) == its._replace(atoms=())
        assert sorted(ranks[0][a] for a in mine.atoms) == sorted(ranks[1][a] for a in its.atoms)


def test_of_several_explanations_the_weights_choose() -> None:
    spectrum = seen(CAFFEINE, "[M+H]+")
    usual = explain(spectrum, CAFFEINE)
    weights = np.zeros((6, 2, 9))
    weights[5, 1] = 1.0  # three ring bonds and a radical
    other = explain(spectrum, CAFFEINE, weights=weights)
    assert sum(row.bonds for row in other) > sum(row.bonds for row in usual)


def test_an_unexplained_peak_has_no_fragment() -> None:
    (row,) = explain(measured([60.9], [3.0]), CAFFEINE)
    assert row == (60.9, None, None, (), None, None, None, (), None, None, 3.0, 0.0, 0, "", "")


def test_the_adduct_is_given_named_or_found() -> None:
    mz = precursor_mz(exact_mass(CAFFEINE), "[M+Na]+")
    nameless = Spectrum(np.array([mz]), np.ones(1), mz, None, None, "n")
    assert explain(nameless, CAFFEINE).adduct == "[M+Na]+"
    assert explain(nameless, CAFFEINE)[0].formula == "C8H10N4NaO2"
    assert explain(nameless, CAFFEINE, adduct="M+H").adduct == "[M+H]+"
    lost = Spectrum(np.array([mz]), np.ones(1), 400.0, None, None, "n")
    with pytest.raises(SpectrumError, match="names no adduct"):
        explain(lost, CAFFEINE)
    with pytest.raises(AdductError):
        explain(nameless, CAFFEINE, adduct="[M+Xx]+")
    with pytest.raises(MoleculeError):
        explain(nameless, "no")
    with pytest.raises(MzseekError, match="weights have shape"):
        explain(nameless, CAFFEINE, weights=np.ones(3))
    with pytest.raises(ValueError, match="expected 0 to 3"):
        explain(nameless, CAFFEINE, cleavages=5)


def test_truncation_is_reported_and_the_table_has_a_row_a_peak() -> None:
    found = explain(measured([60.9]), "C" * 2500)
    assert (found.cleavages, found.truncated) == (1, True)
    assert "only those of up to 1 cleavages" in str(found.table())
    found = explain(seen(CAFFEINE, "[M+H]+"), CAFFEINE)
    assert not found.truncated
    assert len(found.table()) == len(found)
    assert found[:2] == found.rows[:2]


def caffeine_ions(errors_ppm: list[float]) -> np.ndarray:
    """Six fragments of caffeine, each so many ppm off."""
    exact = [42.03383, 69.04472, 83.06037, 110.07127, 123.04271, 138.06619]
    return np.array(exact) * (1 + np.array(errors_ppm) * 1e-6)


@pytest.mark.parametrize("shift", [0.0, -6.0])
def test_peaks_outside_of_the_spectrums_mass_error_are_not_explained(shift: float) -> None:
    # 8.6 ppm beside errors of some hundredths: by chance. With a shift of all peaks: as it should.
    mz = caffeine_ions([shift + error for error in (0.02, 0.1, -0.1, 0.0, 0.05, 0.02)])
    assert all(row.formula for row in explain(measured(mz), CAFFEINE))
    mz[4] *= 1 + 8.6e-6
    explained = [row.formula is not None for row in explain(measured(mz), CAFFEINE)]
    assert explained == [True, True, True, True, False, True]
    assert all(row.formula for row in explain(measured(mz), CAFFEINE, refine=False))


def test_too_few_peaks_tell_no_mass_error() -> None:
    mz = caffeine_ions([0.0, 0.1, 0.0, 8.6, 0.0, 0.0])[2:]
    assert all(row.formula for row in explain(measured(mz), CAFFEINE))


def test_isotope_peaks_are_named() -> None:
    mz = [110.07127, 138.06619, 138.06619 + HEAVIER, 195.08765, 195.08765 + HEAVIER]
    rows = explain(measured(mz, [100.0, 80.0, 5.0, 50.0, 4.5]), CAFFEINE)
    assert [row.note for row in rows] == [
        "", "", "13C isotope of m/z 138.0662", "", "13C isotope of m/z 195.0876",
    ]  # fmt: skip
    assert rows[2].formula == "C5[13C]H8N3O"
    assert (rows[2].atoms, rows[2].bonds) == (rows[1].atoms, rows[1].bonds)
    assert rows[2].error_ppm == pytest.approx(rows[1].error_ppm, abs=0.1)
    ion = formula_mass(rows[4].formula) - ELECTRON_MASS
    assert rows[4].mz / (1 + rows[4].error_ppm * 1e-6) == pytest.approx(ion, abs=1e-6)


@pytest.mark.parametrize("intensity", [15.0, 90.0])
def test_what_is_higher_than_its_carbons_allow_is_no_isotope_peak(intensity: float) -> None:
    spectrum = measured([138.06619, 138.06619 + HEAVIER], [80.0, intensity])
    assert explain(spectrum, CAFFEINE)[1].note == ""


def test_isotope_peaks_of_two_charges_are_half_as_far() -> None:
    mz = precursor_mz(exact_mass(CAFFEINE), "[M+2H]2+")
    peaks = np.array([mz, mz + HEAVIER / 2])
    spectrum = Spectrum(peaks, np.array([10.0, 0.8]), mz, "[M+2H]2+", 2, "a")
    assert explain(spectrum, CAFFEINE)[1].note == f"13C isotope of m/z {mz:.4f}"
