import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mzseek.losses import contrastive
from mzseek.models.scorers import EmbCos, EmbMlp, FpCos, Scorer


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


@settings(deadline=None)
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


def test_no_temperature_is_a_temperature_of_one() -> None:
    scores, counts = torch.tensor([0.3, -0.2]), torch.tensor([2])
    labels = torch.tensor([True, False])
    assert contrastive(scores, counts, labels) == contrastive(scores, counts, labels, 1.0)
