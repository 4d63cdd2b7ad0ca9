import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from mzseek.core.errors import LossError
from mzseek.losses import combined, contrastive, iou, pairwise
from mzseek.losses.ranking import read_lists
from mzseek.models.scorers import EmbCos, EmbMlp, FpCos, Scorer

LISTWISE = pytest.mark.parametrize("loss", [contrastive, pairwise])
TEMPERATURES = st.sampled_from([1 / 256, 1 / 16, 1.0])

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
@given(ragged(), st.randoms(use_true_random=False), TEMPERATURES)
def test_the_order_of_candidates_and_lists_does_not_matter(
    loss, lists, random, temperature
) -> None:
    shuffled = random.sample([random.sample(each, len(each)) for each in lists], len(lists))
    got = loss(*flat(shuffled), temperature)
    torch.testing.assert_close(got, loss(*flat(lists), temperature), rtol=1e-9, atol=1e-12)


@LISTWISE
@given(ragged(), st.floats(-100, 100), TEMPERATURES)
def test_a_constant_added_to_all_scores_changes_nothing(loss, lists, constant, temperature) -> None:
    scores, counts, labels = flat(lists)
    got = loss(scores + constant, counts, labels, temperature)
    torch.testing.assert_close(got, loss(scores, counts, labels, temperature), rtol=0, atol=1e-9)


@LISTWISE
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
@given(st.lists(st.tuples(cosines, st.integers(1, 3)), min_size=1, max_size=4), TEMPERATURES)
def test_lists_of_the_truth_alone_cost_nothing(loss, truths, temperature) -> None:
    lists = [[(score, True)] * times for score, times in truths]
    value, gradient = value_and_gradient(loss, flat(lists), temperature)
    assert value == 0
    assert not gradient.any()


@LISTWISE
@given(ragged())
def test_cosines_at_the_lowest_temperature_stay_finite(loss, lists) -> None:
    value, gradient = value_and_gradient(loss, flat(lists, torch.float32), 1 / 256)
    wanted, wanted_gradient = value_and_gradient(loss, flat(lists), 1 / 256)
    assert value == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient.double(), wanted_gradient, rtol=1e-3, atol=1e-1)


@LISTWISE
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


def load(scorer: Scorer, weights: dict[str, Tensor]) -> Scorer:
    """The scorer in float64 with these weights; LayerNorms stay as they start."""
    scorer = scorer.double().eval()
    norms = {name: each for name, each in scorer.state_dict().items() if ".norm." in name}
    scorer.load_state_dict(norms | weights)
    return scorer


@pytest.fixture
def scorers(golden) -> dict[str, Scorer]:
    projections = {
        "spectrum.weight": golden["w_sp"],
        "spectrum.bias": golden["b_sp"],
        "candidate.weight": golden["w_c"].T,
        "candidate.bias": golden["b_c"],
    }
    layers = {
        f"{layer}.{part}": golden[f"emb_mlp_{part[0]}{n}"]
        for n, layer in enumerate(["first", "rest.1", "rest.3"], start=1)
        for part in ("weight", "bias")
    }
    return {
        "fp_cos": FpCos(),
        "emb_cos": load(EmbCos(32, 4096, 16), projections),
        "emb_mlp": load(EmbMlp(32, 4096, 16, 0.25), projections | layers),
    }


@pytest.mark.shared
@pytest.mark.parametrize(
    ("scorer", "temperature"),
    [
        ("fp_cos", 1 / 256),
        ("fp_cos", 1 / 16),
        ("fp_cos", 1.0),
        ("emb_cos", 1 / 64),
        ("emb_cos", 1.0),
        ("emb_mlp", 1 / 16),
    ],
)
def test_as_published(golden, scorers, scorer: str, temperature: float) -> None:
    name = f"{scorer}_tau{temperature}"

    def loss(embeddings: Tensor) -> Tensor:
        read = torch.sigmoid(golden.logits(embeddings)) if scorer == "fp_cos" else embeddings
        scores = scorers[scorer](read, golden.candidates, golden["candidate_counts"])
        golden.assert_close(scores, f"scores_{name}")
        return contrastive(scores, *golden.lists, temperature)

    golden.assert_equals(name, loss)


@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from([1 / 256, 1 / 16, 1.0, 4.0]),
    st.randoms(use_true_random=False),
)
def test_equals_the_cross_entropy_of_torch(lists: int, length: int, temperature, random) -> None:
    table = torch.tensor([[random.uniform(-1, 1) for _ in range(length)] for _ in range(lists)])
    table = table.double().requires_grad_()
    truth = torch.tensor([random.randrange(length) for _ in range(lists)])
    labels = F.one_hot(truth, length).bool()
    counts = torch.full((lists,), length)
    got = contrastive(table.flatten(), counts, labels.flatten(), temperature)
    wanted = F.cross_entropy(table / temperature, truth)
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-12)
    gradients = [torch.autograd.grad(each, table)[0] for each in (got, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-12)


def test_the_mean_is_over_lists_not_candidates() -> None:
    scores = torch.zeros(6)
    labels = torch.tensor([True, False, True, False, False, False])
    wanted = torch.tensor([2.0, 4.0]).log().mean()
    torch.testing.assert_close(contrastive(scores, torch.tensor([2, 4]), labels), wanted)


@given(ragged(), TEMPERATURES)
def test_pairwise_equals_a_plain_loop(lists, temperature: float) -> None:
    losses = []
    for each in lists:
        positive = next(score for score, label in each if label)
        others = [(score - positive) / temperature for score, label in each if not label]
        costs = [np.logaddexp(0, difference) for difference in others]
        losses.append(sum(costs) / len(costs) if costs else 0.0)
    got = pairwise(*flat(lists), temperature).item()
    assert got == pytest.approx(sum(losses) / len(losses), rel=1e-9)


BATCH = {
    "logits": torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]]),
    "target": torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
    "scores": torch.tensor([0.2, 0.9, 0.1]),
    "counts": torch.tensor([2, 1]),
    "labels": torch.tensor([True, False, True]),
}
LISTWISE = [BATCH[name] for name in ("scores", "counts", "labels")]


@pytest.mark.shared
@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_combined_as_published(golden, weight: float, form: str) -> None:
    name = f"combined_tau1over256_lambda{weight}"

    def loss(embeddings: torch.Tensor) -> torch.Tensor:
        logits = golden.logits(embeddings)
        scores = FpCos()(torch.sigmoid(logits), golden.candidates, golden["candidate_counts"])
        golden.assert_close(scores, f"scores_{name}")
        return combined(logits, golden.truths[form], scores, *golden.lists, 1 / 256, weight)

    golden.assert_equals(name, loss)


@pytest.mark.parametrize("temperature", [1 / 16, 1.0])
def test_the_ends_are_the_two_losses(temperature: float) -> None:
    listwise = contrastive(*LISTWISE, temperature)
    vectorwise = iou(BATCH["logits"], BATCH["target"])
    assert combined(**BATCH, temperature=temperature, weight=1) == listwise
    assert combined(**BATCH, temperature=temperature, weight=0) == vectorwise
    torch.testing.assert_close(
        combined(**BATCH, temperature=temperature), (listwise + vectorwise) / 2
    )


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_the_weight_must_be_a_share(weight: float) -> None:
    with pytest.raises(LossError, match=f"weight is {weight:g}, expected 0 to 1"):
        combined(**BATCH, weight=weight)
