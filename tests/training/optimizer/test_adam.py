import pytest
import torch

from mzseek.training.optimizer import Update, update_by_parts, update_fused, update_on

GROUP = {"lr": 3e-3, "betas": (0.9, 0.999), "eps": 1e-8}


def trained(update: Update, divisors: list[float | None]) -> list[torch.Tensor]:
    """Two weights and their moments after as many steps as there are divisors."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(17, 5), (600, 3)]
    weights = [torch.randn(shape, generator=generator) for shape in shapes]
    means, squares = ([torch.zeros(shape) for shape in shapes] for _ in range(2))
    for count, divisor in enumerate(divisors, 1):
        scale = 10.0 ** (count % 6 - 4)
        gradients = [scale * torch.randn(shape, generator=generator) for shape in shapes]
        steps = [torch.tensor(float(count)) for _ in shapes]
        given = None if divisor is None else torch.tensor(divisor)
        update(GROUP, weights, gradients, means, squares, steps, given)
    return [*weights, *means, *squares]


@pytest.mark.parametrize("divisors", [[None], [7.0], [None, 0.5, 30.0, None] * 50], ids=len)
def test_both_updates_are_the_same(divisors: list[float | None]) -> None:
    for one, other in zip(
        trained(update_fused, divisors), trained(update_by_parts, divisors), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("update", [update_fused, update_by_parts])
def test_the_update_is_torch_s_own_adam(update: Update) -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    ours, mean, square = weight.detach().clone(), torch.zeros(3), torch.zeros(3)
    reference = torch.optim.Adam([weight], lr=GROUP["lr"], foreach=False)
    for count in range(1, 50):
        gradient = torch.tensor([0.1, -count, 1e-6 * count])
        weight.grad = gradient.clone()
        reference.step()
        update(GROUP, [ours], [gradient], [mean], [square], [torch.tensor(float(count))], None)
    torch.testing.assert_close(ours, weight.detach(), atol=1e-6, rtol=1e-6)


def refuses(*_: object, **__: object) -> None:
    raise TypeError("got an unexpected keyword argument 'grad_scale'")


def does_nothing(*_: object, **__: object) -> None:
    return None


@pytest.mark.parametrize("answer", [None, refuses, does_nothing])
def test_a_torch_that_has_changed_is_met_with_the_public_update(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = update_on.__wrapped__  # what was found before is not asked
    assert choose("cpu") is update_fused
    if answer is None:
        monkeypatch.delattr(torch, "_fused_adam_")
    else:
        monkeypatch.setattr(torch, "_fused_adam_", answer)
    assert choose("cpu") is update_by_parts
