import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from mzseek.core.errors import LossError
from mzseek.losses import contrastive, pairwise
from mzseek.losses.ranking import read_lists

LISTWISE = pytest.mark.parametrize("loss", [contrastive, pairwise])
TEMPERATURES = st.sampled_from([1 / 256, 1 / 16, 1.0])
unhurried = settings(deadline=None)

cosines = st.floats(-1, 1, width=32)


@st.composite
def ragged(draw, score=cosines):
    """Lists of (score, label): the truth and its twins, which score alike, anywhere in each."""
    lists = []
    for _ in range(draw(st.integers(1, 4))):
        truth = draw(score)
        others = [(each, False) for each in draw(st.lists(score, max_size=6))]
        lists.append(draw(st.permutations([(truth, True)] * draw(st.integers(1, 3)) + others)))
    return lists


def flat(lists, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Arguments of a listwise loss."""
    scores = torch.tensor([score for each in lists for score, _ in each], dtype=dtype)
    labels = torch.tensor([label for each in lists for _, label in each])
    return scores.requires_grad_(), torch.tensor([len(each) for each in lists]), labels


def value_and_gradient(loss, arguments, temperature: float) -> tuple[float, torch.Tensor]:
    value = loss(*arguments, temperature)
    (gradient,) = torch.autograd.grad(value, arguments[0])
    return value.item(), gradient


@LISTWISE
@unhurried
@given(ragged(), st.randoms(use_true_random=False), TEMPERATURES)
def test_the_order_of_candidates_does_not_matter(loss, lists, random, temperature) -> None:
    shuffled = [random.sample(each, len(each)) for each in lists]
    got = loss(*flat(shuffled), temperature)
    torch.testing.assert_close(got, loss(*flat(lists), temperature), rtol=1e-9, atol=1e-12)


@LISTWISE
@unhurried
@given(ragged(), st.randoms(use_true_random=False), TEMPERATURES)
def test_the_order_of_lists_does_not_matter(loss, lists, random, temperature) -> None:
    shuffled = random.sample(lists, len(lists))
    got = loss(*flat(shuffled), temperature)
    torch.testing.assert_close(got, loss(*flat(lists), temperature), rtol=1e-9, atol=1e-12)


@LISTWISE
@unhurried
@given(ragged(), st.floats(-100, 100), TEMPERATURES)
def test_a_constant_added_to_all_scores_changes_nothing(loss, lists, constant, temperature) -> None:
    scores, counts, labels = flat(lists)
    got = loss(scores + constant, counts, labels, temperature)
    torch.testing.assert_close(got, loss(scores, counts, labels, temperature), rtol=0, atol=1e-9)


@LISTWISE
@unhurried
@given(ragged(), st.floats(-1, 1), TEMPERATURES)
def test_twins_are_no_negatives(loss, lists, score, temperature) -> None:
    """However they score, they neither cost nor move."""
    scores, counts, labels = flat(lists)
    positive = read_lists(scores, counts, labels, temperature).positive
    twin = labels.clone()
    twin[positive] = False
    moved = torch.where(twin, score, scores.detach()).requires_grad_()
    value, gradient = value_and_gradient(loss, (moved, counts, labels), temperature)
    assert not gradient[twin].any()
    alone = [[c for c, left in zip(each, keep, strict=True) if left]
             for each, keep in zip(lists, (~twin).split(counts.tolist()), strict=True)]  # fmt: skip
    wanted, wanted_gradient = value_and_gradient(loss, flat(alone), temperature)
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    torch.testing.assert_close(gradient[~twin], wanted_gradient, rtol=1e-9, atol=1e-12)


@LISTWISE
@unhurried
@given(st.lists(st.tuples(cosines, st.integers(1, 3)), min_size=1, max_size=4), TEMPERATURES)
def test_lists_of_the_truth_alone_cost_nothing(loss, truths, temperature) -> None:
    lists = [[(score, True)] * times for score, times in truths]
    value, gradient = value_and_gradient(loss, flat(lists), temperature)
    assert value == 0
    assert not gradient.any()


@LISTWISE
@unhurried
@given(ragged())
def test_cosines_at_the_lowest_temperature_stay_finite(loss, lists) -> None:
    value, gradient = value_and_gradient(loss, flat(lists, torch.float32), 1 / 256)
    wanted, wanted_gradient = value_and_gradient(loss, flat(lists), 1 / 256)
    assert value == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient.double(), wanted_gradient, rtol=1e-3, atol=1e-1)


@LISTWISE
@unhurried
@given(ragged(score=st.sampled_from([-1e4, -1.0, 0.0, 1.0, 1e4])), TEMPERATURES)
def test_extreme_scores_stay_finite(loss, lists, temperature) -> None:
    value, gradient = value_and_gradient(loss, flat(lists, torch.float32), temperature)
    assert 0 <= value < float("inf")
    assert gradient.isfinite().all()


@LISTWISE
@pytest.mark.parametrize("temperature", [1 / 16, 1.0])
def test_gradcheck(loss, temperature: float) -> None:
    lists = [[(0.3, True)], [(0.1, False), (0.4, True), (0.5, False)], [(0.2, True), (0.2, False)]]
    scores, counts, labels = flat(lists)
    assert gradcheck(lambda each: loss(each, counts, labels, temperature), scores)


def test_the_first_label_is_the_positive() -> None:
    labels = torch.tensor([False, True, True, True, False])
    lists = read_lists(torch.zeros(5), torch.tensor([3, 2]), labels, 1.0)
    assert lists.positive.tolist() == [1, 3]
    assert lists.negative.tolist() == [True, False, False, False, True]
    assert lists.query.tolist() == [0, 0, 0, 1, 1]
    assert lists.total(torch.arange(5.0)).tolist() == [3, 7]


@LISTWISE
@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_the_temperature_must_be_positive(loss, temperature: float) -> None:
    with pytest.raises(LossError, match=f"temperature is {temperature:g}, expected more than 0"):
        loss(torch.zeros(1), torch.tensor([1]), torch.tensor([True]), temperature)


@LISTWISE
@pytest.mark.parametrize(
    ("scores", "counts", "labels", "message"),
    [
        ([0.0, 1.0], [2], [True], r"scores \(2,\) and labels \(1,\): expected two equal lengths"),
        ([[0.0, 1.0]], [2], [[True, True]], r"scores \(1, 2\) and labels \(1, 2\): expected two"),
        ([0.0, 1.0], [3], [True, False], "counts add up to 3, expected the 2 scores there are"),
        ([0.0, 1.0], [3, -1], [True, False], "counts hold -1, expected 0 or more"),
        ([0.0, 1.0], [1, 1], [True, False], "list 1 has no labelled candidate, expected the truth"),
        ([0.0, 1.0], [2, 0], [True, False], "list 1 has no labelled candidate"),
        ([], [], [], "counts are empty, expected at least one list"),
    ],
)
def test_what_is_refused(loss, scores, counts, labels, message: str) -> None:
    with pytest.raises(LossError, match=message):
        loss(torch.tensor(scores), torch.tensor(counts), torch.tensor(labels, dtype=torch.bool))
