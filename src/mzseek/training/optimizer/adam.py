"""Adam's update of weights and moments, by torch's fused function or by public operations."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

Update = Callable[
    [dict[str, Any], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor],
     Tensor | None],
    None,
]  # fmt: skip


def update_by_parts(
    group: dict[str, Any],
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    divisor: Tensor | None,
) -> None:
    """Adam's update in torch's public operations, several passes over each weight."""
    beta1, beta2 = group["betas"]
    for parameter, gradient, mean, square, step in zip(
        parameters, gradients, means, squares, steps, strict=True
    ):
        scaled = gradient if divisor is None else gradient / divisor
        mean.lerp_(scaled, 1 - beta1)
        square.mul_(beta2).addcmul_(scaled, scaled, value=1 - beta2)
        count = float(step)
        root = square.sqrt().div_((1 - beta2**count) ** 0.5).add_(group["eps"])
        parameter.addcdiv_(mean, root, value=-group["lr"] / (1 - beta1**count))


def update_fused(
    group: dict[str, Any],
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    divisor: Tensor | None,
) -> None:
    """The same in one pass, by a function that torch keeps to itself and may change."""
    beta1, beta2 = group["betas"]
    torch._fused_adam_(
        parameters, gradients, means, squares, [], steps,
        lr=group["lr"], beta1=beta1, beta2=beta2, weight_decay=0.0, eps=group["eps"],
        amsgrad=False, maximize=False, grad_scale=divisor, found_inf=None,
    )  # fmt: skip


@cache
def update_on(device: str) -> Update:
    """The faster update, where this torch has it and it does what the other one does."""
    group = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}
    with torch.inference_mode(False), torch.no_grad():
        tried = []
        for update in (update_by_parts, update_fused):
            weight, mean, square = (
                torch.full((2,), value, device=device) for value in (1.0, 0.2, 3.0)
            )
            gradient = torch.tensor([0.5, -2.0], device=device)
            step, divisor = torch.tensor(3.0, device=device), torch.tensor(4.0, device=device)
            try:
                update(group, [weight], [gradient], [mean], [square], [step], divisor)
            except (AttributeError, TypeError, RuntimeError):
                return update_by_parts
            tried.append(torch.stack([weight, mean, square]))
        same = torch.allclose(tried[0], tried[1], atol=1e-6)
        return update_fused if same else update_by_parts
