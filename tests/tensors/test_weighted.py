import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from mzseek.tensors import SparseRows, query_index, weighted_product

PRECISION = {torch.float64: 1e-12, torch.float32: 1e-5}


def random_pair(lists: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    dense = torch.rand(lists, 9, generator=generator, dtype=torch.float64)
    weight = torch.randn(9, 5, generator=generator, dtype=torch.float64)
    return dense.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("counted", [torch.int32, torch.int64])
def test_equals_the_dense_product(matrix, sparse, counts, dtype, transpose, counted) -> None:
    rows = sparse(matrix, binary=True, transpose=transpose)
    pair = dense, weight = random_pair(len(counts), dtype)
    got = weighted_product(dense, rows, counts.to(counted), weight)
    wanted = (dense[query_index(counts)] * rows.dense(dtype)) @ weight
    close = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    torch.testing.assert_close(got, wanted, **close)
    weights = torch.linspace(-1, 2, got.numel(), dtype=dtype).view_as(got)
    gradients = [torch.autograd.grad((r * weights).sum(), pair) for r in (got, wanted)]
    torch.testing.assert_close(*gradients, **close)


@pytest.mark.parametrize("needed", [(True, True), (True, False), (False, True)])
def test_gradcheck(matrix, sparse, counts, needed) -> None:
    rows = sparse(matrix, binary=True)
    pair = random_pair(len(counts), torch.float64)
    pair = [each.detach().requires_grad_(need) for each, need in zip(pair, needed, strict=True)]
    assert gradcheck(lambda d, w: weighted_product(d, rows, counts, w), pair)


def test_columns_never_touched_get_no_gradient(sparse, counts) -> None:
    matrix = np.zeros((7, 9))
    matrix[:, 4] = 1
    dense, weight = random_pair(len(counts), torch.float32)
    weighted_product(dense, sparse(matrix, binary=True), counts, weight).sum().backward()
    assert weight.grad.any(1).nonzero().squeeze(1).tolist() == [4]
    assert dense.grad.any(0).nonzero().squeeze(1).tolist() == [4]
    assert not dense.grad[counts == 0].any()


@pytest.mark.parametrize("lists", [0, 3])
def test_no_candidates_have_no_products(sparse, lists: int) -> None:
    pair = dense, weight = random_pair(lists, torch.float32)
    rows = sparse(np.zeros((0, 9)), binary=True)
    result = weighted_product(dense, rows, torch.zeros(lists, dtype=torch.int64), weight)
    assert result.shape == (0, 5)
    for gradient, each in zip(torch.autograd.grad(result.sum(), pair), pair, strict=True):
        assert gradient.shape == each.shape
        assert not gradient.any()


def test_without_a_gradient_no_transpose_is_made(matrix, sparse, counts, monkeypatch) -> None:
    monkeypatch.setattr(SparseRows, "ready", lambda _: pytest.fail("made a transpose"))
    dense, weight = random_pair(len(counts), torch.float32)
    with torch.no_grad():
        result = weighted_product(dense, sparse(matrix, binary=True), counts, weight)
    assert result.shape == (7, 5)
