"""Products of sparse rows with dense weights; gradients sparse, or deferred as two thin factors."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor

from mzseek.tensors.rows import SparseRows, query_index

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
        """Yield the gradient, ``height`` rows at a time, zeros included."""
        turned = self.rows.transposed
        assert turned is not None
        values = turned.values
        borders = turned.indptr[::height].tolist()
        if self.rows.width % height:
            borders.append(len(turned.indices))
        starts = torch.split(turned.indptr[:-1], height)
        for start, (low, high) in zip(starts, pairwise(borders), strict=True):
            weights = None if values is None else values[low:high]
            yield _bags(self.outer, turned.indices[low:high], start - low, weights)

    def dense(self) -> Tensor:
        """Return the whole gradient, shape (width, d)."""
        return next(self.blocks(self.rows.width))

    def square(self) -> Tensor:
        """Return its squared norm, as a float64 scalar.

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
    """Return the gradient that backward passes have left with this weight."""
    gradient: Deferred | None = getattr(weight, _ATTRIBUTE, None)
    return gradient


def defer(weight: Tensor, gradient: Deferred) -> None:
    """Leave a gradient with a weight, added to what is there."""
    before = deferred(weight)
    setattr(weight, _ATTRIBUTE, gradient if before is None else before + gradient)


def forget_deferred(weight: Tensor) -> None:
    """Remove a deferred gradient, as ``zero_grad`` does for ``grad``."""
    if accepts_deferred(weight):
        setattr(weight, _ATTRIBUTE, None)


def _values(rows: SparseRows) -> Tensor:
    if rows.values is not None:
        return rows.values
    return torch.ones(len(rows.indices), device=rows.indices.device)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: SparseRows, may_defer: bool) -> Tensor:
        if ctx.needs_input_grad[0]:
            ctx.rows = rows
            ctx.height = len(weight)
            # A GPU has the memory speed to write the gradient out, and dislikes many small calls.
            may_defer = may_defer and weight.device.type == "cpu" and accepts_deferred(weight)
            ctx.weight = weight if may_defer else None
        return _bags(weight, rows.indices, rows.starts, rows.values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None]:
        rows = ctx.rows.ready()
        gradient = gradients[0].contiguous()
        if ctx.weight is not None:
            defer(ctx.weight, Deferred(rows, gradient))
            return None, None, None
        turned = rows.transposed
        touched = _bags(gradient, turned.indices, turned.starts, turned.values)
        return _expand(touched, turned.columns, ctx.height), None, None


def product(rows: SparseRows, weight: Tensor, *, may_defer: bool = False) -> Tensor:
    """Multiply rows with a matrix: sum the matrix rows where each row has an entry.

    Parameters
    ----------
    rows : SparseRows, shape (n, width)
    weight : float tensor, shape (width, d)
    may_defer : bool
        Leave the weight's gradient as its two factors (`Deferred`) where the weight's optimiser
        accepts that, as `mzseek.training` 's does. It pays for a weight with many more rows than a
        batch touches: of the 10,050 bins, some 3,000.

    Returns
    -------
    tensor, shape (n, d)

    Notes
    -----
    Both directions are sums over bags of rows: forward over a row's entries, backward over a
    column's. `torch.nn.functional.embedding_bag` has the fastest kernel for that, but its own
    backward pass sorts and scatters; with the transpose at hand its *forward* does for both.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.from_csr(csr_array([[0.0, 2.0, 1.0]]))
    >>> product(rows, torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 5.0]])).tolist()
    [[2.0, 5.0]]
    """
    result: Tensor = _Product.apply(weight, rows, may_defer)  # type: ignore[no-untyped-call]
    return result


def _expand(rows: Tensor, indices: Tensor, height: int) -> Tensor:
    """Put rows at rising indices of a matrix of zeros."""
    if len(indices) == height:
        return rows
    return rows.new_zeros((height, rows.shape[1])).index_copy_(0, indices, rows)


def _bags(table: Tensor, indices: Tensor, starts: Tensor, values: Tensor | None) -> Tensor:
    if values is not None:
        values = values.to(table.dtype)
    return F.embedding_bag(indices, table, starts, mode="sum", per_sample_weights=values)


class _GatherDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, rows: SparseRows, counts: Tensor) -> Tensor:
        entries = entry_indices(rows, counts, dense.shape[1])
        ctx.rows, ctx.entries, ctx.shape = rows, entries, dense.shape
        flat = dense.reshape(-1, 1)
        return F.embedding_bag(entries, flat, rows.starts, mode="sum").squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        gradient = gradients[0]
        back = gradient.new_zeros(ctx.shape[0] * ctx.shape[1])
        back.index_add_(0, ctx.entries, torch.repeat_interleave(gradient, ctx.rows.sizes))
        return back.view(ctx.shape), None, None


def gather_dot(dense: Tensor, rows: SparseRows, counts: Tensor) -> Tensor:
    """Sum, for each sparse row, its list's dense row over the sparse row's entries.

    Parameters
    ----------
    dense : float tensor, shape (lists, width)
        One row for each list: a predicted fingerprint.
    rows : SparseRows of ones, shape (candidates, width)
        Candidates of all lists, concatenated.
    counts : int tensor, shape (lists,)
        Candidates in each list.

    Returns
    -------
    tensor, shape (candidates,)
        ``dense[list of i] · rows[i]``, with a gradient for ``dense``.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.from_csr(csr_array([[1, 0, 1], [0, 1, 0]]), binary=True)
    >>> gather_dot(torch.tensor([[0.5, 0.25, 1.0]]), rows, torch.tensor([2])).tolist()
    [1.5, 0.25]
    """
    result: Tensor = _GatherDot.apply(dense, rows, counts)  # type: ignore[no-untyped-call]
    return result


def entry_indices(rows: SparseRows, counts: Tensor, width: int) -> Tensor:
    """Return the index of each entry of the rows in the flattened dense matrix."""
    first = query_index(counts).to(rows.indices.dtype) * width  # of each candidate
    return rows.indices + torch.repeat_interleave(first, rows.sizes)


class _WeightedProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dense: Tensor, rows: SparseRows, counts: Tensor, weight: Tensor
    ) -> Tensor:
        entries = entry_indices(rows, counts, dense.shape[1])
        values = dense.reshape(-1)[entries]
        ctx.rows, ctx.shape = rows, dense.shape
        ctx.save_for_backward(entries, counts, weight, dense)
        return F.embedding_bag(
            rows.indices, weight, rows.starts, mode="sum", per_sample_weights=values
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        entries, counts, weight, dense = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        for_dense = for_weight = None
        if ctx.needs_input_grad[0]:
            of_row = query_index(ctx.rows.sizes).int()
            # The dot product of each row's gradient with the matrix row of each of its entries.
            of_entry = torch.ops.aten._embedding_bag_per_sample_weights_backward(
                gradient, weight, ctx.rows.indices, ctx.rows.starts, of_row, 0
            )
            flat = gradient.new_zeros(ctx.shape[0] * ctx.shape[1])
            for_dense = flat.index_add_(0, entries, of_entry).view(ctx.shape)
        if ctx.needs_input_grad[3]:
            turned = ctx.rows.ready().transposed
            column = query_index(turned.indptr.diff())
            values = dense.reshape(-1)[query_index(counts)[turned.indices] * ctx.shape[1] + column]
            touched = F.embedding_bag(
                turned.indices, gradient, turned.starts, mode="sum", per_sample_weights=values
            )
            for_weight = _expand(touched, turned.columns, len(weight))
        return for_dense, None, None, for_weight


def weighted_product(dense: Tensor, rows: SparseRows, counts: Tensor, weight: Tensor) -> Tensor:
    """Compute ``(dense[list of i] ⊙ rows[i]) @ weight`` for each candidate i.

    Parameters
    ----------
    dense : float tensor, shape (lists, width)
    rows : SparseRows of ones, shape (candidates, width)
    counts : int tensor, shape (lists,)
    weight : float tensor, shape (width, d)

    Returns
    -------
    tensor, shape (candidates, d), with gradients for ``dense`` and ``weight``
    """
    result: Tensor = _WeightedProduct.apply(dense, rows, counts, weight)  # type: ignore[no-untyped-call]
    return result


class _MappedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, rows: SparseRows) -> Tensor:
        mapped = F.embedding_bag(rows.indices, weight, rows.starts, mode="sum").add_(bias)
        norm: Tensor = torch.linalg.vector_norm(mapped, dim=1)
        if any(ctx.needs_input_grad):
            ctx.rows, ctx.height = rows, len(weight)
            ctx.save_for_backward(mapped, norm)
        return norm

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        mapped, norm = ctx.saved_tensors
        turned = ctx.rows.ready().transposed
        # d‖v‖ = v/‖v‖, and none where v is zero. As a weight of the bags it costs no pass over v.
        share = torch.where(norm > 0, gradients[0] / norm, torch.zeros_like(norm))
        touched = F.embedding_bag(
            turned.indices, mapped, turned.starts, mode="sum",
            per_sample_weights=share[turned.indices],
        )  # fmt: skip
        for_bias = share @ mapped
        return _expand(touched, turned.columns, ctx.height), for_bias, None


def mapped_norm(rows: SparseRows, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute ``‖row W + b‖`` of each row of ones, shape (rows,), with gradients for W and b.

    Parameters
    ----------
    rows : SparseRows of ones, shape (n, width)
    weight : float tensor, shape (width, d)
    bias : float tensor, shape (d,)

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.from_csr(csr_array([[1, 1], [0, 0]]), binary=True)
    >>> mapped_norm(rows, torch.tensor([[3.0, 0.0], [0.0, 4.0]]), torch.zeros(2)).tolist()
    [5.0, 0.0]
    """
    result: Tensor = _MappedNorm.apply(weight, bias, rows)  # type: ignore[no-untyped-call]
    return result
