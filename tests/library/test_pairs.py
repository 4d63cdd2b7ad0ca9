"""Cosine and modified cosine of pairs, against matchms."""

import matchms
import numpy as np
import pytest
from matchms.similarity import CosineGreedy, ModifiedCosineGreedy

from mzseek.library.similarity import _matches, entropy_similarity, greedy_cosine, shared_entropy
from mzseek.spectra import Spectrum


def as_matchms(spectrum: Spectrum) -> matchms.Spectrum:
    facts = {"precursor_mz": float(spectrum.precursor_mz)}
    return matchms.Spectrum(spectrum.mz.copy(), spectrum.intensities.copy(), metadata=facts)


@pytest.mark.parametrize("tolerance", [0.005, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("oracle", [CosineGreedy, ModifiedCosineGreedy])
def test_every_pair_scores_as_in_matchms(draw, oracle, tolerance: float) -> None:
    drawn = draw(24)
    theirs = oracle(tolerance=tolerance)
    some = 0
    for one in drawn:
        for other in drawn:
            shift = one.precursor_mz - other.precursor_mz if oracle is ModifiedCosineGreedy else 0.0
            score, matches = greedy_cosine(
                one.mz, one.intensities, other.mz, other.intensities, tolerance, shift
            )
            wanted = theirs.pair(as_matchms(one), as_matchms(other))
            assert score == pytest.approx(float(wanted["score"]), abs=1e-12)
            assert matches == int(wanted["matches"])
            some += 0 < score < 0.999
    assert some > 100


def test_peaks_at_the_distance_of_the_precursors_match_in_the_modified_cosine_only() -> None:
    mz, heights = np.array([100.0, 150.0]), np.array([1.0, 1.0])
    assert greedy_cosine(mz, heights, mz + 14, heights, 0.02, 0.0) == (0.0, 0)
    assert greedy_cosine(mz, heights, mz + 14, heights, 0.02, -14.0) == (pytest.approx(1.0), 2)


def test_equal_weights_share_all_entropy_and_strangers_none() -> None:
    mz, weights = np.array([100.0, 150.0]), np.array([0.25, 0.75])
    assert entropy_similarity(mz, weights, mz, weights, 0.02) == (pytest.approx(1.0), 2)
    assert entropy_similarity(mz, weights, mz + 1, weights, 0.02) == (0.0, 0)
    assert shared_entropy(0.5, 0.5) == pytest.approx(1.0)


def test_machine_code_and_python_score_to_the_same_bits(draw, monkeypatch) -> None:
    pairs = [(one, other) for one in draw(12) for other in draw(12)]
    given = [(a.mz, a.intensities, b.mz, b.intensities, 0.1, 0.0) for a, b in pairs]
    compiled = [greedy_cosine(*each) for each in given]
    monkeypatch.setattr("mzseek.library.similarity._matches", _matches.py_func)
    assert [greedy_cosine.py_func(*each) for each in given] == compiled
