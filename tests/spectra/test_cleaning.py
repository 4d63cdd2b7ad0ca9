"""Peaks that are no fragments, and fragments that stay."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem.Descriptors import ExactMolWt
from tests.molecules import KNOWN

from mzseek.fragments import pieces
from mzseek.spectra import Spectrum
from mzseek.spectra.augmentation import Contaminants, Corruption
from mzseek.spectra.cleaning import (
    artefacts,
    background_lines,
    count_reasons,
    has_possible_mass,
    isotope_peaks,
    side_lobes,
    without,
)
from mzseek.spectra.recalibration import MassErrorCurve, MassErrors

PROTON = 1.00727645


def spectrum(peaks, precursor_mz, charge=1):
    mz, heights = np.array(sorted(peaks)).T
    return Spectrum(mz, heights, precursor_mz, None, charge, "a")


@pytest.mark.parametrize("smiles", KNOWN[:20])
def test_fragments_of_molecules_have_possible_masses(smiles):
    mass = ExactMolWt(Chem.MolFromSmiles(smiles)) + PROTON
    fragments = pieces(smiles, 3)
    for hydrogens in (-2, 0, 2):
        mz = fragments.masses + hydrogens * 1.00782503 + PROTON
        mz = mz[(mz > 12) & (mz < mass + 0.1)]
        assert has_possible_mass(mz * (1 + 40e-6), mass).all()


@pytest.mark.parametrize(
    "formula", ["[Br][Br]", "C(Br)(Br)(Br)Br", "CCCCCCCCCCCCCCCCCCCCC", "II", "S=C=S", "[H][H]"]
)
def test_extreme_formulas_are_possible(formula):
    mass = ExactMolWt(Chem.MolFromSmiles(formula))
    assert has_possible_mass(np.array([mass]), mass + 150.05).all()


def test_ions_of_two_charges_may_be_at_half_masses():
    assert not has_possible_mass(np.array([150.55]), 400.2).any()
    assert has_possible_mass(np.array([150.55]), 400.2, charges=2).all()
    assert has_possible_mass(np.array([150.17]), 400.2, charges=50).all()
    found = artefacts(spectrum([(300.1, 10.0), (550.3, 9.0), (900.4, 1.0)], 400.2, charge=2))
    assert found == ("", "", "above the precursor")
    assert artefacts(spectrum([(300.1, 10.0), (550.3, 9.0)], 400.2)) == ("", "above the precursor")


def test_a_precursor_below_most_of_the_intensity_is_not_believed():
    assert artefacts(spectrum([(300.1, 5.0), (550.3, 9.0)], 400.2)) == ("", "")


def test_side_lobes_are_symmetric_or_far():
    peaks = [(200.07, 0.5), (200.1, 100.0), (200.128, 0.6), (200.5, 0.7), (200.137, 40.0)]
    mz, heights = np.array(sorted(peaks)).T
    assert side_lobes(mz, heights).tolist() == [1, -1, 1, -1, 1]
    # One small neighbour may be another fragment; so may a higher one.
    assert side_lobes(np.array([200.1, 200.136]), np.array([100.0, 1.0])).tolist() == [-1, -1]
    assert side_lobes(np.array([200.1, 200.5]), np.array([100.0, 9.0])).tolist() == [-1, -1]


def test_isotope_peaks_need_the_step_and_the_height_and_others():
    everything = np.ones(4, bool)
    mz = np.array([100.05, 101.05336, 150.06, 151.06336])
    isotopes = np.array([100.0, 6.0, 80.0, 8.0])
    assert isotope_peaks(mz, isotopes, everything).tolist() == [-1, 0, -1, 2]
    # Another hydrogen, and a peak that carbon cannot make so high.
    hydrogen = mz + np.array([0, 0.00447, 0, 0])
    assert isotope_peaks(hydrogen, isotopes, everything).tolist() == [-1, -1, -1, 2]
    too_high = np.array([100.0, 60.0, 80.0, 8.0])
    assert isotope_peaks(mz, too_high, everything).tolist() == [-1, -1, -1, 2]
    # One where three more are expected: the window held the monoisotopic ion.
    mz = np.array([100.05, 101.05336, 150.06, 170.07, 190.08])
    heights = np.array([100.0, 1.0, 90.0, 80.0, 70.0])
    assert (isotope_peaks(mz, heights, np.ones(5, bool)) < 0).all()
    # Chlorine.
    mz, heights = np.array([200.0, 201.00336, 201.99705]), np.array([100.0, 9.0, 32.0])
    assert isotope_peaks(mz, heights, np.ones(3, bool)).tolist() == [-1, 0, 0]


def test_a_noise_floor_needs_noise():
    rng = np.random.default_rng(0)
    fragments = [(90.0 + 11.005 * n, 50.0 + n) for n in range(10)]
    grass = [(mz, rng.uniform(0.8, 1.2)) for mz in rng.uniform(60, 250, 120)]
    found = artefacts(spectrum([*fragments, *grass], 260.1))
    counts = count_reasons(found)
    assert counts["noise floor"] + counts["impossible mass"] + counts["side lobe"] >= 110
    assert count_reasons(artefacts(spectrum(fragments, 260.1))) == {}


def test_low_resolution_loses_only_what_is_above_the_precursor():
    peaks = [(100.5, 9.0), (101.5, 1.0), (150.7, 5.0), (220.3, 2.0)]
    assert artefacts(spectrum(peaks, 200.4)) == ("", "", "", "above the precursor")


def test_background_lines_are_those_of_the_file():
    mz = np.array([84.9594, 84.9694, 120.0808])
    plain = Spectrum(mz, np.ones(3), 166.0863, None, 1, "a")
    assert artefacts(plain, [84.9595]) == ("background line", "", "")


def test_background_lines_are_common_and_no_fragments():
    precursors = 150.0 + 7.05 * np.arange(30)
    spectra = [
        spectrum([(84.9594, 2.0), (91.0542, 5.0), (100.05 + n, 9.0)], precursor)
        for n, precursor in enumerate(precursors)
    ]

    def errors(mz, spectrum_of, ppm):
        number = len(spectrum_of)
        return MassErrors(
            np.full(number, mz), np.array(spectrum_of), np.ones(number, np.int64),
            np.full(number, ppm), np.ones(number),
        )  # fmt: skip

    tropylium = errors(91.0542, range(20), 1.0)
    assert background_lines(spectra, tropylium) == (84.9594,)
    # One of a usual formula may be a radical, and none is explained by a few candidates.
    assert background_lines(spectra, errors(91.0542, range(2), 1.0)) == (84.9594,)
    # With a mass error of 60 ppm m/z 84.9594 is 84.9543, and explained.
    curve = MassErrorCurve((100.0,), (60.0,), 500, 50, 12.0, 4.0)
    assert 84.9594 not in background_lines(spectra, errors(84.9594, range(20), 60.0), curve)
    assert 84.9594 in background_lines(spectra, errors(84.9594, range(20), 30.0), curve)
    related = [replace(each, precursor_mz=300.1) for each in spectra]
    assert background_lines(related, tropylium) == ()


def test_without_drops_what_has_a_reason():
    one = spectrum([(100.05, 9.0), (150.06, 5.0)], 200.1)
    assert without(one, ("", "")) is one
    assert without(one, ("noise floor", "")).mz.tolist() == [150.06]


@given(st.integers(0, 2**32 - 1))
def test_any_spectrum_keeps_a_peak(seed):
    rng = np.random.default_rng(seed)
    mz = np.unique(rng.uniform(20, 600, rng.integers(1, 60)).round(4))
    one = Spectrum(mz, rng.lognormal(0, 3, len(mz)), rng.uniform(50, 600), None, 1, "a")
    found = artefacts(one)
    assert len(found) == len(one)
    assert not all(found)
    assert count_reasons(found).total() == sum(map(bool, found))


def test_most_of_what_a_corruption_adds_without_masses_is_found():
    fragments = pieces(KNOWN[3], 2)
    mass = ExactMolWt(Chem.MolFromSmiles(KNOWN[3])) + PROTON
    mz = np.unique((fragments.masses + PROTON).round(5))
    mz = mz[(mz > 40) & (mz < mass + 0.1)][::3]
    clean = Spectrum(mz, np.linspace(5, 100, len(mz)), mass, "[M+H]+", 1, "a")
    corrupted = Corruption(("sidelobes",), Contaminants([], []))(clean, "molecule")
    added = ~np.isin(corrupted.mz, mz)
    found = np.array([bool(reason) for reason in artefacts(corrupted)])
    assert found[added].mean() > 0.6
    assert found[~added].mean() < 0.1
