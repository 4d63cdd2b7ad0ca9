import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import nn

from mzseek.core.errors import ModelError
from mzseek.models import FingerprintHead, layers
from mzseek.models.layers import Block, Dropout, Linear, SparseLinear, device, machine, threads_set
from mzseek.tensors import SparseRows

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


@pytest.mark.parametrize("rate", [0.25, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_has_the_mask_of_the_output(rate: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.rand(50, 9, dtype=dtype).add(1).requires_grad_()
    out = Dropout(rate)(x)
    weights = torch.rand(50, 9, dtype=dtype)
    assert (out.shape, out.dtype) == (x.shape, dtype)
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
    monkeypatch.setattr(layers._ByteDropout, "apply", lambda *_: pytest.fail("drew bytes"))
    torch.manual_seed(0)
    got = Dropout(rate)(x)
    torch.manual_seed(0)
    assert torch.equal(got, F.dropout(x, rate))


@pytest.mark.parametrize("rate", [-0.25, 1.0, 1.5, float("nan")])
def test_rates_are_shares(rate: float) -> None:
    with pytest.raises(ModelError, match=f"dropout is {rate:g}, expected at least 0 and less than"):
        Dropout(rate)


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


def pair(**options) -> tuple[Linear, nn.Linear]:
    """Two layers with the same weights."""
    torch.manual_seed(0)
    ours, theirs = Linear(7, 5, **options), nn.Linear(7, 5, **options)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def assert_same(ours: nn.Module, theirs: nn.Module, x: torch.Tensor, precision: float) -> None:
    """Outputs, and gradients of the input and of all parameters."""
    results = []
    for layer in (ours, theirs):
        given = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        out = layer(given)
        weights = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
        gradients = torch.autograd.grad((out * weights).sum(), [given, *layer.parameters()])
        results.append([out.detach(), *gradients])
    for got, wanted in zip(*results, strict=True):
        scale = float(wanted.abs().max()) if wanted.numel() else 0.0
        torch.testing.assert_close(got, wanted, rtol=0, atol=precision * scale)


@pytest.mark.parametrize("rows", [0, 1, 2, 64, 1023, 1024, 1025, 1500])
def test_equals_torch_for_few_and_for_many_rows(rows: int) -> None:
    assert_same(*pair(), torch.randn(rows, 7), 1e-5)


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch_for_every_shape_and_type(shape, dtype: torch.dtype, bias: bool) -> None:
    ours, theirs = pair(bias=bias)
    precision = 1e-5 if dtype == torch.float32 else 1e-12
    assert_same(ours.to(dtype), theirs.to(dtype), torch.randn(shape, dtype=dtype), precision)


@pytest.mark.parametrize("rows", [4, 1100])
def test_the_input_need_not_lie_in_one_piece(rows: int) -> None:
    for x in (
        torch.randn(7, rows).T,
        torch.randn(7).expand(rows, 7),
        torch.randn(rows, 14)[:, ::2],
    ):
        assert not x.is_contiguous()
        ours, theirs = pair()
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)
        weights = torch.randn(rows, 5)
        gradients = [
            torch.autograd.grad((layer(x) * weights).sum(), layer.weight)[0]
            for layer in (ours, theirs)
        ]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-4)


def test_without_onednn_it_is_torch_itself(monkeypatch) -> None:
    monkeypatch.setattr(layers, "_ONEDNN", False)
    monkeypatch.setattr(layers, "_onednn", lambda *_: pytest.fail("called oneDNN"))
    assert_same(*pair(), torch.randn(3, 7), 0)


def refuses(*_: object) -> None:
    raise TypeError("linear_pointwise takes 7 arguments")


@pytest.mark.parametrize(
    "answer", [refuses, lambda x, weight, bias: torch.zeros(len(x), len(weight)), None]
)
def test_a_torch_whose_onednn_layer_has_changed_goes_without(answer, monkeypatch) -> None:
    assert layers._has_onednn() == (
        torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
    if answer is None:
        monkeypatch.setattr(torch.ops, "mkldnn", object())
    else:
        monkeypatch.setattr(layers, "_onednn", answer)
    assert not layers._has_onednn()


def test_frozen_weights_get_no_gradient() -> None:
    layer = Linear(7, 5).requires_grad_(False)
    x = torch.randn(3, 7, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(3, 7))


@pytest.mark.parametrize("binary", [True, False])
def test_sparse_rows_give_what_dense_rows_do(binary: bool) -> None:
    matrix = np.array([[0, 2.0, 0, 1], [0, 0, 0, 0], [0, 0.5, 0, 0]], np.float32)
    rows = SparseRows.from_csr(csr_array(matrix), binary=binary)
    layer = SparseLinear(4, 3)
    weight, bias = (each.detach().clone().requires_grad_() for each in layer.parameters())
    outs = layer(rows), F.linear(rows.dense(), weight.T, bias)
    torch.testing.assert_close(*outs)
    for out in outs:
        (out * torch.arange(9.0).view(3, 3)).sum().backward()
    torch.testing.assert_close(layer.weight.grad, weight.grad)
    torch.testing.assert_close(layer.bias.grad, bias.grad)


def test_sparse_weights_start_as_torch_s_do() -> None:
    torch.manual_seed(0)
    layer, dense = SparseLinear(400, 300), nn.Linear(400, 300)
    bound = 1 / math.sqrt(400)
    assert layer.weight.abs().max() <= bound
    assert layer.bias.abs().max() <= bound
    assert layer.weight.std().item() == pytest.approx(dense.weight.std().item(), rel=0.02)
    assert layer.weight.shape == dense.weight.T.shape


def test_an_untrained_head_starts_at_the_base_rates() -> None:
    head = FingerprintHead(5, 4)
    weight = head.weight.detach().clone()
    frequency = torch.tensor([0.02, 0.5, 0.25, 0.9], dtype=torch.float64)
    head.start_at(frequency, molecules=1000)
    torch.testing.assert_close(torch.sigmoid(head(torch.zeros(1, 5)))[0], frequency.float())
    assert torch.equal(head.weight, weight)
    assert head.bias.requires_grad
    # Rates keep half a count from never and always.
    head.start_at(torch.tensor([0.0, 1.0, 0.01, 0.5]), molecules=10)
    rates = torch.sigmoid(head.bias.detach())
    torch.testing.assert_close(rates, torch.tensor([0.05, 0.95, 0.05, 0.5]))
    with pytest.raises(ModelError, match="3 bit frequencies, expected one for each of 4 bits"):
        head.start_at(torch.zeros(3), molecules=10)


def test_a_run_says_where_it_was_made() -> None:
    assert machine() == {"threads": torch.get_num_threads(), "device": device()}


def test_threads_are_set_inside_alone() -> None:
    before = torch.get_num_threads()
    with threads_set(2):
        with threads_set(1):
            assert torch.get_num_threads() == 1
            with threads_set(None):
                assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), threads_set(1):
            raise KeyError
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
