"""Similarities of fingerprints row by row, dense or sparse, each formula once."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from mzseek.core.errors import SimilarityError

Floats = npt.NDArray[Any]


def tanimoto_of(dot: npt.ArrayLike, size_a: npt.ArrayLike, size_b: npt.ArrayLike) -> Floats:
    """Tanimoto similarity, or its product form where a vector is not 0/1.

    ``a·b / (‖a‖₁ + ‖b‖₁ − a·b)``

    The arguments, of vectors with values in [0, 1], broadcast together.

    Examples
    --------
    >>> tanimoto_of(dot=[1, 0, 0], size_a=[2, 0, 0], size_b=[2, 3, 0]).round(3).tolist()
    [0.333, 0.0, 1.0]
    """
    dot, size_a, size_b = _floats(dot, size_a, size_b)
    return _ratio(dot, size_a + size_b - dot)


def cosine_of(dot: npt.ArrayLike, squared_a: npt.ArrayLike, squared_b: npt.ArrayLike) -> Floats:
    """Cosine of the angle between two vectors, from their squared norms.

    ``a·b / (‖a‖₂ ‖b‖₂)``

    Examples
    --------
    >>> cosine_of(dot=[1, 0, 0], squared_a=[2, 0, 0], squared_b=[2, 3, 0]).round(3).tolist()
    [0.5, 0.0, 1.0]
    """
    dot, squared_a, squared_b = _floats(dot, squared_a, squared_b)
    # One root of the product, not the product of two roots: equal vectors then get exactly 1.
    norms = np.sqrt(squared_a * squared_b)
    one_zero = (squared_a == 0) != (squared_b == 0)
    return _ratio(dot, np.where(one_zero, norms.dtype.type(1), norms))


def f1_of(dot: npt.ArrayLike, size_a: npt.ArrayLike, size_b: npt.ArrayLike) -> Floats:
    """F1 score of one set of bits for another (Dice), the same both ways.

    ``2 a·b / (‖a‖₁ + ‖b‖₁)``

    Examples
    --------
    >>> f1_of(dot=[1, 0, 0], size_a=[2, 0, 0], size_b=[2, 3, 0]).tolist()
    [0.5, 0.0, 1.0]
    """
    dot, size_a, size_b = _floats(dot, size_a, size_b)
    return _ratio(2 * dot, size_a + size_b)


def bit_agreement_of(
    dot: npt.ArrayLike, size_a: npt.ArrayLike, size_b: npt.ArrayLike, bits: int
) -> Floats:
    """Share of equal bits, zeros included, of 0/1 vectors with so many bits.

    Examples
    --------
    >>> bit_agreement_of(dot=[1, 0, 0], size_a=[2, 0, 0], size_b=[2, 3, 0], bits=4).tolist()
    [0.5, 0.25, 1.0]
    """
    dot, size_a, size_b = _floats(dot, size_a, size_b)
    different = size_a + size_b - 2 * dot
    return _ratio(bits - different, np.full_like(different, bits))


def _floats(*arrays: npt.ArrayLike) -> list[Floats]:
    """Convert to floats: small integers would overflow in a sum of two sizes."""
    plain = [np.asarray(array) for array in arrays]
    return [values if values.dtype.kind == "f" else values.astype(np.float64) for values in plain]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; 1 where the denominator is 0: two empty vectors agree."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    ones = np.ones(shape, dtype=np.result_type(numerator, denominator))
    return np.divide(numerator, denominator, out=ones, where=denominator != 0)


Rows = Any  # a dense array or scipy's CSR
Values = npt.NDArray[np.float64]

# Rows become float64 so many at a time: 128 dense rows of 4,096 bits are 4 MB.
_DENSE_ROWS = 128
_SPARSE_ROWS = 65_536


def overlap(rows: Rows, others: Rows) -> tuple[Values, Values, Values]:
    """Count the common bits and the bits of each pair of rows; whatever is not 0 is a set bit.

    Arguments are as in `tanimoto`; returns three arrays: common bits, bits of the rows, of the
    others.

    Examples
    --------
    >>> overlap([[1, 1, 0]], csr_array([[0, 1, 1]]))
    (array([1.]), array([2.]), array([2.]))
    """
    dot, size_a, size_b = _statistics(rows, others, _overlap, binary=True)
    return dot, size_a, size_b


def tanimoto(rows: Rows, others: Rows) -> Values:
    """Tanimoto similarity of 0/1 rows; whatever is not 0 is a set bit.

    ``|a ∩ b| / |a ∪ b|``

    Probabilities are to be thresholded first, `mzseek.metrics.binarise` does that; their
    similarity without a threshold is `soft_tanimoto` or `minmax_tanimoto`.

    Parameters
    ----------
    rows, others : dense array or CSR of 0/1, shape (n, bits)
        One-dimensional arrays are taken as one row.

    Returns
    -------
    float64 array, shape (n,)
        The similarity of each row with the other of its number. Two rows without bits are equal
        and have 1; one without bits has 0 with any other.

    Examples
    --------
    >>> tanimoto([[1, 1, 0], [0, 0, 0]], csr_array([[0, 1, 1], [0, 0, 0]])).round(3).tolist()
    [0.333, 1.0]
    """
    return tanimoto_of(*overlap(rows, others))


def f1(rows: Rows, others: Rows) -> Values:
    """F1 score (Dice) of 0/1 rows, ``2 |a ∩ b| / (|a| + |b|)``.

    Arguments, result and rows without bits are as in `tanimoto`.

    Examples
    --------
    >>> f1([1, 1, 0], [0, 1, 1]).tolist()
    [0.5]
    """
    return f1_of(*overlap(rows, others))


def soft_tanimoto(rows: Rows, others: Rows) -> Values:
    """Tanimoto similarity in its product form, for rows with values in [0, 1].

    ``a·b / (‖a‖₁ + ‖b‖₁ − a·b)``

    This is the similarity of the IoU loss. A row that is not 0/1 has less than 1 with itself.
    Shapes and zero rows are as in `tanimoto`.

    Examples
    --------
    >>> soft_tanimoto([0.5, 0.5, 0.0], [0, 1, 1]).tolist()
    [0.2]
    """
    return tanimoto_of(*_statistics(rows, others, _overlap))


def minmax_tanimoto(rows: Rows, others: Rows) -> Values:
    """Tanimoto similarity as Σmin/Σmax, for rows without negative values.

    ``Σmin(aᵢ, bᵢ) / Σmax(aᵢ, bᵢ)``

    It equals `soft_tanimoto` where one of the two rows is 0/1 and the other in [0, 1], since
    min(a, b) is then ab; it differs where neither is. Shapes and zero rows are as in `tanimoto`.

    Examples
    --------
    >>> minmax_tanimoto([0.5, 0.5, 0.0], [0, 1, 1]).tolist()
    [0.2]
    >>> half = [0.5, 0.5, 0.0]
    >>> minmax_tanimoto(half, half).item(), round(soft_tanimoto(half, half).item(), 3)
    (1.0, 0.333)
    """
    # Σmin = (Σ(a + b) − Σ|a − b|) / 2, and Σmax the same with a plus.
    total, difference = _statistics(
        rows, others, lambda a, b: (_size(a) + _size(b), _size(abs(a - b)))
    )
    return _ratio(total - difference, total + difference)


def cosine(rows: Rows, others: Rows) -> Values:
    """Cosine similarity of rows with any values, ``a·b / (‖a‖₂ ‖b‖₂)``.

    Shapes and zero rows are as in `tanimoto`.

    Examples
    --------
    >>> cosine([[3, 4], [0, 0], [0, 0]], [[4, 3], [1, 0], [0, 0]]).tolist()
    [0.96, 0.0, 1.0]
    """
    return cosine_of(*_statistics(rows, others, lambda a, b: (_dot(a, b), _dot(a, a), _dot(b, b))))


def checked_rows(values: Rows, name: str = "rows") -> Rows:
    """Return a matrix of numbers as a dense array or `csr_array`, without a copy if it is one.

    A one-dimensional argument becomes one row. Raises `SimilarityError`, which names it `name`, for
    anything that is no matrix of numbers.
    """
    matrix = values if issparse(values) else np.asarray(values)
    if matrix.ndim == 1:
        matrix = matrix.reshape(1, -1)
    if matrix.ndim != 2:
        raise SimilarityError(f"{name} have {matrix.ndim} dimensions, expected 2 (or 1: one row)")
    if matrix.dtype.kind not in "biuf":
        raise SimilarityError(f"{name} hold values of type {matrix.dtype}, expected numbers")
    return csr_array(matrix) if issparse(matrix) else matrix


def _dot(a: Rows, b: Rows) -> Values:
    return _size(a.multiply(b)) if issparse(a) else np.asarray(np.einsum("ij,ij->i", a, b))


def _size(a: Rows) -> Values:
    return np.asarray(a.sum(axis=1), dtype=np.float64).reshape(-1)


def _overlap(a: Rows, b: Rows) -> tuple[Values, ...]:
    return _dot(a, b), _size(a), _size(b)


def _statistics(
    rows: Rows,
    others: Rows,
    of_block: Callable[[Rows, Rows], tuple[Values, ...]],
    *,
    binary: bool = False,
) -> list[Values]:
    """Compute statistics of pairs of rows, block by block."""
    blocks = [of_block(a, b) for a, b in _blocks(rows, others, binary)]
    if not blocks:
        empty = np.empty((0, 1))
        blocks = [of_block(empty, empty)]
    return [np.concatenate(values) for values in zip(*blocks, strict=True)]


def _blocks(rows: Rows, others: Rows, binary: bool) -> Iterator[tuple[Rows, Rows]]:
    """Yield pairs of blocks in float64, sparse where both are: memory stays bounded."""
    rows, others = checked_rows(rows), checked_rows(others, "others")
    if rows.shape != others.shape:
        raise SimilarityError(
            f"rows have shape {rows.shape} and others {others.shape}, expected the same"
        )
    sparse = issparse(rows) and issparse(others)
    step = _SPARSE_ROWS if sparse else _DENSE_ROWS
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        yield _as_float(rows[part], sparse, binary), _as_float(others[part], sparse, binary)


def _as_float(block: Rows, sparse: bool, binary: bool) -> Rows:
    if binary and not issparse(block):
        block = block != 0
    block = block.astype(np.float64)
    if issparse(block):
        # Entries given twice are a sum, which products and signs of entries would miss.
        block.sum_duplicates()
        if binary:
            block.data = (block.data != 0).astype(np.float64)
    return block if sparse or not issparse(block) else block.toarray()
