"""Norms of sparse rows after a linear map."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.tensors.rows import SparseRows


class _MappedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, rows: SparseRows) -> Tensor:
        mapped = F.embedding_bag(rows.indices, weight, rows.starts, mode="sum").add_(bias)
        norm: Tensor = torch.linalg.vector_norm(mapped, dim=1)
        if any(ctx.needs_input_grad):
            ctx.rows, ctx.height = rows, len(weight)
            ctx.save_for_backward(mapped, norm)
        return norm

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        mapped, norm = ctx.saved_tensors
        turned = ctx.rows.ready().transposed
        # d‖v‖ = v/‖v‖, and none where v is zero. As a weight of the bags it costs no pass over v.
        share = torch.where(norm > 0, gradients[0] / norm, torch.zeros_like(norm))
        touched = F.embedding_bag(
            turned.indices, mapped, turned.starts, mode="sum",
            per_sample_weights=share[turned.indices],
        )  # fmt: skip
        for_bias = share @ mapped
        if len(turned.columns) == ctx.height:
            return touched, for_bias, None
        full = mapped.new_zeros((ctx.height, mapped.shape[1]))
        return full.index_copy_(0, turned.columns, touched), for_bias, None


def mapped_norm(rows: SparseRows, weight: Tensor, bias: Tensor) -> Tensor:
    """``‖row W + b‖`` of each row of ones, shape (rows,), with gradients for W and b.

    Parameters
    ----------
    rows : SparseRows of ones, shape (n, width)
    weight : float tensor, shape (width, d)
    bias : float tensor, shape (d,)

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.from_csr(csr_array([[1, 1], [0, 0]]), binary=True)
    >>> mapped_norm(rows, torch.tensor([[3.0, 0.0], [0.0, 4.0]]), torch.zeros(2)).tolist()
    [5.0, 0.0]
    """
    result: Tensor = _MappedNorm.apply(weight, bias, rows)  # type: ignore[no-untyped-call]
    return result
