import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from mzseek.tensors import Deferred, SparseRows, deferred
from mzseek.tensors.products import defer
from mzseek.training.optimizer import ClippedAdam

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


@pytest.mark.parametrize("clip", [1.0, 0.01, math.inf])
def test_dense_gradients_equal_torch_s_adam_after_clipping(clip: float) -> None:
    pair = Pair([(17, 5), (9,), ()], clip)
    for step in range(300):
        scale = 10.0 ** (step % 5 - 3)  # some are clipped, some are not
        pair.step([scale * torch.randn_like(p) for p in pair.ours])
    pair.assert_equal()


@pytest.mark.parametrize("height", [1, 7, 511, 512, 513, 700, 1025])
def test_gradients_of_few_rows_equal_torch_s_adam_on_dense_ones(height: int) -> None:
    pair = Pair([(height, 3), (4, 4)], clip=1.0)
    for step in range(60):
        rows = torch.randperm(height)[: max(1, height // 10)].sort().values
        if step % 7 == 3:
            rows = torch.tensor([0, height - 1])[: min(height, 2)]
        values = torch.randn(len(rows), 3) * 10.0 ** (step % 4 - 3)
        pair.step([few_rows(rows, values, height), torch.randn(4, 4)])
    pair.assert_equal()


@pytest.mark.parametrize("clip", [1.0, math.inf])
def test_repeated_rows_in_any_order_are_summed(clip: float) -> None:
    pair = Pair([(600, 2)], clip)
    for _ in range(20):
        rows = torch.randint(600, (50,))
        pair.step([few_rows(torch.cat([rows, rows[:9]]), torch.randn(59, 2), 600)])
    pair.assert_equal()


def test_a_weight_used_in_two_ways_gets_the_sum_of_both_gradients() -> None:
    pair = Pair([(600, 2)], clip=1.0)
    for _ in range(10):
        pair.optimizer.zero_grad()
        pair.reference.zero_grad()
        pair.give(0, torch.randn(600, 2))
        pair.give(0, few_rows(torch.tensor([1, 5, 599]), torch.randn(3, 2), 600))
        pair.update()
    pair.assert_equal()


def test_a_gradient_without_rows_moves_what_momentum_moves() -> None:
    pair = Pair([(8, 2)], clip=1.0)
    pair.step([few_rows(torch.tensor([2]), torch.ones(1, 2), 8)])
    for _ in range(5):
        pair.step([few_rows(torch.empty(0, dtype=torch.long), torch.empty(0, 2), 8)])
    pair.assert_equal()
    assert deferred(pair.ours[0]).dense().abs().sum() == 0


def test_a_weight_without_a_gradient_stays() -> None:
    pair = Pair([(3, 2), (4, 2)], clip=1.0)
    before = pair.ours[1].detach().clone()
    pair.step([torch.randn(3, 2), None])
    assert torch.equal(pair.ours[1], before)
    pair.step([torch.randn(3, 2), torch.randn(4, 2)])
    pair.assert_equal()


@pytest.mark.slow
@pytest.mark.parametrize("is_deferred", [True, False])
def test_rows_not_touched_for_long_stay_equal_and_leave_no_denormal_numbers(
    is_deferred: bool,
) -> None:
    pair = Pair([(700, 4)], clip=1.0, lr=1e-4)
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


def test_the_norm_is_that_before_clipping() -> None:
    pair = Pair([(3,), (600, 2)], clip=0.5)
    pair.step(
        [torch.tensor([3.0, 0, 0]), few_rows(torch.tensor([7]), torch.tensor([[0.0, 4]]), 600)]
    )
    assert pair.optimizer.norm == pytest.approx(5.0)


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
