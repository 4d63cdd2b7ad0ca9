"""The ranker: weights that can be read, by ion mode."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged, pointers
from mzseek.evidence.queries import Molecules, Queries
from mzseek.evidence.ranker import Ranker, fit_ranker
from mzseek.spectra import Spectrum

LABELS, NAMES = ("one", "two"), (("a", "b"), ("c",))
SCALES = np.array([1.0, 10.0, 0.1])


def simulated(weights: dict[int, np.ndarray], lists: int) -> tuple[list[np.ndarray], Queries]:
    """Features of two channels, and answers drawn with the weights of each ion mode."""
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 9, lists)
    ragged = Ragged(counts)
    modes = rng.choice(list(weights), lists)
    features = rng.normal(size=(ragged.total, 3)) + np.repeat(
        rng.normal(size=(lists, 3)), counts, axis=0
    )
    noisy = rng.gumbel(size=ragged.total)
    for mode, of_mode in weights.items():
        rows = ragged.repeat_per_list(modes == mode)
        noisy[rows] += features[rows] @ of_mode
    spectra = [Spectrum(np.array([50.0]), np.array([1.0]), 99.0, None, int(m), "x") for m in modes]
    members = np.arange(ragged.total)
    table = Molecules(["C"] * ragged.total)
    own = Queries(spectra, np.arange(lists), pointers(counts), members, table)
    blocks = np.array([f"{n:014d}" for n in range(lists)], "S14")
    labels = noisy == ragged.repeat_per_list(ragged.max(noisy))
    scaled = features * SCALES
    return [scaled[:, :2], scaled[:, 2:]], Queries(own, labels, blocks)


POSITIVE, NEGATIVE = np.array([1.0, -0.5, 0.0]), np.array([-1.0, 0.5, 1.0])


def test_simulated_weights_are_found_again_for_each_mode() -> None:
    features, asked = simulated({1: POSITIVE, -1: NEGATIVE}, 20_000)
    ranker = fit_ranker(LABELS, NAMES, features, asked, l2=0)
    for mode, wanted in (("positive", POSITIVE), ("negative", NEGATIVE)):
        found = ranker.weights[mode] / ranker.spread * SCALES
        assert np.abs(found - wanted).max() < 0.06
        assert ranker.own[mode]


def test_a_mode_of_few_molecules_has_the_weights_of_both() -> None:
    features, asked = simulated({1: POSITIVE}, 400)
    asked.spectra[0] = replace(asked.spectra[0], charge=-1)
    ranker = fit_ranker(LABELS, NAMES, features, asked)
    assert ranker.molecules == {"positive": 399, "negative": 1}
    assert ranker.own == {"positive": True, "negative": False}
    alone = fit_ranker(LABELS, NAMES, features, asked, few=1000)
    assert np.array_equal(ranker.weights["negative"], alone.weights["negative"])
    assert np.array_equal(alone.weights["positive"], alone.weights["negative"])


def test_parts_add_up_to_log_odds() -> None:
    features, asked = simulated({1: POSITIVE, -1: NEGATIVE}, 300)
    ranker = fit_ranker(LABELS, NAMES, features, asked)
    lists = asked
    parts = ranker.contributions(features, lists.modes, lists.counts)
    assert parts.shape == (lists.ragged.total, 2)
    assert np.abs(lists.ragged.sum(parts.sum(1))).max() < 1e-4  # against the average of a list
    whole = np.hstack(features)
    for each in range(20):
        here = slice(lists.ragged.starts[each], lists.ragged.starts[each] + lists.counts[each])
        own = ranker.weights["positive" if lists.modes[each] > 0 else "negative"] / ranker.spread
        score = whole[here] @ own
        assert np.allclose(parts[here].sum(1), score - score.mean(), atol=1e-4)


def test_what_is_written_is_read_again() -> None:
    features, asked = simulated({1: POSITIVE}, 200)
    ranker = fit_ranker(LABELS, NAMES, features, asked)
    again = Ranker.from_dict(json.loads(json.dumps(ranker.to_dict())))
    assert np.array_equal(again.spread, ranker.spread)
    assert np.array_equal(again.weights["positive"], ranker.weights["positive"])
    assert again.features == ranker.features
    table = ranker.to_table()
    assert table.columns["feature"] == ["a", "b", "c"]
    assert table.columns["channel"] == ["one", "one", "two"]


@pytest.mark.parametrize("gone", ["spread", "weights", "molecules", "own"])
def test_damage_is_refused(gone: str) -> None:
    features, asked = simulated({1: POSITIVE}, 200)
    facts = fit_ranker(LABELS, NAMES, features, asked).to_dict()
    with pytest.raises(EvidenceError, match=gone):
        Ranker.from_dict({name: value for name, value in facts.items() if name != gone})
    with pytest.raises(EvidenceError):
        Ranker.from_dict(facts | {gone: {}})


def test_molecules_with_many_spectra_count_once_or_not() -> None:
    features, asked = simulated({1: POSITIVE}, 300)
    same = replace(
        asked, blocks=np.where(np.arange(300) < 200, asked.inchikey14[0], asked.inchikey14)
    )
    once = fit_ranker(LABELS, NAMES, features, same)
    many = fit_ranker(LABELS, NAMES, features, same, by_molecule=False)
    assert not np.allclose(once.weights["positive"], many.weights["positive"])
    all_alike = fit_ranker(LABELS, NAMES, features, asked, by_molecule=False)
    assert np.array_equal(many.weights["positive"], all_alike.weights["positive"])


def test_a_list_has_the_same_bits_whatever_lists_are_beside_it() -> None:
    features, asked = simulated({1: POSITIVE, -1: NEGATIVE}, 300)
    ranker = fit_ranker(LABELS, NAMES, features, asked)
    modes, ragged = asked.modes, asked.ragged
    for centred in (True, False):
        together = ranker.contributions(features, modes, ragged.counts, centred=centred)
        for each, (start, count) in enumerate(zip(ragged.starts, ragged.counts, strict=True)):
            own = slice(start, start + count)
            given = [values[own] for values in features]
            alone = ranker.contributions(given, modes[each : each + 1], [count], centred=centred)
            assert np.array_equal(alone, together[own])
