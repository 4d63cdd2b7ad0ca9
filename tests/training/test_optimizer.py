import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from mzseek.tensors import Deferred, SparseRows, deferred
from mzseek.tensors.products import defer
from mzseek.training.optimizer import ClippedAdam, Update, update_by_parts, update_fused, update_on

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


SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def few_rows(rows: Tensor, values: Tensor, height: int) -> Deferred:
    """A gradient with these values in these rows, as a batch that touches only them leaves it."""
    one_each = csr_array(
        (np.ones(len(rows), np.float32), (np.arange(len(rows)), rows.numpy())),
        shape=(len(rows), height),
    )
    return Deferred(SparseRows.from_csr(one_each, transpose=True), values)


class Pair:
    """The same weights under `ClippedAdam` and under torch's clipping and Adam."""

    def __init__(self, shapes: list[tuple[int, ...]], clip: float, lr: float = 1e-3) -> None:
        torch.manual_seed(0)
        self.ours = [nn.Parameter(torch.randn(shape)) for shape in shapes]
        self.torchs = [nn.Parameter(p.detach().clone()) for p in self.ours]
        self.clip = clip
        self.optimizer = ClippedAdam(self.ours, lr=lr, clip=clip)
        self.reference = torch.optim.Adam(self.torchs, lr=lr, foreach=False)

    def step(self, gradients: list[Tensor | Deferred | None]) -> None:
        self.optimizer.zero_grad()
        self.reference.zero_grad()
        for place, gradient in enumerate(gradients):
            self.give(place, gradient)
        self.update()

    def give(self, place: int, gradient: Tensor | Deferred | None) -> None:
        """Leave a gradient with both weights, added to what is there."""
        if gradient is None:
            return
        ours, torchs = self.ours[place], self.torchs[place]
        if isinstance(gradient, Deferred):
            defer(ours, gradient)
            gradient = gradient.dense()
        else:
            ours.grad = gradient.clone()
        torchs.grad = gradient if torchs.grad is None else torchs.grad + gradient

    def update(self) -> None:
        if math.isfinite(self.clip):
            nn.utils.clip_grad_norm_(self.torchs, self.clip)
        self.optimizer.step()
        self.reference.step()

    def assert_equal(self, atol: float = 1e-6) -> None:
        for ours, torchs in zip(self.ours, self.torchs, strict=True):
            torch.testing.assert_close(ours, torchs, atol=atol, rtol=1e-6)


@pytest.fixture(params=["fused", "by parts"])
def make_pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[Pair]:
    """Everything holds with torch's own update, and with that by public operations alone."""
    if request.param == "by parts":
        monkeypatch.setattr("mzseek.training.optimizer.update_on", lambda device: update_by_parts)
        monkeypatch.setattr(torch, "_fused_adam_", lambda *_, **__: pytest.fail("called torch's"))
    return Pair


@pytest.mark.parametrize("clip", [1.0, 0.01, math.inf])
def test_dense_gradients_equal_torch_s_adam_after_clipping(make_pair, clip: float) -> None:
    pair = make_pair([(17, 5), (9,), ()], clip)
    for step in range(300):
        scale = 10.0 ** (step % 5 - 3)  # some are clipped, some are not
        pair.step([scale * torch.randn_like(p) for p in pair.ours])
    pair.assert_equal()


@pytest.mark.parametrize("height", [1, 7, 511, 512, 513, 700, 1025])
def test_gradients_of_few_rows_equal_torch_s_adam_on_dense_ones(make_pair, height: int) -> None:
    pair = make_pair([(height, 3), (4, 4)], clip=1.0)
    for step in range(60):
        rows = torch.randperm(height)[: max(1, height // 10)].sort().values
        if step % 7 == 3:
            rows = torch.tensor([0, height - 1])[: min(height, 2)]
        values = torch.randn(len(rows), 3) * 10.0 ** (step % 4 - 3)
        pair.step([few_rows(rows, values, height), torch.randn(4, 4)])
    pair.assert_equal()


@pytest.mark.parametrize("clip", [1.0, math.inf])
def test_repeated_rows_in_any_order_are_summed(make_pair, clip: float) -> None:
    pair = make_pair([(600, 2)], clip)
    for _ in range(20):
        rows = torch.randint(600, (50,))
        pair.step([few_rows(torch.cat([rows, rows[:9]]), torch.randn(59, 2), 600)])
    pair.assert_equal()


def test_a_weight_used_in_two_ways_gets_the_sum_of_both_gradients(make_pair) -> None:
    pair = make_pair([(600, 2)], clip=1.0)
    for _ in range(10):
        pair.optimizer.zero_grad()
        pair.reference.zero_grad()
        pair.give(0, torch.randn(600, 2))
        pair.give(0, few_rows(torch.tensor([1, 5, 599]), torch.randn(3, 2), 600))
        pair.update()
    pair.assert_equal()


def test_a_gradient_without_rows_moves_what_momentum_moves(make_pair) -> None:
    pair = make_pair([(8, 2)], clip=1.0)
    pair.step([few_rows(torch.tensor([2]), torch.ones(1, 2), 8)])
    for _ in range(5):
        pair.step([few_rows(torch.empty(0, dtype=torch.long), torch.empty(0, 2), 8)])
    pair.assert_equal()
    assert deferred(pair.ours[0]).dense().abs().sum() == 0


def test_weights_of_several_widths_take_turns(make_pair) -> None:
    pair = make_pair([(600, 2), (40, 5), (513, 2)], clip=1.0)
    for _ in range(30):
        gradients = [
            few_rows(torch.randperm(len(p))[:9].sort().values, torch.randn(9, p.shape[1]), len(p))
            for p in pair.ours
        ]
        pair.step(gradients)
    pair.assert_equal()


def test_a_weight_without_a_gradient_stays(make_pair) -> None:
    pair = make_pair([(3, 2), (4, 2)], clip=1.0)
    before = pair.ours[1].detach().clone()
    pair.step([torch.randn(3, 2), None])
    assert torch.equal(pair.ours[1], before)
    pair.step([torch.randn(3, 2), torch.randn(4, 2)])
    pair.assert_equal()


@pytest.mark.parametrize("is_deferred", [True, False])
def test_rows_not_touched_for_long_stay_equal_and_leave_no_denormal_numbers(
    make_pair,
    is_deferred: bool,
) -> None:
    pair = make_pair([(700, 4)], clip=1.0, lr=1e-4)
    for step in range(900):  # after 830, moments would be denormal
        rows = torch.arange(0, 700, 3) if step < 20 else torch.tensor([1, 600])
        gradient = few_rows(rows, torch.randn(len(rows), 4), 700)
        pair.step([gradient if is_deferred else gradient.dense()])
        if step % 99 == 98:  # also just before it would be cleared
            for moment in ("exp_avg", "exp_avg_sq"):
                values = pair.optimizer.state[pair.ours[0]][moment].abs()
                assert not ((values > 0) & (values < SMALLEST_NORMAL)).any()
    pair.assert_equal()
    moments = pair.optimizer.state[pair.ours[0]]["exp_avg"]
    assert not moments[3:600:3].any()  # faded, and cleared
    assert moments[1].any()


def test_the_norm_is_that_before_clipping(make_pair) -> None:
    pair = make_pair([(3,), (600, 2)], clip=0.5)
    pair.step(
        [torch.tensor([3.0, 0, 0]), few_rows(torch.tensor([7]), torch.tensor([[0.0, 4]]), 600)]
    )
    assert pair.optimizer.norm == pytest.approx(5.0)


def test_the_learning_rate_is_read_at_every_step(make_pair) -> None:
    pair = make_pair([(3, 2)], clip=1.0)
    for step in range(10):
        for optimizer in (pair.optimizer, pair.reference):
            optimizer.param_groups[0]["lr"] = 1e-3 * step
        pair.step([torch.randn(3, 2)])
    pair.assert_equal()


def test_a_closure_is_called_and_its_value_returned() -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = ClippedAdam([weight], lr=0.1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure).detach()) == 2.0
    assert torch.allclose(weight, torch.tensor(0.9))
