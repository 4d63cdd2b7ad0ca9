"""Spectral entropy similarity against ms-entropy: `benchmarks/entropy_oracle.py` made the file."""

import json
from pathlib import Path

import numpy as np
import pytest

from mzseek.library.similarity import PeakLists, entropy_lists, entropy_similarity

ORACLE = json.loads((Path(__file__).parent / "ms_entropy.json").read_text())


def lists_of_oracle() -> PeakLists:
    peaks = [np.array(sorted(map(tuple, rows))) for rows in ORACLE["spectra"]]
    lengths = np.cumsum([0, *map(len, peaks)])
    mz, heights = np.concatenate(peaks).T.copy()
    return PeakLists(lengths.astype(np.int64), mz, heights)


@pytest.mark.parametrize("tolerance", sorted(ORACLE["scores"]))
def test_every_pair_scores_as_in_ms_entropy(tolerance: str) -> None:
    ready = entropy_lists(lists_of_oracle(), float(tolerance))
    rows = [slice(*ends) for ends in zip(ready.pointers[:-1], ready.pointers[1:], strict=True)]
    found = [
        [
            entropy_similarity(
                ready.values[one], ready.weights[one], ready.values[other], ready.weights[other],
                float(tolerance),
            )[0]
            for other in rows
        ]
        for one in rows
    ]  # fmt: skip
    wanted = np.array(ORACLE["scores"][tolerance])
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert ((wanted > 0.05) & (wanted < 0.95)).sum() > 50


def test_peaks_are_merged_noise_goes_and_weights_sum_to_one() -> None:
    lists = PeakLists(
        np.array([0, 4]), np.array([100.0, 100.02, 150.0, 200.0]), np.array([60.0, 40, 0.5, 100])
    )
    ready = entropy_lists(lists, 0.02)
    assert ready.values.tolist() == pytest.approx([100.008, 200.0], abs=1e-4)
    assert ready.weights.tolist() == pytest.approx([0.5, 0.5])
