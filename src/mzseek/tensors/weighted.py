"""Sparse rows whose entries are looked up in a prediction, times a dense matrix."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.tensors.gather import entry_places
from mzseek.tensors.rows import SparseRows, query_index


class _WeightedProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dense: Tensor, rows: SparseRows, counts: Tensor, weight: Tensor
    ) -> Tensor:
        places = entry_places(rows, counts, dense.shape[1])
        values = dense.reshape(-1)[places]
        ctx.rows, ctx.shape = rows, dense.shape
        ctx.save_for_backward(places, counts, weight, dense)
        return F.embedding_bag(
            rows.indices, weight, rows.starts, mode="sum", per_sample_weights=values
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        places, counts, weight, dense = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        for_dense = for_weight = None
        if ctx.needs_input_grad[0]:
            of_row = query_index(ctx.rows.sizes).int()
            # The dot product of each row's gradient with the matrix row of each of its entries.
            of_entry = torch.ops.aten._embedding_bag_per_sample_weights_backward(
                gradient, weight, ctx.rows.indices, ctx.rows.starts, of_row, 0
            )
            flat = gradient.new_zeros(ctx.shape[0] * ctx.shape[1])
            for_dense = flat.index_add_(0, places, of_entry).view(ctx.shape)
        if ctx.needs_input_grad[3]:
            turned = ctx.rows.ready().transposed
            column = torch.repeat_interleave(
                turned.columns, _lengths(turned.starts, len(turned.indices))
            )
            values = dense.reshape(-1)[query_index(counts)[turned.indices] * ctx.shape[1] + column]
            touched = F.embedding_bag(
                turned.indices, gradient, turned.starts, mode="sum", per_sample_weights=values
            )
            for_weight = torch.zeros_like(weight).index_copy_(0, turned.columns, touched)
        return for_dense, None, None, for_weight


def weighted_product(dense: Tensor, rows: SparseRows, counts: Tensor, weight: Tensor) -> Tensor:
    """``(dense[list of i] ⊙ rows[i]) @ weight`` for each candidate i.

    Parameters
    ----------
    dense : float tensor, shape (lists, width)
    rows : SparseRows of ones, shape (candidates, width)
    counts : int tensor, shape (lists,)
    weight : float tensor, shape (width, d)

    Returns
    -------
    tensor, shape (candidates, d), with gradients for ``dense`` and ``weight``
    """
    result: Tensor = _WeightedProduct.apply(dense, rows, counts, weight)  # type: ignore[no-untyped-call]
    return result


def _lengths(starts: Tensor, total: int) -> Tensor:
    ends = torch.cat([starts[1:], starts.new_tensor([total])])
    return ends - starts
