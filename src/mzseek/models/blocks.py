"""The block B of the paper: GELU, dropout, LayerNorm."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mzseek.errors import ModelError


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        draws = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
        draws.random_(torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max)
        kept = (draws.view(torch.uint8)[: x.numel()] >= dropped).view_as(x)
        ctx.save_for_backward(kept)
        ctx.scale = 256 / (256 - dropped)
        return (x * kept).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (gradients[0] * kept).mul_(ctx.scale), None


class Dropout(nn.Module):
    """Dropout that draws one random byte an entry, where torch draws a float.

    Exact for rates that are multiples of 1/256, as 0.25 is; others go to torch.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ModelError(f"dropout is {rate:g}, expected at least 0 and less than 1")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """``x`` with entries set to zero at random and the rest scaled up, in training."""
        if not self.training or self.rate == 0:
            return x
        if (self.rate * 256) % 1 or not x.is_contiguous():
            return F.dropout(x, self.rate)
        result: Tensor = _ByteDropout.apply(x, int(self.rate * 256))  # type: ignore[no-untyped-call]
        return result

    def extra_repr(self) -> str:
        """The rate, for printing."""
        return f"rate={self.rate:g}"


class Block(nn.Module):
    """``LayerNorm(Dropout(GELU(x)))``."""

    def __init__(self, width: int, dropout: float = 0.25) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, of the same shape."""
        result: Tensor = self.norm(self.dropout(F.gelu(x)))
        return result
