"""What is lost of reference spectra."""

import numpy as np
import pytest

from mzseek.bundle.bundle import compact_ions, compact_peaks, compact_spectrum
from mzseek.core.ragged import pointers
from mzseek.library.similarity import PeakLists, PrecursorIons


@pytest.fixture
def lists() -> PeakLists:
    rng = np.random.default_rng(0)
    counts = np.array([5, 0, 200, 1])
    mz = np.concatenate([np.sort(rng.uniform(50, 900, count)) for count in counts])
    return PeakLists(pointers(counts), mz, rng.uniform(1e-6, 3.0, counts.sum()))


def test_the_highest_peaks_stay_in_rising_order(lists: PeakLists) -> None:
    kept = compact_peaks(lists, 60)
    assert np.diff(kept.pointers).tolist() == [5, 0, 60, 1]
    inside = slice(*lists.pointers[2:4])
    highest = np.sort(np.argsort(-lists.weights[inside])[:60])
    assert np.allclose(kept.values[5:65], lists.values[inside][highest], atol=5.1e-6)


def test_the_loss_is_bounded(lists: PeakLists) -> None:
    kept = compact_peaks(lists, 1000)
    assert np.abs(kept.values - lists.values).max() <= 5.1e-6
    for start, end in zip(lists.pointers[:-1], lists.pointers[1:], strict=True):
        if end > start:
            relative = lists.weights[start:end] / lists.weights[start:end].max()
            assert np.abs(kept.weights[start:end] - relative).max() <= 1e-4
            assert kept.weights[start:end].max() == 1
            assert kept.weights[start:end].min() >= 1e-4


def test_doing_it_twice_changes_nothing(lists: PeakLists) -> None:
    once = compact_peaks(lists, 60)
    assert all(np.array_equal(a, b) for a, b in zip(once, compact_peaks(once, 60), strict=True))
    ions = compact_ions(PrecursorIons(np.array([123.45678912]), np.ones(1, np.int8)))
    assert ions.precursors.tolist() == compact_ions(ions).precursors.tolist() == [123.456789]


def test_of_equal_heights_the_lower_mz_stays() -> None:
    even = PeakLists(np.array([0, 3]), np.array([50.0, 60.0, 70.0]), np.ones(3))
    assert compact_peaks(even, 2).values.tolist() == [50.0, 60.0]


def test_a_spectrum_is_made_compact_as_lists_are(make_spectrum) -> None:
    spectrum = make_spectrum([50.1234567, 60.0, 70.0], [1.0, 8.0, 4.0], 200.12345678, energy="20")
    kept = compact_spectrum(spectrum, 2)
    assert kept.mz.tolist() == [60.0, 70.0]
    assert kept.intensities.tolist() == [1.0, 0.5]
    assert kept.precursor_mz == 200.123457
    assert (kept.adduct, kept.metadata) == (spectrum.adduct, spectrum.metadata)
