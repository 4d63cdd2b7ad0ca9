import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mzseek.core.errors import ModelError
from mzseek.models import layers as blocks
from mzseek.models.layers import Block, Dropout

EXACT = [0.25, 0.5, 1 / 256, 255 / 256]


@pytest.mark.parametrize("rate", EXACT)
def test_the_rate_is_exact_in_the_mean_and_the_rest_is_scaled(rate: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(1 << 22)
    out = Dropout(rate)(x)
    kept = out != 0
    assert out[kept].unique().tolist() == pytest.approx([1 / (1 - rate)], rel=1e-6)
    spread = (rate * (1 - rate) / x.numel()) ** 0.5
    assert kept.double().mean().item() == pytest.approx(1 - rate, abs=4 * spread)


def test_entries_are_dropped_independently() -> None:
    torch.manual_seed(0)
    kept = (Dropout(0.25)(torch.ones(1 << 16, 16)) != 0).double()
    between = torch.corrcoef(kept.T) - torch.eye(16)
    assert between.abs().max() < 5 / 256  # five times its spread
    assert torch.corrcoef(torch.stack([kept[1:, 0], kept[:-1, 0]]))[0, 1].abs() < 5 / 256


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4), (0, 4), ()])
def test_every_shape_is_kept(shape) -> None:
    x = torch.full(shape, 2.0)
    out = Dropout(0.5)(x)
    assert out.shape == x.shape
    assert set(out.flatten().tolist()) <= {0.0, 4.0}
    assert (x == 2).all(), "the argument is left as it was"


@pytest.mark.parametrize("rate", [0.25, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_has_the_mask_of_the_output(rate: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.rand(50, 9, dtype=dtype).add(1).requires_grad_()
    out = Dropout(rate)(x)
    weights = torch.rand(50, 9, dtype=dtype)
    (gradient,) = torch.autograd.grad((out * weights).sum(), x)
    assert (out == 0).any()
    torch.testing.assert_close(gradient, weights * out.detach() / x.detach())


@pytest.mark.parametrize("rate", [0.25, 0.3])
def test_the_seed_decides(rate: float) -> None:
    draws = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        draws.append(torch.stack([Dropout(rate)(torch.ones(100)) for _ in range(2)]))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert not torch.equal(*draws[0])


@pytest.mark.parametrize("rate", [0.25, 0.3])
def test_evaluation_drops_nothing(rate: float) -> None:
    x = torch.randn(10)
    assert Dropout(rate).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize(
    ("rate", "x"), [(0.3, torch.ones(64, 64)), (0.25, torch.ones(64, 128)[:, ::2])]
)
def test_other_rates_and_scattered_memory_go_to_torch(rate: float, x, monkeypatch) -> None:
    monkeypatch.setattr(blocks._ByteDropout, "apply", lambda *_: pytest.fail("drew bytes"))
    torch.manual_seed(0)
    got = Dropout(rate)(x)
    torch.manual_seed(0)
    assert torch.equal(got, F.dropout(x, rate))


@pytest.mark.parametrize("rate", [-0.25, 1.0, 1.5, float("nan")])
def test_rates_are_shares(rate: float) -> None:
    with pytest.raises(ModelError, match=f"dropout is {rate:g}, expected at least 0 and less than"):
        Dropout(rate)


def test_the_rate_is_printed() -> None:
    assert repr(Block(3)).count("rate=0.25") == 1


@pytest.mark.parametrize("training", [True, False])
def test_a_block_is_the_paper_s(training: bool) -> None:
    torch.manual_seed(0)
    block = Block(6).train(training)
    nn.init.normal_(block.norm.weight)
    x = torch.randn(5, 6)
    torch.manual_seed(1)
    got = block(x)
    torch.manual_seed(1)
    dropped = Dropout(0.25)(nn.GELU()(x)) if training else nn.GELU()(x)
    wanted = F.layer_norm(dropped, (6,), block.norm.weight, block.norm.bias)
    torch.testing.assert_close(got, wanted)
