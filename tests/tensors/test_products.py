from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from mzseek.tensors import (
    SparseRows,
    gather_dot,
    mapped_norm,
    product,
    query_index,
    weighted_product,
)

PRECISION = {torch.float64: 1e-12, torch.float32: 1e-5}


@dataclass(frozen=True)
class Operation:
    """A sparse operation, what it computes on dense rows, and the shapes of its arguments."""

    sparse: Callable[..., Tensor]
    dense: Callable[..., Tensor]
    shapes: Callable[[int], tuple[tuple[int, ...], ...]]  # from the number of lists
    binary: bool = True  # whether it is of rows of ones


PRODUCT = Operation(
    lambda rows, counts, w: product(rows, w),
    lambda rows, lists, w: rows @ w,
    lambda n: ((9, 5),),
)
OPERATIONS = {
    "product": PRODUCT,
    "product of values": replace(PRODUCT, binary=False),
    "gather_dot": Operation(
        lambda rows, counts, d: gather_dot(d, rows, counts),
        lambda rows, lists, d: (d[lists] * rows).sum(1),
        lambda n: ((n, 9),),
    ),
    "weighted_product": Operation(
        lambda rows, counts, d, w: weighted_product(d, rows, counts, w),
        lambda rows, lists, d, w: (d[lists] * rows) @ w,
        lambda n: ((n, 9), (9, 5)),
    ),
    "mapped_norm": Operation(
        lambda rows, counts, w, b: mapped_norm(rows, w, b),
        lambda rows, lists, w, b: torch.linalg.vector_norm(rows @ w + b, dim=1),
        lambda n: ((9, 5), (5,)),
    ),
}


@pytest.fixture(params=OPERATIONS)
def operation(request) -> Operation:
    return OPERATIONS[request.param]


def arguments(operation: Operation, lists: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in operation.shapes(lists)
    ]


def gradients(result: Tensor, given: list[Tensor]) -> tuple[Tensor, ...]:
    """Of a weighted sum of the result's entries, in which no two weigh the same."""
    weights = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).view_as(result)
    return torch.autograd.grad((result * weights).sum(), given)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("counted", [torch.int32, torch.int64])
def test_equals_the_dense_operation(
    operation, matrix, sparse, counts, dtype, transpose, counted
) -> None:
    rows = sparse(matrix, binary=operation.binary, transpose=transpose)
    given = arguments(operation, len(counts), dtype)
    got = operation.sparse(rows, counts.to(counted), *given)
    wanted = operation.dense(rows.dense(dtype), query_index(counts), *given)
    close = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    torch.testing.assert_close(got, wanted, **close)
    torch.testing.assert_close(gradients(got, given), gradients(wanted, given), **close)


def test_gradcheck(operation, matrix, sparse, counts) -> None:
    """Also where a gradient is wanted of one argument alone."""
    rows = sparse(matrix, binary=operation.binary)
    given = arguments(operation, len(counts), torch.float64)
    choices = [(True,)] if len(given) == 1 else [(True, True), (True, False), (False, True)]
    for needed in choices:
        some = [
            each.detach().requires_grad_(need) for each, need in zip(given, needed, strict=True)
        ]
        assert gradcheck(lambda *each: operation.sparse(rows, counts, *each), some)


@pytest.mark.parametrize("lists", [0, 3])
def test_no_rows_have_no_result_and_zero_gradients(operation, sparse, lists: int) -> None:
    given = arguments(operation, lists, torch.float32)
    rows = sparse(np.zeros((0, 9)), binary=True)
    result = operation.sparse(rows, torch.zeros(lists, dtype=torch.int64), *given)
    assert len(result) == 0
    for gradient, each in zip(torch.autograd.grad(result.sum(), given), given, strict=True):
        assert gradient.shape == each.shape
        assert not gradient.any()


def test_without_a_gradient_no_transpose_is_made(
    operation, matrix, sparse, counts, monkeypatch
) -> None:
    monkeypatch.setattr(SparseRows, "ready", lambda _: pytest.fail("made a transpose"))
    with torch.no_grad():
        given = arguments(operation, len(counts), torch.float32)
        assert len(operation.sparse(sparse(matrix, binary=operation.binary), counts, *given)) == 7


def test_entries_given_twice_add_up() -> None:
    rows = SparseRows.from_arrays(np.array([0, 2]), np.array([1, 1]), np.array([0.5, 0.25]), 3)
    weight = torch.ones(3, 2, requires_grad=True)
    result = product(rows, weight)
    assert result.tolist() == [[0.75, 0.75]]
    result.sum().backward()
    assert weight.grad.tolist() == [[0, 0], [0.75, 0.75], [0, 0]]


@pytest.mark.parametrize("stored", [np.float32, np.float64, np.int64])
def test_values_take_the_type_of_the_weight(sparse, stored) -> None:
    rows = sparse(np.array([[0, 2, 0], [3, 0, 1]], dtype=stored))
    assert product(rows, torch.eye(3)).tolist() == [[0, 2, 0], [3, 0, 1]]
    assert product(rows, torch.eye(3).double()).dtype == torch.float64


def test_columns_and_lists_without_entries_get_no_gradient(sparse, counts) -> None:
    matrix = np.zeros((7, 9))
    matrix[:, 4] = 1
    dense, weight = arguments(OPERATIONS["weighted_product"], len(counts), torch.float32)
    weighted_product(dense, sparse(matrix, binary=True), counts, weight).sum().backward()
    assert weight.grad.any(1).nonzero().squeeze(1).tolist() == [4]
    assert dense.grad.any(0).nonzero().squeeze(1).tolist() == [4]
    assert not dense.grad[counts == 0].any()


def test_a_zero_vector_has_a_zero_gradient(sparse) -> None:
    weight, bias = torch.ones(9, 5, requires_grad=True), torch.zeros(5, requires_grad=True)
    norm = mapped_norm(sparse(np.zeros((2, 9)), binary=True), weight, bias)
    assert norm.tolist() == [0, 0]
    norm.sum().backward()
    assert not weight.grad.any()
    assert not bias.grad.any()
