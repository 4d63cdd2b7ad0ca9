import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from mzseek.tensors import gather_dot, query_index
from mzseek.tensors.products import entry_places

PRECISION = {torch.float64: 1e-12, torch.float32: 1e-5}


def random_dense(lists: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    dense = torch.rand(lists, 9, generator=generator, dtype=torch.float64)
    return dense.to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("counted", [torch.int32, torch.int64])
def test_equals_the_dense_sum(matrix, sparse, counts, dtype, counted) -> None:
    rows = sparse(matrix, binary=True)
    dense = random_dense(len(counts), dtype)
    got = gather_dot(dense, rows, counts.to(counted))
    wanted = (dense[query_index(counts)] * rows.dense(dtype)).sum(1)
    close = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    torch.testing.assert_close(got, wanted, **close)
    weights = torch.linspace(-1, 2, len(got), dtype=dtype)
    gradients = [torch.autograd.grad((r * weights).sum(), dense)[0] for r in (got, wanted)]
    torch.testing.assert_close(*gradients, **close)


def test_gradcheck(matrix, sparse, counts) -> None:
    rows = sparse(matrix, binary=True)
    dense = random_dense(len(counts), torch.float64)
    assert gradcheck(lambda d: gather_dot(d, rows, counts), dense)


def test_predictions_need_not_lie_in_one_piece(matrix, sparse, counts) -> None:
    rows = sparse(matrix, binary=True)
    dense = random_dense(len(counts), torch.float64).detach()
    turned = dense.T.contiguous().T.requires_grad_()
    assert not turned.is_contiguous()
    torch.testing.assert_close(gather_dot(turned, rows, counts), gather_dot(dense, rows, counts))
    assert gradcheck(lambda d: gather_dot(d, rows, counts), turned)


def test_an_empty_list_gets_no_gradient(matrix, sparse, counts) -> None:
    dense = random_dense(len(counts), torch.float32)
    gather_dot(dense, sparse(matrix, binary=True), counts).sum().backward()
    assert not dense.grad[counts == 0].any()


@pytest.mark.parametrize("lists", [0, 3])
def test_no_candidates_have_no_products(sparse, lists: int) -> None:
    dense = random_dense(lists, torch.float32)
    rows = sparse(np.zeros((0, 9)), binary=True)
    result = gather_dot(dense, rows, torch.zeros(lists, dtype=torch.int64))
    assert result.shape == (0,)
    (gradient,) = torch.autograd.grad(result.sum(), dense)
    assert gradient.shape == (lists, 9)
    assert not gradient.any()


def test_places_are_those_of_the_flattened_matrix(matrix, sparse, counts) -> None:
    rows = sparse(matrix, binary=True)
    places = entry_places(rows, counts, 9)
    candidates, columns = np.nonzero(matrix)
    lists = query_index(counts).numpy()[candidates]
    assert places.tolist() == np.ravel_multi_index((lists, columns), (len(counts), 9)).tolist()
