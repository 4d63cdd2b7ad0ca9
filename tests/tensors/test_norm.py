import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from mzseek.tensors import SparseRows, mapped_norm

PRECISION = {torch.float64: 1e-12, torch.float32: 1e-5}


def random_layer(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    weight = torch.randn(9, 5, generator=generator, dtype=torch.float64)
    bias = torch.randn(5, generator=generator, dtype=torch.float64)
    return weight.to(dtype).requires_grad_(), bias.to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("transpose", [True, False])
def test_equals_the_dense_norm(matrix, sparse, dtype, transpose: bool) -> None:
    rows = sparse(matrix, binary=True, transpose=transpose)
    layer = weight, bias = random_layer(dtype)
    got = mapped_norm(rows, weight, bias)
    wanted = torch.linalg.vector_norm(rows.dense(dtype) @ weight + bias, dim=1)
    close = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    torch.testing.assert_close(got, wanted, **close)
    weights = torch.linspace(-1, 2, len(got), dtype=dtype)
    gradients = [torch.autograd.grad((r * weights).sum(), layer) for r in (got, wanted)]
    torch.testing.assert_close(*gradients, **close)


@pytest.mark.parametrize("needed", [(True, True), (True, False), (False, True)])
def test_gradcheck(matrix, sparse, needed) -> None:
    rows = sparse(matrix, binary=True)
    layer = random_layer(torch.float64)
    layer = [each.detach().requires_grad_(need) for each, need in zip(layer, needed, strict=True)]
    assert gradcheck(lambda w, b: mapped_norm(rows, w, b), layer)


def test_a_zero_vector_has_a_zero_gradient(sparse) -> None:
    weight, bias = torch.ones(9, 5, requires_grad=True), torch.zeros(5, requires_grad=True)
    norm = mapped_norm(sparse(np.zeros((2, 9)), binary=True), weight, bias)
    assert norm.tolist() == [0, 0]
    norm.sum().backward()
    assert not weight.grad.any()
    assert not bias.grad.any()


def test_no_rows_have_no_norms(sparse) -> None:
    layer = random_layer(torch.float32)
    norm = mapped_norm(sparse(np.zeros((0, 9)), binary=True), *layer)
    assert norm.shape == (0,)
    for gradient, each in zip(torch.autograd.grad(norm.sum(), layer), layer, strict=True):
        assert gradient.shape == each.shape
        assert not gradient.any()


def test_without_a_gradient_no_transpose_is_made(matrix, sparse, monkeypatch) -> None:
    monkeypatch.setattr(SparseRows, "ready", lambda _: pytest.fail("made a transpose"))
    with torch.no_grad():
        assert mapped_norm(sparse(matrix, binary=True), *random_layer(torch.float32)).shape == (7,)
