"""Pairs of a candidate and a peak that it explains."""

import numpy as np
import pytest

from mzseek.core.errors import MzseekError
from mzseek.fragments import (
    KINDS,
    explained_pairs,
    fragment_table,
    ion_forms,
    kind_lists,
    peak_table,
    score_lists,
)
from mzseek.fragments.matching import MAX_HYDROGENS_MOVED
from mzseek.spectra import Spectrum

SMILES = ["CCO", "CC(=O)Nc1ccc(O)cc1", "COc1ccccc1C(N)=O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"]
CANDIDATES, COUNTS = np.array([1, 2, 3, 1, 0]), np.array([3, 2])


@pytest.fixture(scope="module")
def given():
    rng = np.random.default_rng(0)
    table = fragment_table(SMILES)
    spectra = []
    for name, precursor in (("a", 152.07), ("b", 195.09)):
        near = np.concatenate([table.of(m).masses for m in (1, 2, 3)]) + 1.00728
        mz = rng.choice(near, 40, replace=False) + rng.normal(0, 3e-4, 40)
        spectra.append(Spectrum(mz, rng.random(40) + 0.01, precursor, "[M+H]+", 1, name))
    return peak_table(spectra, [ion_forms("[M+H]+")] * 2), table


def test_pairs_add_up_to_scores_and_shares_by_kind(given) -> None:
    peaks, table = given
    weights = np.random.default_rng(1).random(KINDS)
    pairs = explained_pairs(peaks, table, CANDIDATES, COUNTS, weights)
    kinds = np.zeros((len(CANDIDATES), *KINDS))
    shares = peaks.shares[pairs.peak]
    at = (pairs.row, pairs.code, pairs.radical, pairs.hydrogens + MAX_HYDROGENS_MOVED)
    np.add.at(kinds, at, shares)
    assert np.allclose(kinds, kind_lists(peaks, table, CANDIDATES, COUNTS, weights), atol=1e-6)
    scores = score_lists(peaks, table, CANDIDATES, COUNTS, weights)
    assert np.allclose((kinds * weights).sum((1, 2, 3)), scores)
    assert len(pairs) == pairs.counts.sum() > 40


def test_errors_are_within_the_tolerance_and_signed(given) -> None:
    peaks, table = given
    pairs = explained_pairs(peaks, table, CANDIDATES, COUNTS)
    assert (np.abs(pairs.error) <= peaks.tolerances[pairs.peak] + 1e-9).all()
    assert (pairs.error > 0).any()
    assert (pairs.error < 0).any()


def test_pairs_stand_candidate_by_candidate_and_peaks_rise(given) -> None:
    peaks, table = given
    pairs = explained_pairs(peaks, table, CANDIDATES, COUNTS, threads=1)
    place = pairs.row * len(peaks.mz) + pairs.peak
    assert (np.diff(place) > 0).all()
    assert (pairs.peak[pairs.row >= 3] >= peaks.starts[1]).all()


def test_lists_that_do_not_fit_are_refused(given) -> None:
    peaks, table = given
    with pytest.raises(MzseekError, match="3 candidate lists for 2 spectra"):
        explained_pairs(peaks, table, CANDIDATES, [2, 2, 1])
