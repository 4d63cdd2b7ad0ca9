"""Adam with clipping, for dense gradients and for gradients of few rows."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

# Rows of a weight that are updated at a time: with 1,024 columns their gradient is 2 MB and stays
# in cache, so that the zeros between the touched rows are never written to memory nor read back.
_ROWS = 512

# The moments of a row that is not touched for long fade by 0.9 a step, until they are denormal
# numbers, with which many CPUs compute far slower. Below this they move no weight any
# more (1e-30 over the eps of 1e-8, times the learning rate), and in 100 steps they can fade only by
# 3e-5, so that clearing them every 100 steps keeps all above 1e-38.
_NEGLIGIBLE = 1e-30
_CLEAR_EVERY = 100


class ClippedAdam(torch.optim.Optimizer):
    """Adam after clipping the gradient to a norm; the numbers are those of `torch.optim.Adam`.

    Two things make it faster than ``clip_grad_norm_`` and ``torch.optim.Adam`` in turn. The scaling
    by the norm is done inside the fused update, and only if the norm is too large. And a weight
    that spectra pick rows of may have a sparse gradient (the rows that were touched): its moments
    decay and its other rows move on as Adam wants it, but the zeros are never made in memory.

    Parameters
    ----------
    parameters : iterable of Parameter
    lr : float
    clip : float
        Largest norm of the whole gradient; infinity for none.
    betas, eps
        As in `torch.optim.Adam`.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 1e-4,
        clip: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})
        self.clip = clip
        self.norm = 0.0  # of the last gradient, before clipping
        self._rows: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update; returns what the closure returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            trained = [p for p in group["params"] if p.grad is not None]
            if trained:
                self._update(group, trained, self._divisor(trained))
        return loss

    def _divisor(self, trained: list[nn.Parameter]) -> Tensor | None:
        """What the gradient is to be divided by, or None."""
        squares = [_square(p.grad) for p in trained if p.grad is not None]
        norm = torch.stack(squares).sum().sqrt()
        self.norm = float(norm)
        if not self.norm > self.clip:
            return None
        return (norm + 1e-6) / self.clip  # the same small term as in clip_grad_norm_

    def _update(
        self, group: dict[str, Any], trained: list[nn.Parameter], divisor: Tensor | None
    ) -> None:
        dense: list[nn.Parameter] = []
        for parameter in trained:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
            if state["step"].device != parameter.device:  # Lightning leaves it behind when it moves
                state["step"] = state["step"].to(parameter.device)
            state["step"] += 1
            if parameter.grad is not None and parameter.grad.is_sparse:
                self._update_rows(group, parameter, divisor)
            else:
                dense.append(parameter)
        if dense:
            states = [self.state[p] for p in dense]
            _fused(
                group,
                [p.data for p in dense],
                [p.grad for p in dense if p.grad is not None],
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [s["step"] for s in states],
                divisor,
            )
        if int(self.state[trained[0]]["step"]) % _CLEAR_EVERY == 0:
            for parameter in trained:
                for moment in ("exp_avg", "exp_avg_sq"):
                    values = self.state[parameter][moment]
                    torch.ops.aten.hardshrink.out(values, _NEGLIGIBLE, out=values)

    def _update_rows(
        self, group: dict[str, Any], parameter: nn.Parameter, divisor: Tensor | None
    ) -> None:
        state = self.state[parameter]
        gradient = parameter.grad
        assert gradient is not None
        touched, values = _touched_rows(gradient)
        height = min(_ROWS, len(parameter))
        if self._rows is None or self._rows.shape != (height, parameter.shape[1]):
            self._rows = torch.zeros((height, parameter.shape[1]), device=parameter.device)
        borders = torch.arange(0, len(parameter) + height, height, device=touched.device)
        cuts = torch.searchsorted(touched, borders).tolist()
        for place, (low, high) in enumerate(pairwise(cuts)):
            start = place * height
            end = min(start + height, len(parameter))
            block = self._rows[: end - start]
            here = touched[low:high] - start
            block.index_copy_(0, here, values[low:high])
            moments = state["exp_avg"][start:end], state["exp_avg_sq"][start:end]
            _fused(
                group, [parameter.data[start:end]], [block], [moments[0]], [moments[1]],
                [state["step"]], divisor,
            )  # fmt: skip
            block.index_fill_(0, here, 0.0)


def _fused(
    group: dict[str, Any],
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    divisor: Tensor | None,
) -> None:
    beta1, beta2 = group["betas"]
    torch._fused_adam_(
        parameters, gradients, means, squares, [], steps,
        lr=group["lr"], beta1=beta1, beta2=beta2, weight_decay=0.0, eps=group["eps"],
        amsgrad=False, maximize=False, grad_scale=divisor, found_inf=None,
    )  # fmt: skip


def _touched_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows a sparse gradient has, rising, and their values."""
    rows = gradient._indices()[0]
    # torch forgets that a gradient it has stored is in order; looking is cheaper than sorting.
    if not bool((rows[1:] > rows[:-1]).all()):
        gradient = gradient.coalesce()
        rows = gradient._indices()[0]
    return rows, gradient._values()


def _square(gradient: Tensor) -> Tensor:
    values = _touched_rows(gradient)[1] if gradient.is_sparse else gradient
    flat = values.reshape(-1)
    return torch.dot(flat, flat)  # reads once and writes nothing, unlike a norm by way of powers
