import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array

from mzseek.core.errors import LossError
from mzseek.losses import bce, focal
from mzseek.tensors import SparseRows

GAMMAS = pytest.mark.parametrize("gamma", [0, 0.5, 1, 2, 5])


@pytest.mark.shared
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("gamma", [0.5, 2.0, 5.0])
def test_as_published(golden, form: str, gamma: float) -> None:
    golden.assert_equals(
        f"focal_gamma{gamma}", lambda e: focal(golden.logits(e), golden.truths[form], gamma)
    )


@pytest.fixture
def batch() -> tuple[torch.Tensor, dict[str, torch.Tensor | SparseRows]]:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(3, 20, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 2, (3, 20), generator=generator).double()
    sparse = SparseRows.from_csr(csr_array(target.numpy()), binary=True)
    return logits.requires_grad_(), {"dense": target, "sparse": sparse}


@GAMMAS
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_weighs_the_cross_entropy_by_the_error(batch, gamma: float, form: str) -> None:
    logits, targets = batch
    cost = F.binary_cross_entropy_with_logits(logits, targets["dense"], reduction="none")
    wanted = ((1 - torch.exp(-cost)) ** gamma * cost).mean()
    got = focal(logits, targets[form], gamma)
    torch.testing.assert_close(got, wanted, rtol=1e-10, atol=0)
    gradients = [torch.autograd.grad(each, logits)[0] for each in (got, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_without_gamma_it_is_bce(batch, form: str) -> None:
    logits, targets = batch
    torch.testing.assert_close(focal(logits, targets[form], 0), bce(logits, targets[form]))


def test_the_paper_s_choice_is_the_default(batch) -> None:
    logits, targets = batch
    assert focal(logits, targets["dense"]) == focal(logits, targets["dense"], 2)


@GAMMAS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_extreme_logits_have_finite_gradients(gamma: float, dtype, form: str) -> None:
    logits = torch.tensor([[-1e4, -1e4, 1e4, 1e4, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    bits = np.array([[0.0, 1, 0, 1, 0, 1]])
    target = (
        torch.from_numpy(bits).to(dtype)
        if form == "dense"
        else SparseRows.from_csr(csr_array(bits), binary=True)
    )
    focal(logits, target, gamma).backward()
    assert logits.grad.isfinite().all()
    # Right and sure costs nothing more; wrong and sure costs as much as in BCE.
    assert logits.grad[0, :4].tolist() == pytest.approx([0, -1 / 6, 1 / 6, 0])


@pytest.mark.parametrize("gamma", [-0.5, float("nan")])
def test_gamma_must_not_be_negative(gamma: float) -> None:
    with pytest.raises(LossError, match=f"gamma is {gamma:g}, expected 0 or more"):
        focal(torch.zeros(1, 2), torch.zeros(1, 2), gamma)
