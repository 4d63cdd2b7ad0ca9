"""Gradients of sparse products as two thin factors, instead of dense."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor

from mzseek.tensors.rows import SparseRows

# Up to so many rows the norm comes from their Gram matrices, which cost rows² · d; beyond, from the
# gradient itself.
_GRAM_ROWS = 512

# Attribute of a weight that holds its deferred gradient. It exists only where the optimiser of the
# weight can read it, so that under any other the gradient is in `grad` as usual.
_ATTRIBUTE = "mzseek_deferred"


@dataclass(frozen=True)
class Deferred:
    """The gradient ``rowsᵀ · outer`` of a weight that sparse rows were multiplied with.

    A batch of 64 spectra has a gradient of 10,050 × 1,024 numbers, two thirds of them zero; its
    factors are 60 peaks a spectrum and 64 × 1,024 numbers.

    Attributes
    ----------
    rows : SparseRows, shape (n, width)
        With their transpose.
    outer : tensor, shape (n, d)
        The gradient of the product.
    """

    rows: SparseRows
    outer: Tensor

    def blocks(self, height: int) -> Iterator[Tensor]:
        """The gradient, so many rows at a time, zeros included."""
        turned = self.rows.transposed
        assert turned is not None
        values = None if turned.values is None else turned.values.to(self.outer.dtype)
        borders = turned.indptr[::height].tolist()
        if self.rows.width % height:
            borders.append(len(turned.indices))
        starts = torch.split(turned.indptr[:-1], height)
        for start, (low, high) in zip(starts, pairwise(borders), strict=True):
            yield F.embedding_bag(
                turned.indices[low:high], self.outer, start - low, mode="sum",
                per_sample_weights=None if values is None else values[low:high],
            )  # fmt: skip

    def dense(self) -> Tensor:
        """The whole gradient, shape (width, d)."""
        return next(self.blocks(self.rows.width))

    def square(self) -> Tensor:
        """Its squared norm, as a float64 scalar.

        ``‖XᵀG‖² = ⟨XXᵀ, GGᵀ⟩``, two n × n matrices. Spectra that resemble each other and whose
        gradients point apart cancel there, hence the double precision.
        """
        if len(self.outer) > _GRAM_ROWS:
            return self.dense().double().square().sum()
        outer = self.outer.double()
        rows, values = self.rows, _values(self.rows).detach().double().numpy()
        matrix = csr_array((values, rows.indices.numpy(), rows.indptr.numpy()), shape=rows.shape)
        gram = torch.from_numpy((matrix @ matrix.T).toarray())
        return (gram * (outer @ outer.T)).sum().clamp(min=0)

    def __add__(self, other: "Deferred") -> "Deferred":
        mine, theirs = self.rows, other.rows
        values = None
        if mine.values is not None or theirs.values is not None:
            values = torch.cat([_values(mine), _values(theirs)])
        rows = SparseRows(
            torch.cat([mine.indptr, theirs.indptr[1:] + mine.indptr[-1]]),
            torch.cat([mine.indices, theirs.indices]),
            values,
            mine.width,
        )
        return Deferred(rows.ready(), torch.cat([self.outer, other.outer]))


def accept_deferred(weight: Tensor) -> None:
    """Declare that the optimiser of this weight reads `deferred` beside ``grad``."""
    if not accepts_deferred(weight):
        setattr(weight, _ATTRIBUTE, None)


def accepts_deferred(weight: Tensor) -> bool:
    """Whether a backward pass may leave a `Deferred` with this weight."""
    return hasattr(weight, _ATTRIBUTE)


def deferred(weight: Tensor) -> Deferred | None:
    """The gradient that backward passes have left with this weight."""
    gradient: Deferred | None = getattr(weight, _ATTRIBUTE, None)
    return gradient


def defer(weight: Tensor, gradient: Deferred) -> None:
    """Leave a gradient with a weight, added to what is there."""
    before = deferred(weight)
    setattr(weight, _ATTRIBUTE, gradient if before is None else before + gradient)


def forget_deferred(weight: Tensor) -> None:
    """As ``zero_grad`` does for ``grad``."""
    if accepts_deferred(weight):
        setattr(weight, _ATTRIBUTE, None)


def _values(rows: SparseRows) -> Tensor:
    if rows.values is not None:
        return rows.values
    return torch.ones(len(rows.indices), device=rows.indices.device)
