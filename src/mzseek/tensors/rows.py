"""Sparse rows and peak lists as tensors."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor

Moved = TypeVar("Moved", bound="_OnDevice")


@dataclass(frozen=True)
class _OnDevice:
    """Tensors that move to a device together."""

    def to(self: Moved, device: torch.device | str) -> Moved:
        """Copy to a device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        movable = {n: v for n, v in values.items() if isinstance(v, Tensor | _OnDevice)}
        return replace(self, **{name: value.to(device) for name, value in movable.items()})


@dataclass(frozen=True)
class Transposed(_OnDevice):
    """The columns of a sparse matrix as rows, for the backward pass of a product.

    Attributes
    ----------
    indptr : int32 tensor, shape (width + 1,)
        Column i has the entries ``indptr[i]`` to ``indptr[i + 1]``.
    columns : int64 tensor, shape (columns that have entries,)
        Which columns these are, rising.
    starts : int32 tensor, shape (columns that have entries,)
        Where their entries begin.
    indices : int32 tensor
        The row of each entry.
    values : float tensor or None
        The entries; None means ones.
    """

    indptr: Tensor
    columns: Tensor
    starts: Tensor
    indices: Tensor
    values: Tensor | None


@dataclass(frozen=True)
class SparseRows(_OnDevice):
    """A batch of sparse rows: spectra in bins, or fingerprints in bits.

    Attributes
    ----------
    indptr : int32 tensor, shape (rows + 1,)
        Row i has the entries ``indptr[i]`` to ``indptr[i + 1]``.
    indices : int32 tensor, shape (entries,)
        The column of each entry.
    values : float tensor, shape (entries,), or None
        The entries; None means that all are one, as in a fingerprint.
    width : int
        Number of columns.
    transposed : Transposed or None
        Ready for the backward pass of `product`; made there if it is missing.

    Examples
    --------
    >>> rows = SparseRows.from_csr(csr_array(np.array([[0, 1, 1], [0, 0, 0]])), binary=True)
    >>> rows.shape, rows.sizes.tolist(), rows.dense().tolist()
    ((2, 3), [2, 0], [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor | None
    width: int
    transposed: Transposed | None = None

    @classmethod
    def from_arrays(
        cls,
        indptr: npt.NDArray[np.integer],
        indices: npt.NDArray[np.integer],
        values: npt.NDArray[np.floating] | None,
        width: int,
        *,
        transpose: bool = False,
    ) -> "SparseRows":
        """Make rows of the arrays of a CSR matrix; with ``transpose`` for a backward pass."""
        starts = np.ascontiguousarray(indptr, np.int32)
        columns = np.ascontiguousarray(indices, np.int32)
        return cls(
            indptr=torch.from_numpy(starts),
            indices=torch.from_numpy(columns),
            values=None if values is None else torch.from_numpy(np.ascontiguousarray(values)),
            width=width,
            transposed=_transpose(starts, columns, values, width) if transpose else None,
        )

    @classmethod
    def from_csr(
        cls, matrix: csr_array, *, binary: bool = False, transpose: bool = False
    ) -> "SparseRows":
        """Make rows of a scipy matrix; with ``binary``, every stored entry is a one."""
        matrix = csr_array(matrix)
        values = None if binary else matrix.data
        return cls.from_arrays(
            matrix.indptr, matrix.indices, values, matrix.shape[1], transpose=transpose
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.indptr) - 1, self.width

    @property
    def starts(self) -> Tensor:
        """Where each row's entries begin."""
        return self.indptr[:-1]

    @property
    def sizes(self) -> Tensor:
        """Entries in each row."""
        return self.indptr.diff()

    def ready(self) -> "SparseRows":
        """Return the same rows with their transpose."""
        if self.transposed is not None:
            return self
        values = None if self.values is None else self.values.detach().cpu().numpy()
        indptr, indices = self.indptr.cpu().numpy(), self.indices.cpu().numpy()
        transposed = _transpose(indptr, indices, values, self.width)
        return replace(self, transposed=transposed.to(self.indices.device))

    def dense(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the dense matrix, shape (rows, width)."""
        rows = query_index(self.sizes)
        values = self.values if self.values is not None else torch.ones_like(rows, dtype=dtype)
        dense = torch.zeros(self.shape, dtype=dtype, device=self.indices.device)
        return dense.index_put_((rows, self.indices.long()), values.to(dtype), accumulate=True)


def query_index(counts: Tensor) -> Tensor:
    """Return the list of each entry of ragged lists.

    Examples
    --------
    >>> query_index(torch.tensor([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


def _transpose(
    indptr: npt.NDArray[np.int32],
    indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.floating] | None,
    width: int,
) -> Transposed:
    # scipy's conversion is a counting sort, which beats any sort by key here. It carries values
    # along; where all are one, the smallest type stands in.
    data = np.ones(len(indices), np.int8) if values is None else values
    turned = csr_array((data, indices, indptr), shape=(len(indptr) - 1, width)).tocsc()
    columns = np.flatnonzero(np.diff(turned.indptr))
    borders = turned.indptr.astype(np.int32, copy=False)
    return Transposed(
        indptr=torch.from_numpy(borders),
        columns=torch.from_numpy(columns),
        starts=torch.from_numpy(borders[columns]),
        indices=torch.from_numpy(turned.indices.astype(np.int32, copy=False)),
        values=None if values is None else torch.from_numpy(turned.data),
    )


@dataclass(frozen=True)
class PeakLists(_OnDevice):
    """The peaks of a batch of spectra, padded to the longest.

    Attributes
    ----------
    mz : float32 tensor, shape (batch, peaks)
    intensities : float32 tensor, shape (batch, peaks)
        Divided by the spectrum's largest.
    real : bool tensor, shape (batch, peaks)
        False where a shorter list is padded.
    precursor_mz : float32 tensor, shape (batch,)
    """

    mz: Tensor
    intensities: Tensor
    real: Tensor
    precursor_mz: Tensor


class _RepeatPerList(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, counts: Tensor) -> Tensor:
        ctx.counts = counts
        return torch.repeat_interleave(values, counts, dim=0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].contiguous()
        if not gradient.numel():
            return gradient.new_zeros((len(ctx.counts), *gradient.shape[1:])), None
        starts = torch.cumsum(ctx.counts, 0) - ctx.counts
        rows = gradient.reshape(len(gradient), -1)
        indices = torch.arange(len(rows), device=rows.device)
        total = F.embedding_bag(indices, rows, starts, mode="sum")
        return total.view(len(ctx.counts), *gradient.shape[1:]), None


def repeat_per_list(values: Tensor, counts: Tensor) -> Tensor:
    """Repeat each list's value (a number or a row) for every candidate of the list.

    The gradient of a list is summed in the order of its candidates. Indexing would do the same
    forwards, but torch sums the gradient of indexing in whatever order its threads come by, and
    two runs would differ in the last digits.

    Parameters
    ----------
    values : tensor, shape (lists,) or (lists, d)
    counts : int64 tensor, shape (lists,)

    Returns
    -------
    tensor, shape (candidates,) or (candidates, d)

    Examples
    --------
    >>> repeat_per_list(torch.tensor([1.0, 5.0]), torch.tensor([2, 1])).tolist()
    [1.0, 1.0, 5.0]
    """
    result: Tensor = _RepeatPerList.apply(values, counts)  # type: ignore[no-untyped-call]
    return result
