"""Dot products of dense rows with the sparse rows of their own lists."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mzseek.tensors.rows import SparseRows, query_index


class _GatherDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, rows: SparseRows, counts: Tensor) -> Tensor:
        places = entry_places(rows, counts, dense.shape[1])
        ctx.rows, ctx.places, ctx.shape = rows, places, dense.shape
        flat = dense.reshape(-1, 1)
        return F.embedding_bag(places, flat, rows.starts, mode="sum").squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        gradient = gradients[0]
        back = gradient.new_zeros(ctx.shape[0] * ctx.shape[1])
        back.index_add_(0, ctx.places, torch.repeat_interleave(gradient, ctx.rows.sizes))
        return back.view(ctx.shape), None, None


def gather_dot(dense: Tensor, rows: SparseRows, counts: Tensor) -> Tensor:
    """For each sparse row, the sum of its list's dense row over the sparse row's entries.

    Parameters
    ----------
    dense : float tensor, shape (lists, width)
        One row for each list: a predicted fingerprint.
    rows : SparseRows of ones, shape (candidates, width)
        Candidates of all lists, concatenated.
    counts : int tensor, shape (lists,)
        Candidates in each list.

    Returns
    -------
    tensor, shape (candidates,)
        ``dense[list of i] · rows[i]``, with a gradient for ``dense``.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.from_csr(csr_array([[1, 0, 1], [0, 1, 0]]), binary=True)
    >>> gather_dot(torch.tensor([[0.5, 0.25, 1.0]]), rows, torch.tensor([2])).tolist()
    [1.5, 0.25]
    """
    result: Tensor = _GatherDot.apply(dense, rows, counts)  # type: ignore[no-untyped-call]
    return result


def entry_places(rows: SparseRows, counts: Tensor, width: int) -> Tensor:
    """Where each entry of the rows is in the flattened dense matrix."""
    first = query_index(counts).to(rows.indices.dtype) * width  # of each candidate
    return rows.indices + torch.repeat_interleave(first, rows.sizes)
