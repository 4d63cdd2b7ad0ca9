import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import (
    Calibration,
    calibration_error,
    first_places,
    fit_calibration,
    fit_temperature,
    posterior,
    reliability,
)
from mzseek.decision.calibration import list_weights, merge_equal

from .conftest import draw_truths

lists = st.lists(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=6), min_size=1, max_size=5
)


def flat(found) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(found), np.array([len(each) for each in found])


def drawn(rng, queries: int, temperature: float, most: int = 12):
    """Scores of lists, and truths drawn with the probabilities that the temperature gives."""
    counts = rng.integers(2, most, size=queries)
    scores = rng.normal(size=counts.sum()) * 3
    return scores, counts, draw_truths(rng, posterior(scores, counts, temperature), counts)


def log_loss(p, counts, labels) -> float:
    starts = np.cumsum(counts) - counts
    return float(-np.log(np.add.reduceat(np.where(labels, p, 0), starts)).mean())


@given(lists, st.floats(0.01, 100))
def test_a_posterior_is_the_softmax_of_each_list(found, temperature: float) -> None:
    got = posterior(*flat(found), temperature)
    start = 0
    for each in found:
        here = got[start : start + len(each)]
        start += len(each)
        assert here.sum() == pytest.approx(1, abs=1e-12)
        powers = np.exp((np.array(each) - max(each)) / temperature)
        assert here == pytest.approx(powers / powers.sum(), abs=1e-12)


@given(lists, st.sampled_from([-1e9, -3.0, 1e9]))
def test_a_constant_added_to_a_list_does_not_matter(found, constant: float) -> None:
    whole = [np.round(each) for each in found]  # so that adding loses no digits
    moved = [each + constant * i for i, each in enumerate(whole)]
    assert posterior(*flat(moved)) == pytest.approx(posterior(*flat(whole)), abs=1e-12)


def test_huge_scores_and_odd_temperatures_do_no_harm() -> None:
    assert posterior([1e300, 0.0, -1e300], [3]).tolist() == [1, 0, 0]
    assert posterior([-1e300, -1e300], [2]).tolist() == [0.5, 0.5]
    assert posterior([3.0, 1.0, 7.0], [2, 1], np.inf).tolist() == [0.5, 0.5, 1]
    assert posterior([3.0, 1.0], [2], 1e-300).tolist() == [1, 0]


@pytest.mark.parametrize("temperature", [0.05, 0.5, 1.0, 4.0])
def test_the_temperature_that_truths_were_drawn_with_is_found(temperature: float) -> None:
    rng = np.random.default_rng(0)
    scores, counts, labels = drawn(rng, 4000, temperature)
    found = fit_temperature(scores, counts, labels)
    assert found == pytest.approx(temperature, rel=0.1)
    # Scores in other units have a temperature in those units.
    assert fit_temperature(scores * 1e6 - 3, counts, labels) == pytest.approx(found * 1e6, rel=1e-4)


@given(st.integers(0, 10_000), st.floats(0.2, 5))
def test_no_other_temperature_makes_the_truth_more_probable(seed: int, truth: float) -> None:
    scores, counts, labels = drawn(np.random.default_rng(seed), 30, truth, most=5)

    def likelihood(temperature: float) -> float:
        return float(np.log(posterior(scores, counts, temperature)[labels]).sum())

    found = fit_temperature(scores, counts, labels)
    # Where the scores are worse than chance no temperature is hot enough: the search ends at its
    # bound, 10,000 times the largest gap, where 30 lists are within 30 / 10,000 of uniform ones.
    tolerance = 1e-6 if found < 1e3 else 3e-3
    best = likelihood(found)
    assert all(likelihood(t) <= best + tolerance for t in found * np.geomspace(0.05, 20, 41))


def test_each_molecule_counts_once() -> None:
    # Ten spectra of one molecule are wrong, those of three others right: 3 of 4 again.
    scores, counts = [2.0, 0.0] * 13, [2] * 13
    labels = [0, 1] * 10 + [1, 0] * 3
    groups = ["a"] * 10 + ["b", "c", "d"]
    got = fit_temperature(scores, counts, labels, groups)
    assert got == pytest.approx(2 / np.log(3), rel=1e-5)
    assert fit_temperature(scores, counts, labels) > 100


def test_scores_that_say_nothing_leave_the_temperature_at_one() -> None:
    assert fit_temperature([3.0, 3.0, 8.0], [2, 1], [1, 0, 1]) == 1
    assert fit_temperature([3.0, 5.0, 8.0], [1, 1, 1], [1, 1, 1]) == 1


def test_scores_that_are_always_or_never_right_have_an_extreme_temperature() -> None:
    right = fit_temperature([2.0, 0.0] * 5, [2] * 5, [1, 0] * 5)
    assert posterior([2.0, 0.0], [2], right)[0] == pytest.approx(1, abs=1e-3)
    wrong = fit_temperature([2.0, 0.0] * 5, [2] * 5, [0, 1] * 5)
    assert posterior([2.0, 0.0], [2], wrong)[0] == pytest.approx(0.5, abs=1e-3)


def test_every_labelled_candidate_counts() -> None:
    # Both labelled: whatever the temperature, the truth has it all but for the third.
    scores, labels = [2.0, 2.0, 0.0] * 8, [1, 1, 0] * 6 + [0, 0, 1] * 2
    # 2 / (2 + exp(-2/T)) = 3/4
    assert fit_temperature(scores, [3] * 8, labels) == pytest.approx(2 / np.log(1.5), rel=1e-5)


@pytest.mark.parametrize("sentinel", [-1e6, -1e12])
def test_one_score_far_below_all_others_does_not_matter(sentinel: float) -> None:
    scores, counts, labels = drawn(np.random.default_rng(1), 500, 1.0)
    wanted = fit_temperature(scores, counts, labels)
    scores = np.concatenate([scores, [0.0, sentinel]])
    labels = np.concatenate([labels, [True, False]])
    got = fit_temperature(scores, np.append(counts, 2), labels)
    assert got == pytest.approx(wanted, rel=1e-3)


def test_a_fitted_posterior_is_calibrated() -> None:
    scores, counts, labels = drawn(np.random.default_rng(3), 6000, 0.5)
    p = posterior(scores, counts, fit_temperature(scores, counts, labels))
    assert calibration_error(p, counts, labels) < 0.03
    assert calibration_error(posterior(scores, counts, 0.05), counts, labels) > 0.05


calibrations = st.builds(Calibration, st.floats(0.01, 100), st.floats(-1, 1), st.floats(0, 0.95))


@given(lists, calibrations)
def test_a_calibration_gives_probabilities(found, calibration: Calibration) -> None:
    scores, counts = flat(found)
    got = calibration.posterior(scores, counts)
    assert np.add.reduceat(got, np.cumsum(counts) - counts) == pytest.approx(1, abs=1e-12)
    n = np.repeat(counts, counts)
    assert (got >= calibration.floor / n - 1e-12).all()
    # By the formula, list by list.
    for end, count in zip(np.cumsum(counts), counts, strict=True):
        here = slice(end - count, end)
        temperature = calibration.temperature * (count / 50) ** -calibration.power
        soft = posterior(scores[here], [count], temperature)
        wanted = (1 - calibration.floor) * soft + calibration.floor / count
        assert got[here] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    "drawn_with",
    [Calibration(0.5, 0.4), Calibration(2.0, -0.3), Calibration(0.5, 0.0, 0.3),
     Calibration(1.0, 0.3, 0.2), Calibration(1.0)],
    ids=str,
)  # fmt: skip
def test_the_calibration_that_truths_were_drawn_with_is_found(drawn_with: Calibration) -> None:
    rng = np.random.default_rng(0)
    counts = np.round(np.exp(rng.uniform(np.log(3), np.log(200), 3000))).astype(int)
    scores = rng.normal(size=counts.sum()) * 3
    labels = draw_truths(rng, drawn_with.posterior(scores, counts), counts)
    found = fit_calibration(scores, counts, labels)
    assert found.temperature == pytest.approx(drawn_with.temperature, rel=0.12)
    assert found.power == pytest.approx(drawn_with.power, abs=0.06)
    assert found.floor == pytest.approx(drawn_with.floor, abs=0.04)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.1, 5))
def test_a_calibration_is_never_worse_than_a_temperature_where_it_was_fitted(
    seed: int, temperature: float
) -> None:
    scores, counts, labels = drawn(np.random.default_rng(seed), 25, temperature, most=6)
    plain = posterior(scores, counts, fit_temperature(scores, counts, labels))
    found = fit_calibration(scores, counts, labels).posterior(scores, counts)
    assert log_loss(found, counts, labels) <= log_loss(plain, counts, labels) + 1e-12


def test_each_molecule_counts_once_in_a_calibration() -> None:
    scores, counts, labels = drawn(np.random.default_rng(5), 60, 1.0)
    again = np.repeat(np.arange(60), np.where(np.arange(60) == 7, 30, 1))
    ends = np.cumsum(counts)
    places = np.concatenate([np.arange(ends[i] - counts[i], ends[i]) for i in again])
    found = fit_calibration(scores[places], counts[again], labels[places], groups=again)
    once = fit_calibration(scores, counts, labels)
    assert vars(found) == pytest.approx(vars(once), rel=1e-3, abs=1e-3)


def test_scores_that_say_nothing_calibrate_to_nothing() -> None:
    assert fit_calibration([3.0, 3.0, 8.0], [2, 1], [1, 0, 1]) == Calibration(1.0)
    p = Calibration(0.3, 0.5, 0.1).posterior([3.0] * 4 + [1.0], [4, 1])
    assert p == pytest.approx([0.25] * 4 + [1])


def test_what_is_right_as_often_as_it_says_has_no_error() -> None:
    p = [0.75, 0.25] * 4 + [0.6, 0.4] * 5
    labels = [1, 0] * 3 + [0, 1] + [1, 0] * 3 + [0, 1] * 2
    assert calibration_error(p, [2] * 9, labels) == pytest.approx(0, abs=1e-12)


def test_the_error_by_hand() -> None:
    p = [0.9, 0.1] * 4 + [0.55, 0.45] * 2
    labels = [1, 0] * 2 + [0, 1] * 2 + [1, 0] * 2
    # Four lists at 0.9 are right in half, two at 0.55 always.
    wanted = 4 / 6 * 0.4 + 2 / 6 * 0.45
    assert calibration_error(p, [2] * 6, labels, bins=10) == pytest.approx(wanted)
    curve = reliability(p, [2] * 6, labels, bins=10)
    assert curve.share[[9, 5]] == pytest.approx([4 / 6, 2 / 6])
    assert curve.confidence[[9, 5]] == pytest.approx([0.9, 0.55])
    assert curve.accuracy[[9, 5]] == pytest.approx([0.5, 1])
    assert np.isnan(curve.accuracy[[0, 1, 2, 3, 4, 6, 7, 8]]).all()
    assert curve.edges == pytest.approx(np.arange(11) / 10)
    # In one bin, what is too sure and what is not sure enough make up for one another.
    mean = (4 * 0.9 + 2 * 0.55) / 6
    assert calibration_error(p, [2] * 6, labels, bins=1) == pytest.approx(mean - 4 / 6)


def test_groups_share_their_weight_in_the_error() -> None:
    p, labels = [0.9, 0.1] * 3, [1, 0, 1, 0, 0, 1]
    groups = ["a", "a", "b"]
    assert calibration_error(p, [2] * 3, labels, groups=groups) == pytest.approx(0.9 - 1 / 2)


def test_a_shared_first_place_is_right_as_often_as_its_share() -> None:
    confidence, right = first_places([0.4, 0.4, 0.2, 0.5, 0.5], [3, 2], [0, 1, 0, 1, 1])
    assert confidence.tolist() == [0.4, 0.5]
    assert right.tolist() == [0.5, 1]


def test_the_worst_bin_is_looked_for_among_full_ones() -> None:
    # 400 lists at 0.7, right in 80 %; 300 at 0.5 (tied), right in half; 10 at 0.9, never right.
    p = [0.7, 0.3] * 400 + [0.5, 0.5] * 300 + [0.9, 0.1] * 10
    labels = [1, 0] * 320 + [0, 1] * 80 + [1, 0] * 300 + [0, 1] * 10
    found = reliability(p, [2] * 710, labels)
    at = found.worst()
    assert (found.lists[at], found.accuracy[at]) == (400, 0.8)
    assert found.confidence[at] == pytest.approx(0.7)
    assert found.lists[found.worst(1)] == 10
    assert found.worst(401) is None
    assert found.worst(0) == found.worst(1)  # an empty bin is never the worst
    assert found.lists.sum() == 710
    bins = found.to_list()  # empty ones are left out
    assert [(each["lists"], each["from"]) for each in bins] == [
        (300, pytest.approx(7 / 15)), (400, pytest.approx(10 / 15)), (10, pytest.approx(13 / 15)),
    ]  # fmt: skip


def test_each_group_weighs_one() -> None:
    assert list_weights(None, 3).tolist() == [1, 1, 1]
    assert list_weights(["a", "b", "a", "a"], 4) == pytest.approx([1 / 3, 1, 1 / 3, 1 / 3])
    with pytest.raises(DecisionError, match=r"groups have shape \(2,\), expected \(3,\)"):
        list_weights([1, 2], 3)
    with pytest.raises(DecisionError, match="groups"):
        list_weights(np.array(["a", None], dtype=object), 2)


def test_equal_answers_are_one_in_each_list() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 9, size=40)
    p = rng.random(counts.sum())
    answers = rng.integers(0, 4, size=len(p))  # the same number in another list is another answer
    merged, lengths, labels = merge_equal(p, counts, answers, answers == 2)
    wanted: list[tuple[float, bool]] = []
    sizes = []
    for end, count in zip(np.cumsum(counts), counts, strict=True):
        here = slice(end - count, end)
        sums: dict[int, float] = {}
        for answer, each in zip(answers[here].tolist(), p[here], strict=True):
            sums[answer] = sums.get(answer, 0.0) + each
        wanted += [(total, answer == 2) for answer, total in sums.items()]
        sizes.append(len(sums))
    assert lengths.tolist() == sizes
    assert merged == pytest.approx([total for total, _ in wanted])
    assert labels.tolist() == [label for _, label in wanted]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: posterior([1.0], [1], 0.0), "temperature is 0, expected above 0"),
        (lambda: posterior([1.0], [1], np.nan), "temperature is nan, expected above 0"),
        (lambda: reliability([0.5, 0.5, 0.9], [2, 1], [1, 0, 1]), "list 1 has .* sum to 0.9"),
        (lambda: reliability([1.5, -0.5, 1.0], [2, 1], [1, 0, 1]), "list 0 has .* negative"),
        (lambda: reliability([0.5, 0.5, 1.0], [2, 1], [1, 0, 0]), "list 1 has no labelled cand"),
        (lambda: reliability([0.5, 0.5, 1.0], [2, 1], [1, 0]), "labels have shape"),
        (lambda: reliability([0.5, np.nan, 1.0], [2, 1], [1, 0, 1]), "not finite"),
        (lambda: reliability([0.5, 0.5], [2], [1, 0], 0), "bins is 0, expected at least 1"),
        (lambda: fit_temperature([1.0, 2.0, 3.0], [2, 1], [1, 0, 0]), "list 1 has no labelled"),
        (lambda: fit_calibration([1.0, np.nan], [2], [1, 0]), "not finite"),
    ],
    ids=range(10),
)
def test_what_is_refused(call, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        call()
