import copy

import numpy as np
import pytest
import torch
from torch import nn

from mzseek.tensors import Deferred, SparseRows, accept_deferred, deferred, forget_deferred, product

HEIGHTS = [1, 2, 3, 4, 8, 9, 50]


def outer(rows: SparseRows, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows.shape[0], 5, generator=generator, dtype=torch.float64)


def accepting(height: int = 9) -> nn.Parameter:
    weight = nn.Parameter(torch.ones(height, 5, dtype=torch.float64))
    accept_deferred(weight)
    return weight


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("height", HEIGHTS)
def test_blocks_are_those_of_the_dense_gradient(matrix, sparse, binary, height) -> None:
    rows = sparse(matrix, binary=binary).ready()
    gradient = Deferred(rows, outer(rows))
    wanted = rows.dense(torch.float64).T @ gradient.outer
    blocks = list(gradient.blocks(height))
    assert [len(block) for block in blocks] == [len(part) for part in wanted.split(height)]
    torch.testing.assert_close(torch.cat(blocks), wanted)
    torch.testing.assert_close(gradient.dense(), wanted)
    assert float(gradient.square()) == pytest.approx(float(wanted.square().sum()))


def test_the_square_of_more_rows_than_a_gram_matrix_is_made_for(sparse) -> None:
    rows = sparse((np.random.default_rng(0).random((600, 9)) < 0.3).astype(float)).ready()
    gradient = Deferred(rows, outer(rows))
    assert float(gradient.square()) == pytest.approx(float(gradient.dense().square().sum()))


def test_a_square_that_cancels_is_not_noise(sparse) -> None:
    """Two equal spectra whose gradients point apart: the sum is tiny, its terms are not."""
    rows = sparse(np.full((2, 9), 0.1, np.float32)).ready()
    away = torch.tensor([[1.0] * 5, [-1.0 - 2**-20] * 5])
    gradient = Deferred(rows, away)
    wanted = float(gradient.dense().double().square().sum())
    assert 0 < wanted < 1e-10
    assert float(gradient.square()) == pytest.approx(wanted, rel=1e-3)


def test_gradients_of_two_batches_add_up(matrix, sparse) -> None:
    weight = accepting()
    for binary in (True, False):
        product(sparse(matrix, binary=binary), weight, may_defer=True).sum().backward()
    wanted = ((matrix != 0).sum(0) + matrix.sum(0))[:, None].repeat(5, 1)
    np.testing.assert_allclose(deferred(weight).dense(), wanted, atol=1e-12)
    assert weight.grad is None
    forget_deferred(weight)
    assert deferred(weight) is None


def test_without_an_optimiser_that_reads_it_the_gradient_is_where_torch_has_it(
    matrix, sparse
) -> None:
    weight = nn.Parameter(torch.ones(9, 5, dtype=torch.float64))
    product(sparse(matrix), weight, may_defer=True).sum().backward()
    assert deferred(weight) is None
    np.testing.assert_allclose(weight.grad, matrix.sum(0)[:, None].repeat(5, 1), atol=1e-12)


def test_a_product_that_may_not_defer_does_not(matrix, sparse) -> None:
    weight = accepting()
    product(sparse(matrix), weight).sum().backward()
    assert deferred(weight) is None
    assert weight.grad is not None


def test_no_rows_have_a_zero_gradient(sparse) -> None:
    weight = accepting()
    product(sparse(np.zeros((0, 9))), weight, may_defer=True).sum().backward()
    gradient = deferred(weight)
    assert gradient.dense().shape == (9, 5)
    assert not gradient.dense().any()
    assert float(gradient.square()) == 0


def test_a_copy_of_a_weight_defers_nothing(matrix, sparse) -> None:
    weight = copy.deepcopy(accepting())
    product(sparse(matrix), weight, may_defer=True).sum().backward()
    assert weight.grad is not None
