"""Adam with gradient clipping."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.adam import adam

from mzseek.tensors import Deferred, accept_deferred, deferred, forget_deferred

# Rows of a weight whose gradient is made and used at a time: with 1,024 columns that is 2 MB, which
# stays in cache and is never written to memory nor read back.
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
    that spectra pick rows of may have its gradient deferred (`mzseek.tensors.Deferred`): the norm
    comes from the two factors, and each block of rows is made just before it is used.

    Parameters
    ----------
    parameters : iterable of Parameter
    lr : float
    clip : float
        Largest norm of the whole gradient; infinity for none.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float = 1e-4, clip: float = 1.0
    ) -> None:
        super().__init__(parameters, {"lr": lr})
        self.clip = clip
        self.norm = 0.0  # of the last gradient, before clipping
        for group in self.param_groups:
            for parameter in group["params"]:
                accept_deferred(parameter)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Do one update and return what the closure returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                factors = deferred(parameter)
                if factors is not None and parameter.grad is not None:
                    # Also used by other means than a sparse product, it has two gradients.
                    parameter.grad += factors.dense()
                    forget_deferred(parameter)
            dense = [p for p in group["params"] if p.grad is not None]
            factored = [(p, d) for p in group["params"] if (d := deferred(p)) is not None]
            if dense or factored:
                self._update(group, dense, factored)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, the deferred ones included."""
        super().zero_grad(set_to_none)
        for group in self.param_groups:
            for parameter in group["params"]:
                forget_deferred(parameter)

    def _update(
        self,
        group: dict[str, Any],
        dense: list[nn.Parameter],
        factored: list[tuple[nn.Parameter, Deferred]],
    ) -> None:
        divisor = self._divisor([p.grad for p in dense if p.grad is not None], factored)
        updates = [(p.data, p.grad, *self._state_of(p)) for p in dense]
        if updates:
            self._fused(group, divisor, *map(list, zip(*updates, strict=True)))
        for parameter, gradient in factored:
            *moments, step = self._state_of(parameter)
            tensors = (parameter.data, *moments)
            blocks = zip(
                gradient.blocks(_ROWS), *(torch.split(t, _ROWS) for t in tensors), strict=True
            )
            for rows, weight, mean, square in blocks:
                self._fused(group, divisor, [weight], [rows], [mean], [square], [step.clone()])
            step += 1
        trained = [*dense, *(parameter for parameter, _ in factored)]
        if int(self.state[trained[0]]["step"]) % _CLEAR_EVERY == 0:
            for parameter in trained:
                for moment in ("exp_avg", "exp_avg_sq"):
                    values = self.state[parameter][moment]
                    values.copy_(F.hardshrink(values, _NEGLIGIBLE))

    def _divisor(
        self, gradients: list[Tensor], factored: list[tuple[nn.Parameter, Deferred]]
    ) -> Tensor | None:
        """Return the number that clips the gradient when it is divided by it, or None."""
        flat = [gradient.reshape(-1) for gradient in gradients]
        # A dot product reads once and writes nothing, unlike a norm by way of powers.
        squares = [torch.dot(values, values) for values in flat]
        squares += [gradient.square().to(gradient.outer.dtype) for _, gradient in factored]
        norm = torch.stack(squares).sum().sqrt()
        self.norm = float(norm)
        if not self.norm > self.clip:
            return None
        return (norm + 1e-6) / self.clip  # the same small term as in clip_grad_norm_

    @staticmethod
    def _fused(
        group: dict[str, Any],
        divisor: Tensor | None,
        weights: list[Tensor],
        gradients: list[Tensor],
        means: list[Tensor],
        squares: list[Tensor],
        steps: list[Tensor],
    ) -> None:
        """Apply torch's update in one pass over each weight; it counts the steps."""
        adam(
            weights, gradients, means, squares, [], steps, fused=True, grad_scale=divisor,
            amsgrad=False, beta1=0.9, beta2=0.999, lr=group["lr"], weight_decay=0.0, eps=1e-8,
            maximize=False,
        )  # fmt: skip

    def _state_of(self, parameter: nn.Parameter) -> tuple[Tensor, Tensor, Tensor]:
        """Both moments, and the count of steps before this one."""
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        return state["exp_avg"], state["exp_avg_sq"], state["step"]
