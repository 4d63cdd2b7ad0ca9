"""Pairs one after the other, as machine code."""

import numpy as np
import pytest

from mzseek.evidence.pairs.forward import worths
from mzseek.evidence.pairs.inputs import PairInputs
from mzseek.evidence.pairs.network import _drawn, pair_scores, pair_worth


def test_worths_are_those_of_the_products(inputs: PairInputs) -> None:
    weights = {n: w.astype(np.float64) for n, w in _drawn(np.random.default_rng(1)).items()}
    found = worths(weights, inputs) * inputs.counted
    for spectrum in range(len(inputs)):
        own = slice(inputs.pair_ends[spectrum], inputs.pair_ends[spectrum + 1])
        assert np.allclose(found[own], pair_worth(weights, inputs, spectrum), atol=1e-9)
    assert found.std() > 0


def test_scores_are_the_same_without_machine_code(
    inputs: PairInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = _drawn(np.random.default_rng(2))
    weights["totals"] = np.array([0.1, 0.2, 0.3], np.float32)
    compiled = pair_scores(weights, inputs)
    monkeypatch.setattr("mzseek.evidence.pairs.network.is_plain", lambda: True)
    assert np.allclose(pair_scores(weights, inputs), compiled, rtol=1e-6, atol=1e-6)
