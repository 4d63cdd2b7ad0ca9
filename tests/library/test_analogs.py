"""Analogs: the mean of two cosines, against dense vectors."""

import numpy as np

from mzseek.library.library import LEAST_LOSS, WIDTH, Index, analog_lists
from mzseek.library.similarity import peak_lists
from mzseek.spectra import Spectrum
from mzseek.spectra.binning import bin_index


def dense(spectrum: Spectrum) -> np.ndarray:
    """Both vectors, each of length 1, side by side."""
    parts = []
    for values, low in ((spectrum.mz, 0.0), (spectrum.precursor_mz - spectrum.mz, LEAST_LOSS)):
        vector = np.zeros(40_000)
        inside = values >= low
        np.add.at(vector, bin_index(values[inside], WIDTH, 400.0), spectrum.intensities[inside])
        parts.append(np.sqrt(vector) / np.sqrt(vector.sum()))
    return np.concatenate(parts)


def test_scores_are_the_mean_of_the_two_cosines(draw) -> None:
    references, spectra = draw(50), draw(20, seed=4)
    best = Index("analog", *peak_lists(references), 0.02).search(
        *peak_lists(spectra), 50, np.arange(50), np.ones(50, bool)
    )
    wanted = np.array([[dense(q) @ dense(r) / 2 for r in references] for q in spectra])
    found = np.zeros_like(wanted)
    queries, places = np.nonzero(best.records >= 0)
    found[queries, best.records[queries, places]] = best.scores[queries, places]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert (wanted > 0.1).sum() > 100


def test_matched_peaks_are_the_bins_in_common(draw) -> None:
    one = draw(1)
    best = Index("analog", *peak_lists(one), 0.02).search(
        *peak_lists(one), 1, np.arange(1), np.ones(1, bool)
    )
    bins, _ = analog_lists(*peak_lists(one))
    assert best.matches.tolist() == [[len(bins.values)]]


def test_the_precursor_itself_is_no_loss() -> None:
    spectrum = Spectrum(np.array([100.0, 300.0]), np.ones(2), 300.0, None, 1, "q")
    _, losses = analog_lists(*peak_lists([spectrum]))
    assert losses.values.tolist() == [20_000]
