import pytest
import torch
import torch.nn.functional as F

from mzseek.losses import bce

FORMS = pytest.mark.parametrize("form", ["dense", "sparse"])


@pytest.mark.shared
@FORMS
def test_as_published(golden, form: str) -> None:
    golden.assert_equals("bce", lambda e: bce(golden.logits(e), golden.truths[form]))


@pytest.mark.parametrize("soft", [False, True])
def test_equals_the_loss_of_torch(soft: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 8 * torch.randn(3, 20, generator=generator, dtype=torch.float64)
    target = torch.rand(3, 20, generator=generator, dtype=torch.float64)
    target = target if soft else target.round()
    wanted = F.binary_cross_entropy_with_logits(logits, target)
    torch.testing.assert_close(bce(logits, target), wanted, rtol=1e-12, atol=0)


@pytest.mark.parametrize("logit", [-1e4, 1e4])
def test_extreme_logits_cost_their_size(logit: float) -> None:
    logits = torch.full((1, 3), logit, requires_grad=True)
    wrong = torch.full((1, 3), float(logit < 0))
    loss = bce(logits, wrong)
    assert loss.item() == pytest.approx(1e4)
    loss.backward()
    assert logits.grad[0].tolist() == pytest.approx([(1 if logit > 0 else -1) / 3] * 3)
