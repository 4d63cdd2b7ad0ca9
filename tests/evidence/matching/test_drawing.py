import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.evidence.decoys import (
    LEAST,
    LEFT_OUT,
    TOO_FEW,
    TOO_LIKELY,
    draw_list,
    effective_size,
    list_size,
    probabilities,
)

SPREAD = st.floats(0, 3)
SEEDS = st.integers(0, 2**32 - 1)


def some_p(seed: int, spread: float, size: int = 60) -> np.ndarray:
    return probabilities(np.random.default_rng(seed).normal(0, spread, size))


def test_probabilities_are_a_softmax() -> None:
    assert probabilities([0.0, np.log(3)]) == pytest.approx([0.25, 0.75])
    assert probabilities([1000.0, 1000.0, -1000.0]) == pytest.approx([0.5, 0.5, 0])


@given(SEEDS, SPREAD, st.integers(1, 200))
def test_no_longer_than_what_is_left_is_worth(seed: int, spread: float, pool: int) -> None:
    p = np.sort(some_p(seed, spread, pool))[::-1]
    size, skipped = list_size(p)
    left = p[skipped:] / p[skipped:].sum()
    assert p[:skipped].sum() <= LEFT_OUT + 1e-9
    assert size * left[0] <= 1 + 1e-6  # every one can be drawn as often as it must
    assert 1 <= size <= min(effective_size(left) + 1e-6, len(left))
    whole, _ = list_size(p, enough=1)
    assert whole <= size  # leaving out likely ones never makes lists shorter


@settings(max_examples=200)
@given(SEEDS, SPREAD, st.integers(5, 40))
def test_a_list_has_the_truth_once_and_no_more_than_asked_for(
    seed: int, spread: float, most: int
) -> None:
    p, rng = some_p(seed, spread), np.random.default_rng(seed)
    truth = int(rng.integers(len(p)))
    found = draw_list(p, truth, rng, most)
    if isinstance(found, str):
        assert found in (TOO_FEW, TOO_LIKELY)
        return
    assert truth in found
    assert len(set(found.tolist())) == len(found)
    size = min(list_size(np.sort(p)[::-1])[0], most)
    assert size - 1 <= len(found) <= size  # one less where two ends of a row meet


@pytest.mark.parametrize("spread", [0.0, 0.7, 1.2])
@pytest.mark.parametrize("most", [8, 100])
def test_each_member_of_a_list_is_as_likely_the_truth(spread: float, most: int) -> None:
    """Truths drawn by p, lists by p: what knows p finds the truth as often as chance."""
    rng = np.random.default_rng(7)
    p = some_p(11, spread, 50)
    hits, chance, place = [], [], []
    for _ in range(6000):
        truth = int(rng.choice(len(p), p=p))
        found = draw_list(p, truth, rng, most, enough=10)
        if isinstance(found, str):
            assert found == TOO_LIKELY
            continue
        best = p[found] == p[found].max()
        hits.append(best[found == truth].sum() / best.sum())
        chance.append(1 / len(found))
        place.append(float(np.flatnonzero(found == truth)[0]) / (len(found) - 1))
    error = np.std(hits) / np.sqrt(len(hits))
    assert len(hits) > 3000
    assert np.mean(hits) == pytest.approx(np.mean(chance), abs=3.5 * error + 1e-9)
    assert np.mean(place) == pytest.approx(0.5, abs=0.02)


def test_drawing_one_after_the_other_would_tell() -> None:
    """The usual draw without replacement, by the same weights and of the same length."""
    rng = np.random.default_rng(8)
    p = some_p(11, 1.2, 50)
    size, _ = list_size(np.sort(p)[::-1], enough=1)
    hits = []
    for _ in range(4000):
        truth = int(rng.choice(len(p), p=p))
        key = np.log(p) + rng.gumbel(size=len(p))
        key[truth] = np.inf
        found = np.argsort(-key)[:size]
        hits.append(found[p[found].argmax()] == truth)
    assert np.mean(hits) > 1.2 / size


def test_members_are_there_as_often_as_they_are_likely() -> None:
    rng = np.random.default_rng(9)
    p = some_p(12, 0.8, 40)
    seen = np.zeros(len(p))
    for _ in range(8000):
        found = draw_list(p, int(rng.choice(len(p), p=p)), rng, most=6, enough=1)
        assert not isinstance(found, str)
        seen[found] += 1
    assert seen / 8000 == pytest.approx(6 * p, abs=0.025)


def test_a_truth_that_stands_out_has_no_list() -> None:
    rng = np.random.default_rng(0)
    p = probabilities([4.0] + [0.0] * 300)
    assert list_size(np.sort(p)[::-1]) == (300, 1)
    assert draw_list(p, 0, rng, 20) == TOO_LIKELY
    assert not isinstance(draw_list(p, 5, rng, 20), str)
    assert 0 not in draw_list(p, 5, rng, 300)
    assert draw_list(probabilities([9.0] + [0.0] * 300), 0, rng, 20) == TOO_FEW
    assert draw_list(np.ones(LEAST - 1) / (LEAST - 1), 0, rng, 20) == TOO_FEW
    assert len(draw_list(np.ones(LEAST) / LEAST, 0, rng, 20)) == LEAST


def test_equal_ones_stand_in_no_order() -> None:
    """Of many that are equally likely some are left out: any of them, the truth included."""
    p = probabilities([3.0, 3.0] + [0.0] * 120)
    left = [
        isinstance(draw_list(p, 0, np.random.default_rng(seed), 20, enough=40), str)
        for seed in range(300)
    ]
    _, skipped = list_size(np.sort(p)[::-1], enough=40)
    assert np.mean(left) == pytest.approx(skipped / 2, abs=0.1)
