import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.errors import MetricError
from mzseek.metrics import bootstrap, bootstrap_difference
from mzseek.metrics.bootstrap import _resampled_means

values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(values, st.integers(0, 5))
def test_the_interval_surrounds_values_and_repeats_itself(found, seed: int) -> None:
    first = bootstrap(found, resamples=50, seed=seed)
    assert first.mean == pytest.approx(np.mean(found))
    assert min(found) - 1e-12 <= first.low <= first.high <= max(found) + 1e-12
    assert bootstrap(found, resamples=50, seed=seed) == first


def test_another_seed_gives_another_interval() -> None:
    sample = np.random.default_rng(0).random(50)
    assert bootstrap(sample, seed=1) != bootstrap(sample, seed=2)


def test_it_is_the_bootstrap_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 12, size=60)
    sample = rng.random(60)
    _, members = np.unique(groups, return_inverse=True)
    draws = np.random.default_rng(7)
    count = members.max() + 1
    means = []
    for _ in range(40):
        drawn = draws.integers(count, size=count)
        means.append(np.mean(np.concatenate([sample[members == g] for g in drawn])))
    low, high = np.quantile(means, [0.05, 0.95])
    for held in (2**20, 30):  # whatever fits in memory at once
        # The function hides the module of its name from an attribute path.
        monkeypatch.setattr(sys.modules["mzseek.metrics.bootstrap"], "_DRAWS", held)
        got = bootstrap(sample, groups, resamples=40, level=0.9, seed=7)
        assert (got.low, got.high) == pytest.approx((low, high))
        assert (got.values, got.groups) == (60, count)


@given(values)
def test_groups_of_one_are_no_groups(found) -> None:
    names = [f"molecule {i:03}" for i in range(len(found))]
    assert bootstrap(found, names, resamples=20) == bootstrap(found, resamples=20)


def test_one_group_says_that_it_is_one() -> None:
    got = bootstrap([0.0, 1.0, 1.0, 0.0], groups=["caffeine"] * 4)
    assert (got.low, got.mean, got.high) == (0.5, 0.5, 0.5)
    assert got.single_group
    assert not bootstrap([0.0, 1.0]).single_group


def test_values_of_one_molecule_count_together() -> None:
    rng = np.random.default_rng(0)
    sample = np.repeat(rng.random(40), 25)
    alone = bootstrap(sample)
    together = bootstrap(sample, np.repeat(np.arange(40), 25))
    assert together.high - together.low > 3 * (alone.high - alone.low)


def test_a_paired_difference_is_narrower_than_its_parts() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(200)
    a, b = hard + 0.05 + 0.01 * rng.random(200), hard + 0.01 * rng.random(200)
    groups = np.arange(200) // 2
    got = bootstrap_difference(a, b, groups)
    assert got.mean == pytest.approx(np.mean(a) - np.mean(b))
    assert 0.04 < got.low < got.high < 0.06
    one = bootstrap(a, groups)
    assert got.high - got.low < (one.high - one.low) / 5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([],), "expected one value a query"),
        (([[1.0]],), "expected one value a query"),
        ((["a"],), "expected numbers"),
        (([0.0, np.nan],), "hold nan at query 1"),
        (([0.0, 1.0], [1]), "groups have shape"),
        (([0.0, 1.0], np.array(["a", None], dtype=object)), "several types"),
        (([0.0, 1.0], None, 0), "resamples is 0"),
        (([0.0, 1.0], None, 10, 95), "level is 95, expected a share"),
    ],
)
def test_what_has_no_interval_is_refused(arguments, reason: str) -> None:
    with pytest.raises(MetricError, match=reason):
        bootstrap(*arguments)


def test_differences_need_pairs() -> None:
    with pytest.raises(MetricError, match="2 values_a and 1 values_b"):
        bootstrap_difference([0, 1], [1])


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    trials, molecules, spectra = 600, 60, 5
    grouped = alone = 0
    names = np.repeat(np.arange(molecules), spectra)
    for trial in range(trials):
        # A molecule is easy or hard for all its spectra; the mean of the population is 0.
        sample = np.repeat(rng.normal(size=molecules), spectra)
        sample += 0.3 * rng.normal(size=len(sample))
        got = bootstrap(sample, names, resamples=400, seed=trial)
        naive = bootstrap(sample, resamples=400, seed=trial)
        grouped += got.low <= 0 <= got.high
        alone += naive.low <= 0 <= naive.high
    assert 0.91 < grouped / trials < 0.98
    assert alone / trials < 0.75


def test_means_of_resamples_scatter_as_theory_says() -> None:
    sample = np.random.default_rng(0).normal(size=400)
    means = _resampled_means(sample, np.ones(400), 4000, np.random.default_rng(1))
    assert np.std(means) == pytest.approx(np.std(sample) / 20, rel=0.05)
