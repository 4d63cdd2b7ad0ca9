import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mzseek.models.encoders.fourier import FourierFeatures as TorchFourier
from mzseek.networks.layers import FourierFeatures, LayerNorm, gelu, sigmoid, softmax
from mzseek.networks.weights import Weights

NUMBERS = arrays(
    np.float32,
    st.tuples(st.integers(0, 5), st.integers(1, 9)),
    elements=st.floats(-1e4, 1e4, width=32),
)


@given(NUMBERS)
def test_gelu_is_torchs(x: np.ndarray) -> None:
    wanted = F.gelu(torch.from_numpy(x).double()).numpy()
    assert np.abs(gelu(x) - wanted).max(initial=0.0) <= 1e-6 * max(1, np.abs(x).max(initial=0.0))


def test_gelu_over_its_whole_range() -> None:
    x = np.linspace(-12, 12, 300_001, dtype=np.float32)  # more than is worked on at a time
    wanted = F.gelu(torch.from_numpy(x).double()).numpy()
    assert np.abs(gelu(x) - wanted).max() < 1e-6


@given(NUMBERS)
def test_sigmoid_is_torchs_and_never_overflows(x: np.ndarray) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        found = sigmoid(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, torch.sigmoid(torch.from_numpy(x)).numpy(), 1e-5, 1e-30)


@given(NUMBERS.filter(len))
def test_softmax_is_torchs(x: np.ndarray) -> None:
    wanted = torch.softmax(torch.from_numpy(x), -1).numpy()
    np.testing.assert_allclose(softmax(x), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(3, 8), (2, 5, 8), (0, 8)])
def test_layer_norm_is_torchs(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 5 + 3).astype(np.float32)
    weight, bias = rng.normal(size=(2, 8)).astype(np.float32)
    norm = LayerNorm(Weights({"weight": weight, "bias": bias}), 8)
    wanted = F.layer_norm(
        *map(torch.from_numpy, (x,)), (8,), *map(torch.from_numpy, (weight, bias))
    )
    np.testing.assert_allclose(norm(x), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_rows_that_are_constant_are_normed_to_the_bias() -> None:
    norm = LayerNorm(Weights({"weight": np.ones(4), "bias": np.arange(4.0)}), 4)
    assert norm(np.full((1, 4), 7, np.float32)).tolist() == [[0, 1, 2, 3]]


def test_fourier_features_are_torchs() -> None:
    mz = np.array([[0, 50.001, 199.9999], [500, 1000.5, 1999.99]], np.float32)
    found, wanted = FourierFeatures()(mz), TorchFourier()(torch.from_numpy(mz)).numpy()
    assert found.shape == wanted.shape == (2, 3, FourierFeatures.width)
    assert np.abs(found - wanted).max() < 1e-6
