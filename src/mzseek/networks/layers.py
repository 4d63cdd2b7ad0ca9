"""The layers of `mzseek.models` on numpy arrays, without what only training needs."""

import math

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.networks.weights import Array, Weights

# Numbers that are worked on at a time: a few arrays of so many stay in a core's cache.
_AT_ONCE = 1 << 16
_EPSILON = np.float32(1e-5)  # torch's, in LayerNorm


class Linear:
    """``x Wᵀ + b``."""

    def __init__(self, weights: Weights, inputs: int, outputs: int) -> None:
        self.weight = weights.take("weight", (outputs, inputs))
        self.bias = weights.take("bias", (outputs,))

    def __call__(self, x: Array) -> Array:
        """Outputs, shape (rows, outputs)."""
        result: Array = x @ self.weight.T
        result += self.bias
        return result


class SparseLinear:
    """``rows W + b`` of sparse rows; the weight is stored as (inputs, outputs)."""

    def __init__(self, weights: Weights, inputs: int, outputs: int) -> None:
        self.weight = weights.take("weight", (inputs, outputs))
        self.bias = weights.take("bias", (outputs,))

    def __call__(self, rows: csr_array) -> Array:
        """Outputs, shape (rows, outputs)."""
        result: Array = rows @ self.weight
        result += self.bias
        return result


class LayerNorm:
    """Rows of mean 0 and variance 1, scaled and moved."""

    def __init__(self, weights: Weights, width: int) -> None:
        self.weight = weights.take("weight", (width,))
        self.bias = weights.take("bias", (width,))

    def __call__(self, x: Array) -> Array:
        """The same shape; the last axis is normed."""
        result: Array = x - x.mean(-1, keepdims=True)
        variance = np.einsum("...i,...i->...", result, result)[..., None] / result.shape[-1]
        result /= np.sqrt(variance + _EPSILON)
        result *= self.weight
        result += self.bias
        return result


class Block:
    """``LayerNorm(GELU(x))``: the block B of the paper, whose dropout is for training."""

    def __init__(self, weights: Weights, width: int) -> None:
        self.norm = LayerNorm(weights.under("norm"), width)

    def __call__(self, x: Array) -> Array:
        """The block's output, of the same shape."""
        rows = max(1, _AT_ONCE // x.shape[1])
        result = np.empty_like(x)
        for start in range(0, len(x), rows):
            here = slice(start, start + rows)
            result[here] = self.norm(gelu(x[here]))
        return result


class Mlp:
    """``W2 B(W1 x)``."""

    def __init__(self, weights: Weights, inputs: int, hidden: int, outputs: int) -> None:
        self.first = Linear(weights.under("0"), inputs, hidden)
        self.block = Block(weights.under("1"), hidden)
        self.last = Linear(weights.under("2"), hidden, outputs)

    def __call__(self, x: Array) -> Array:
        """Outputs, shape (rows, outputs)."""
        return self.last(self.block(self.first(x)))


def gelu(x: Array) -> Array:
    """``x Φ(x)``, with the normal distribution's Φ.

    By Abramowitz and Stegun's formula 7.1.26, whose error of 1.5e-7 is that of float32: scipy's
    `erf` works in double, at six times the time.

    Examples
    --------
    >>> gelu(np.array([-1.0, 0.0, 1.0], np.float32)).round(4).tolist()
    [-0.15870000422000885, 0.0, 0.8413000106811523]
    """
    flat = np.ascontiguousarray(x, np.float32).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, len(flat), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        result[here] = _gelu(flat[here])
    return result.reshape(x.shape)


def _gelu(x: Array) -> Array:
    # With z = |x|/√2: Φ(−|x|) = ½ (a1 t + … + a5 t⁵) exp(−z²), and t = 1 / (1 + p z).
    size = np.abs(x)
    t = size * np.float32(0.3275911 / math.sqrt(2))
    t += 1
    np.reciprocal(t, out=t)
    tail = t * np.float32(1.061405429 / 2)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(factor / 2)
        tail *= t
    np.multiply(x, x, out=t)
    t *= np.float32(-0.5)
    np.exp(t, out=t)
    tail *= t
    # x Φ(x) is max(x, 0) − |x| Φ(−|x|) on both sides of zero.
    tail *= size
    result: Array = np.maximum(x, 0)
    result -= tail
    return result


def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(−x))``; scipy's `expit` works in double, at twenty times the time."""
    small = np.exp(-np.abs(x))  # never overflows
    result: Array = np.where(x < 0, small, np.float32(1)) / (small + 1)
    return result


def softmax(x: Array) -> Array:
    """Shares of the last axis that sum to one."""
    result: Array = x - x.max(-1, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(-1, keepdims=True)
    return result


class FourierFeatures:
    """Sines and cosines of a mass at 64 wavelengths from 1,000 down to 0.02; no weights."""

    width = 128

    def __init__(self) -> None:
        lengths = np.logspace(math.log10(1000.0), math.log10(0.02), self.width // 2)
        self._frequencies = 2 * math.pi / lengths

    def __call__(self, mz: npt.NDArray[np.floating]) -> Array:
        """Features, shape (…, 128)."""
        # In double: at a wavelength of 0.02, float32 would lose the phase of a large mass.
        angles = np.asarray(mz, np.float64)[..., None] * self._frequencies
        result = np.empty((*angles.shape[:-1], self.width), np.float32)
        np.sin(angles, out=result[..., : self.width // 2], casting="same_kind")
        np.cos(angles, out=result[..., self.width // 2 :], casting="same_kind")
        return result
