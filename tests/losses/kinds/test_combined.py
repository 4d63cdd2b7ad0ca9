import pytest
import torch

from mzseek.core.errors import LossError
from mzseek.losses import combined, contrastive, iou
from mzseek.models.scorers import FpCos

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
def test_as_published(golden, weight: float, form: str) -> None:
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": torch.zeros(2, 4)}, "expected two equal shapes"),
        ({"counts": torch.tensor([3, 1])}, "counts add up to 4, expected the 3 scores"),
        ({"labels": torch.tensor([False, False, True])}, "list 0 has no labelled candidate"),
        ({"temperature": 0.0}, "temperature is 0, expected more than 0"),
    ],
)
def test_what_either_part_refuses_is_refused(change, message: str) -> None:
    with pytest.raises(LossError, match=message):
        combined(**BATCH | change)
