"""A transformer on peaks, as `mzseek.models.encoders.transformer` has it."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mzseek.networks.encoders.base import Peaks
from mzseek.networks.layers import FourierFeatures, LayerNorm, Linear, gelu, softmax
from mzseek.networks.weights import Array, Weights


class _Layer:
    """Attention, then two linear maps, each on normed states and added to what it read."""

    def __init__(self, weights: Weights, tokens: int, heads: int) -> None:
        attention = weights.under("self_attn")
        self.heads = heads
        self.norm1 = LayerNorm(weights.under("norm1"), tokens)
        self.norm2 = LayerNorm(weights.under("norm2"), tokens)
        self.into = attention.take("in_proj_weight", (3 * tokens, tokens))
        self.into_bias = attention.take("in_proj_bias", (3 * tokens,))
        self.out = Linear(attention.under("out_proj"), tokens, tokens)
        self.linear1 = Linear(weights.under("linear1"), tokens, 4 * tokens)
        self.linear2 = Linear(weights.under("linear2"), 4 * tokens, tokens)

    def __call__(self, states: Array, padded: npt.NDArray[np.bool_], read: int) -> Array:
        """New states of the first ``read`` tokens, shape (batch, read, tokens)."""
        kept = states[:, :read] + self._attend(self.norm1(states), padded, read)
        result: Array = kept + self.linear2(gelu(self.linear1(self.norm2(kept))))
        return result

    def _attend(self, states: Array, padded: npt.NDArray[np.bool_], read: int) -> Array:
        batch, length, tokens = states.shape
        width = tokens // self.heads
        asked = states[:, :read] @ self.into[:tokens].T + self.into_bias[:tokens]
        held = states @ self.into[tokens:].T + self.into_bias[tokens:]
        # (batch, heads, read, width), and (batch, heads, length, width) twice.
        asked = asked.reshape(batch, read, self.heads, width).transpose(0, 2, 1, 3)
        held = held.reshape(batch, length, 2, self.heads, width)
        keys, values = held.transpose(2, 0, 3, 1, 4)
        weights = asked @ keys.swapaxes(2, 3)
        weights *= np.float32(width**-0.5)
        np.copyto(weights, -np.inf, where=padded[:, None, None])
        mixed = softmax(weights) @ values
        return self.out(mixed.transpose(0, 2, 1, 3).reshape(batch, read, tokens))


class PeakTransformer:
    """Self-attention over peaks and a token for the precursor, whose last state is read."""

    reads: ClassVar[str] = "peaks"

    def __init__(self, weights: Weights, options: Any, bins: int) -> None:
        tokens = options.tokens
        self.fourier = FourierFeatures()
        self.embed = Linear(weights.under("embed"), self.fourier.width + 2, tokens)
        layers = weights.under("layers").under("layers")
        self.layers = [
            _Layer(layers.under(f"{n}"), tokens, options.heads) for n in range(options.layers)
        ]
        self.norm = LayerNorm(weights.under("out").under("0"), tokens)
        self.out = Linear(weights.under("out").under("1"), tokens, options.width)

    def __call__(self, spectra: Peaks) -> Array:
        """Embeddings, shape (batch, width)."""
        batch, longest = spectra.mz.shape
        waves = self.fourier.width
        features = np.zeros((batch, 1 + longest, waves + 2), np.float32)
        features[:, 0, :waves] = self.fourier(spectra.precursor_mz)
        features[:, 0, -1] = 1  # marks the precursor, which has no intensity
        features[:, 1:, :waves] = self.fourier(spectra.mz)
        features[:, 1:, waves] = spectra.intensities
        padded = np.concatenate([np.zeros((batch, 1), bool), ~spectra.real], 1)
        states = self.embed(features)
        for place, layer in enumerate(self.layers, 1):
            # Of the last layer's states the first is read, so that it alone is made.
            states = layer(states, padded, 1 if place == len(self.layers) else 1 + longest)
        return self.out(self.norm(states[:, 0]))
