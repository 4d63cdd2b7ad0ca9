import pytest
import torch

from mzseek.losses import iou


@pytest.mark.shared
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_as_published(golden, form: str) -> None:
    golden.assert_equals("iou", lambda e: iou(golden.logits(e), golden.truths[form]))


def test_equals_the_product_form() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(5, 20, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 2, (5, 20), generator=generator).double()
    wanted = [
        1 - (y @ t) / (y.sum() + t.sum() - y @ t)
        for y, t in zip(torch.sigmoid(logits), target, strict=True)
    ]
    torch.testing.assert_close(iou(logits, target), torch.stack(wanted).mean())


def test_a_truth_without_bits_has_nothing_in_common() -> None:
    assert iou(torch.zeros(1, 3), torch.zeros(1, 3)).item() == 1


def test_no_bits_predicted_for_no_bits_is_right() -> None:
    logits = torch.full((1, 3), -1e4, requires_grad=True)
    loss = iou(logits, torch.zeros(1, 3))
    assert loss.item() == 0
    loss.backward()
    assert logits.grad.tolist() == [[0, 0, 0]]
