import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import nn

from mzseek.models import layers as linear
from mzseek.models.layers import Linear, SparseLinear
from mzseek.tensors import SparseRows


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
    monkeypatch.setattr(linear, "_ONEDNN", False)
    monkeypatch.setattr(linear, "_onednn", lambda *_: pytest.fail("called oneDNN"))
    assert_same(*pair(), torch.randn(3, 7), 0)


def refuses(*_: object) -> None:
    raise TypeError("linear_pointwise takes 7 arguments")


@pytest.mark.parametrize(
    "answer", [refuses, lambda x, weight, bias: torch.zeros(len(x), len(weight)), None]
)
def test_a_torch_whose_onednn_layer_has_changed_goes_without(answer, monkeypatch) -> None:
    assert linear._has_onednn() == (
        torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
    if answer is None:
        monkeypatch.setattr(torch.ops, "mkldnn", object())
    else:
        monkeypatch.setattr(linear, "_onednn", answer)
    assert not linear._has_onednn()


def test_an_input_without_gradient_is_left_without() -> None:
    ours, theirs = pair()
    x = torch.randn(3, 7)
    for layer in (ours, theirs):
        layer(x).square().sum().backward()
    assert x.grad is None
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)


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
