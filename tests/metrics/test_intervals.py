import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from mzseek.core.errors import MetricError
from mzseek.metrics import bootstrap, bootstrap_difference
from mzseek.metrics.intervals import deciding_groups

values = st.lists(st.floats(0, 1), min_size=1, max_size=30)
hits = st.lists(st.integers(0, 1), min_size=1, max_size=40)


@given(values, st.integers(0, 5), st.sampled_from([None, (0.0, 1.0), (-1.0, 3.0)]))
def test_the_interval_surrounds_the_mean_and_repeats_itself(found, seed: int, bounds) -> None:
    first = bootstrap(found, resamples=50, seed=seed, bounds=bounds)
    assert first.mean == pytest.approx(np.mean(found))
    assert first.low <= first.high
    lowest, highest = bounds or (min(found), max(found))
    assert lowest - 1e-12 <= first.low
    assert first.high <= highest + 1e-12
    names = [f"molecule {i:03}" for i in range(len(found))]  # groups of one are no groups
    assert bootstrap(found, names, resamples=50, seed=seed, bounds=bounds) == first


def test_it_is_the_bootstrap_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 30, size=150)
    sample = rng.random(150)
    _, members = np.unique(groups, return_inverse=True)
    draws = np.random.default_rng(7)
    count = members.max() + 1
    means = []
    for _ in range(40):
        drawn = draws.integers(count, size=count)
        means.append(np.mean(np.concatenate([sample[members == g] for g in drawn])))
    low, high = np.quantile(means, [0.05, 0.95])
    for held in (2**20, 70):  # whatever fits in memory at once
        monkeypatch.setattr("mzseek.metrics.intervals._DRAWS", held)
        got = bootstrap(sample, groups, resamples=40, level=0.9, seed=7)
        assert (got.low, got.high) == pytest.approx((low, high))
        assert (got.values, got.groups) == (150, count)


def test_one_group_says_that_it_is_one_and_next_to_nothing_about_others() -> None:
    got = bootstrap([0.0, 1.0, 1.0, 0.0], groups=["caffeine"] * 4)
    assert got.single_group
    assert got.mean == 0.5
    assert got.low < 0.02
    assert got.high > 0.98
    assert not bootstrap([0.0, 1.0]).single_group
    unlimited = bootstrap([0.0, 9.0], groups=["caffeine"] * 2, bounds=None)
    assert (unlimited.low, unlimited.mean, unlimited.high) == (4.5, 4.5, 4.5)


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
    got = bootstrap_difference(a, b, groups, bounds=(0, 2))
    assert got.mean == pytest.approx(np.mean(a) - np.mean(b))
    assert 0.04 < got.low < got.high < 0.06
    one = bootstrap(a, groups, bounds=(0, 2))
    assert got.high - got.low < (one.high - one.low) / 5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([],), "expected one value for each query"),
        (([[1.0]],), "expected one value for each query"),
        ((["a"],), "expected numbers"),
        (([0.0, np.nan],), "hold nan at query 1"),
        (([0.0, 1.0], [1]), "groups have shape"),
        (([0.0, 1.0], np.array(["a", None], dtype=object)), "several types"),
        (([0.0, 1.0], None, 0), "resamples is 0"),
        (([0.0, 1.0], None, 10, 95), "level is 95, expected a share"),
        (([0.0, 1.5],), r"values hold 1.5 at query 1, expected 0 to 1; name other bounds"),
        (([-0.1, 1.0],), "hold -0.1 at query 0, expected 0 to 1"),
        (([0.0, 1.0], None, 10, 0.9, 0, (1.0, 1.0)), "bounds are 1.0 and 1.0, expected a smaller"),
        (([0.0, 1.0], None, 10, 0.9, 0, (0.0, np.inf)), "bounds are 0.0 and inf"),
    ],
)
def test_what_has_no_interval_is_refused(arguments, reason: str) -> None:
    with pytest.raises(MetricError, match=reason):
        bootstrap(*arguments)
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
        got = bootstrap(sample, names, resamples=400, seed=trial, bounds=None)
        naive = bootstrap(sample, resamples=400, seed=trial, bounds=None)
        grouped += got.low <= 0 <= got.high
        alone += naive.low <= 0 <= naive.high
    assert 0.91 < grouped / trials < 0.98
    assert alone / trials < 0.75


# Where the mean rests on few molecules.


def clopper_pearson(hit: int, molecules: int, level: float = 0.95) -> tuple[float, float]:
    tail = (1 - level) / 2
    low = beta.ppf(tail, hit, molecules - hit + 1) if hit else 0.0
    high = beta.ppf(1 - tail, hit + 1, molecules - hit) if hit < molecules else 1.0
    return float(low), float(high)


@pytest.mark.parametrize(
    ("hit", "molecules"), [(0, 2), (1, 2), *((k, n) for k in (0, 1, 5, 9) for n in (24, 200))]
)
def test_few_hits_have_the_bounds_of_clopper_and_pearson(hit: int, molecules: int) -> None:
    for sample in ([1] * hit + [0] * (molecules - hit), [0] * hit + [1] * (molecules - hit)):
        got = bootstrap(sample)
        wanted = clopper_pearson(sum(sample), molecules)
        assert (got.low, got.high) == pytest.approx(wanted, rel=0.05, abs=0.002)


@pytest.mark.parametrize("spectra", [1, 7])
def test_no_hit_at_all_is_no_proof_that_there_are_none(spectra: int) -> None:
    names = np.repeat(np.arange(24), spectra)
    none, always = bootstrap(np.zeros(24 * spectra), names), bootstrap(np.ones(24 * spectra), names)
    assert (none.mean, none.low) == (0, 0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 24), rel=0.03)  # however many the spectra
    assert (always.mean, always.high) == (1, 1)
    assert always.low == pytest.approx(0.025 ** (1 / 24), rel=0.03)


@pytest.mark.parametrize("molecules", [24, 200])
@pytest.mark.parametrize("rate", [0.0, 0.005, 0.02, 0.1, 0.5, 0.98, 1.0])
def test_intervals_of_rates_cover_as_often_as_they_say(rate: float, molecules: int) -> None:
    """Exactly: the interval of each number of hits, and how probable that number is."""
    covered = 0.0
    for hit in range(molecules + 1):
        probability = binom.pmf(hit, molecules, rate)
        if probability > 1e-6:
            got = bootstrap([1] * hit + [0] * (molecules - hit))
            covered += probability * (got.low <= rate <= got.high)
    assert covered > 0.93
    if rate == 0.5:
        assert covered < 0.985, "and not by being wide where percentiles do"


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "molecules"), [(0.02, 24), (0.1, 24), (0.02, 200)])
def test_molecules_with_several_spectra_are_covered_as_often(rate: float, molecules: int) -> None:
    rng = np.random.default_rng(5)
    covered, trials = 0, 150
    for trial in range(trials):
        sizes = 1 + rng.geometric(0.2, size=molecules)
        sample = np.repeat((rng.random(molecules) < rate).astype(float), sizes)
        got = bootstrap(sample, np.repeat(np.arange(molecules), sizes), seed=trial)
        covered += got.low <= rate <= got.high
    assert covered / trials > 0.93


@pytest.mark.parametrize(("up", "down"), [(0.0, 0.0), (0.02, 0.0), (0.02, 0.02), (0.3, 0.1)])
@pytest.mark.parametrize("molecules", [24, 200])
def test_intervals_of_differences_cover_as_often_as_they_say(up, down, molecules: int) -> None:
    rng = np.random.default_rng(6)
    covered, trials = 0, 150
    for trial in range(trials):
        u = rng.random(molecules)
        both = u > 0.7
        a, b = (u < up) | both, ((up <= u) & (u < up + down)) | both
        got = bootstrap_difference(a, b, seed=trial)
        covered += got.low <= up - down <= got.high
    assert covered / trials > 0.9


def test_a_difference_without_a_differing_molecule_is_not_known_to_be_none() -> None:
    same = [1, 0, 1, 0, 0, 0] * 4
    got = bootstrap_difference(same, same)
    unseen = 1 - 0.025 ** (1 / 24)
    assert got.mean == 0
    assert (got.low, got.high) == pytest.approx((-unseen, unseen), rel=0.03)
    one = bootstrap_difference([1, *same], [0, *same])
    assert one.low < 0 < one.mean < one.high, "one molecule is no proof of a gain"


def test_ordinary_samples_keep_the_interval_of_percentiles() -> None:
    rng = np.random.default_rng(4)
    for sample in (rng.random(60), (rng.random(200) < 0.1) * 1.0, [1] * 10 + [0] * 100):
        assert bootstrap(sample) == bootstrap(sample, bounds=None)
    assert bootstrap([1] * 9 + [0] * 100) != bootstrap([1] * 9 + [0] * 100, bounds=None)


@given(hits, st.integers(1, 4))
def test_deciding_groups_are_those_of_the_rarer_kind(found, size: int) -> None:
    sizes = np.full(len(found), float(size))
    rarer = min(sum(found), len(found) - sum(found))
    assert deciding_groups(np.array(found) * sizes, sizes) == pytest.approx(rarer)


def test_a_molecule_with_most_of_the_spectra_decides_alone() -> None:
    sizes, hit = np.array([1000.0, *[1.0] * 50]), np.array([0.0, *[1.0, 0.0] * 25])
    assert deciding_groups(hit[1:], sizes[1:]) == 25
    assert 1 <= deciding_groups(hit, sizes) < 1.2
    got = bootstrap(np.repeat(hit, sizes.astype(int)), np.repeat(np.arange(51), sizes.astype(int)))
    assert got.high > 0.9, "the next molecule with a thousand spectra may be a hit"
