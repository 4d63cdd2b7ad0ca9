import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from mzseek.tensors import SparseRows, product

BINARY = pytest.mark.parametrize("binary", [True, False])
PRECISION = {torch.float64: 1e-12, torch.float32: 1e-5}


def random_weight(height: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(height, 5, generator=generator, dtype=torch.float64)
    return weight.to(dtype).requires_grad_()


def gradient_of(result: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Of a weighted sum of the result's entries, in which no two weigh the same."""
    weights = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).view_as(result)
    return torch.autograd.grad((result * weights).sum(), weight)[0]


@BINARY
@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("transpose", [True, False])
def test_equals_the_dense_product(matrix, sparse, binary, dtype, transpose) -> None:
    rows = sparse(matrix, binary=binary, transpose=transpose)
    weight = random_weight(9, dtype)
    got, wanted = product(rows, weight), rows.dense(dtype) @ weight
    close = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    torch.testing.assert_close(got, wanted, **close)
    torch.testing.assert_close(gradient_of(got, weight), gradient_of(wanted, weight), **close)


@BINARY
def test_gradcheck(matrix, sparse, binary: bool) -> None:
    rows = sparse(matrix, binary=binary)
    weight = random_weight(9, torch.float64)
    assert gradcheck(lambda w: product(rows, w), weight)


def test_entries_given_twice_add_up() -> None:
    rows = SparseRows.from_arrays(np.array([0, 2]), np.array([1, 1]), np.array([0.5, 0.25]), 3)
    weight = torch.ones(3, 2, requires_grad=True)
    result = product(rows, weight)
    assert result.tolist() == [[0.75, 0.75]]
    result.sum().backward()
    assert weight.grad.tolist() == [[0, 0], [0.75, 0.75], [0, 0]]


def test_no_rows_have_no_products_and_a_zero_gradient(sparse) -> None:
    weight = random_weight(9, torch.float32)
    result = product(sparse(np.zeros((0, 9))), weight)
    assert result.shape == (0, 5)
    (gradient,) = torch.autograd.grad(result.sum(), weight)
    assert gradient.shape == (9, 5)
    assert not gradient.any()


@pytest.mark.parametrize("stored", [np.float32, np.float64, np.int64])
def test_values_take_the_type_of_the_weight(sparse, stored) -> None:
    rows = sparse(np.array([[0, 2, 0], [3, 0, 1]], dtype=stored))
    assert product(rows, torch.eye(3)).tolist() == [[0, 2, 0], [3, 0, 1]]
    assert product(rows, torch.eye(3).double()).dtype == torch.float64


def test_without_a_gradient_no_transpose_is_made(matrix, sparse, monkeypatch) -> None:
    monkeypatch.setattr(SparseRows, "ready", lambda _: pytest.fail("made a transpose"))
    weight = random_weight(9, torch.float32)
    with torch.no_grad():
        assert product(sparse(matrix), weight).shape == (7, 5)
