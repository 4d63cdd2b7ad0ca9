"""One value for each list, repeated for each of its candidates."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, counts: Tensor) -> Tensor:
        ctx.counts = counts
        return torch.repeat_interleave(values, counts, dim=0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].contiguous()
        if not gradient.numel():
            return gradient.new_zeros((len(ctx.counts), *gradient.shape[1:])), None
        starts = torch.cumsum(ctx.counts, 0) - ctx.counts
        rows = gradient.reshape(len(gradient), -1)
        places = torch.arange(len(rows), device=rows.device)
        total = F.embedding_bag(places, rows, starts, mode="sum")
        return total.view(len(ctx.counts), *gradient.shape[1:]), None


def spread(values: Tensor, counts: Tensor) -> Tensor:
    """Each list's value (a number or a row) once for every candidate of the list.

    The gradient of a list is summed in the order of its candidates. Indexing would do the same
    forwards, but torch sums the gradient of indexing in whatever order its threads come by, and
    two runs would differ in the last digits.

    Parameters
    ----------
    values : tensor, shape (lists,) or (lists, d)
    counts : int64 tensor, shape (lists,)

    Returns
    -------
    tensor, shape (candidates,) or (candidates, d)

    Examples
    --------
    >>> spread(torch.tensor([1.0, 5.0]), torch.tensor([2, 1])).tolist()
    [1.0, 1.0, 5.0]
    """
    result: Tensor = _Spread.apply(values, counts)  # type: ignore[no-untyped-call]
    return result
