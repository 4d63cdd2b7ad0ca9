"""Pairs one after the other, as machine code."""

import numpy as np
import pytest

from mzseek.evidence.fragments import PairInputs, _drawn, _forward, pair_scores, worths


def test_worths_are_those_of_the_products(inputs: PairInputs) -> None:
    weights = {n: w.astype(np.float64) for n, w in _drawn(np.random.default_rng(1)).items()}
    found = worths(weights, inputs) * inputs.counted
    for spectrum in range(len(inputs)):
        own = slice(inputs.pair_ends[spectrum], inputs.pair_ends[spectrum + 1])
        _, _, kept = _forward(weights, inputs, np.array([spectrum]))
        assert np.allclose(found[own], kept.values * kept.shares, atol=1e-9)
    assert found.std() > 0


def test_scores_are_the_same_without_machine_code(
    inputs: PairInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = _drawn(np.random.default_rng(2))
    weights["totals"] = np.array([0.1, 0.2, 0.3], np.float32)
    compiled = pair_scores(weights, inputs)
    own = {name: values.astype(np.float64) for name, values in weights.items()}
    values = worths(own, inputs)
    monkeypatch.setattr("mzseek.evidence.fragments.is_plain", lambda: True)
    monkeypatch.setattr("mzseek.evidence.fragments._AT_ONCE", 7)
    assert np.array_equal(worths(own, inputs), values)
    assert np.array_equal(pair_scores(weights, inputs), compiled)
