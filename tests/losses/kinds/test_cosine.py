import pytest
import torch
import torch.nn.functional as F

from mzseek.losses import cosine


@pytest.mark.shared
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_as_published(golden, form: str) -> None:
    golden.assert_equals("cosine", lambda e: cosine(golden.logits(e), golden.truths[form]))


def test_equals_the_cosine_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(5, 20, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 2, (5, 20), generator=generator).double()
    wanted = 1 - F.cosine_similarity(torch.sigmoid(logits), target).mean()
    torch.testing.assert_close(cosine(logits, target), wanted)


def test_a_truth_without_bits_has_nothing_in_common() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    loss = cosine(logits, torch.tensor([[0.0, 0, 0], [1, 1, 1]]))
    assert loss.item() == pytest.approx(0.5)
    loss.backward()
    assert logits.grad[0].tolist() == [0, 0, 0]


def test_no_bits_predicted_for_no_bits_is_right() -> None:
    logits = torch.full((1, 3), -1e4, requires_grad=True)
    loss = cosine(logits, torch.zeros(1, 3))
    assert loss.item() == 0
    loss.backward()
    assert logits.grad.tolist() == [[0, 0, 0]]
