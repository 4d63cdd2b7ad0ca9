"""Sparse rows times a dense matrix, with a gradient that is as sparse as the rows."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.tensors.deferral import Deferred, accepts_deferred, defer
from mzseek.tensors.rows import SparseRows


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: SparseRows, may_defer: bool) -> Tensor:
        if ctx.needs_input_grad[0]:
            ctx.rows = rows
            ctx.height = len(weight)
            # A GPU has the memory speed to write the gradient out, and dislikes many small calls.
            may_defer = may_defer and weight.device.type == "cpu" and accepts_deferred(weight)
            ctx.weight = weight if may_defer else None
        return _bags(weight, rows.indices, rows.starts, rows.values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None]:
        rows = ctx.rows.ready()
        gradient = gradients[0].contiguous()
        if ctx.weight is not None:
            defer(ctx.weight, Deferred(rows, gradient))
            return None, None, None
        turned = rows.transposed
        touched = _bags(gradient, turned.indices, turned.starts, turned.values)
        if len(turned.columns) == ctx.height:
            return touched, None, None
        full = gradient.new_zeros((ctx.height, gradient.shape[1]))
        return full.index_copy_(0, turned.columns, touched), None, None


def product(rows: SparseRows, weight: Tensor, *, may_defer: bool = False) -> Tensor:
    """Rows times a matrix: for each row, the sum of the matrix rows where it has an entry.

    Parameters
    ----------
    rows : SparseRows, shape (n, width)
    weight : float tensor, shape (width, d)
    may_defer : bool
        Leave the weight's gradient as its two factors (`Deferred`) where the weight's optimiser
        accepts that, as `mzseek.training` 's does. It pays for a weight with many more rows than a
        batch touches: of the 10,050 bins, some 3,000.

    Returns
    -------
    tensor, shape (n, d)

    Notes
    -----
    Both directions are sums over bags of rows: forward over a row's entries, backward over a
    column's. `torch.nn.functional.embedding_bag` has the fastest kernel for that, but its own
    backward pass sorts and scatters; with the transpose at hand its *forward* does for both.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.from_csr(csr_array([[0.0, 2.0, 1.0]]))
    >>> product(rows, torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 5.0]])).tolist()
    [[2.0, 5.0]]
    """
    result: Tensor = _Product.apply(weight, rows, may_defer)  # type: ignore[no-untyped-call]
    return result


def _bags(table: Tensor, indices: Tensor, starts: Tensor, values: Tensor | None) -> Tensor:
    if values is not None:
        values = values.to(table.dtype)
    return F.embedding_bag(indices, table, starts, mode="sum", per_sample_weights=values)
