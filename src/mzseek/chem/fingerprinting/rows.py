"""Rows of bits in their three forms: lists of positions, CSR, packed bytes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array


def rows_to_csr(rows: Sequence[npt.NDArray[np.integer]], bits: int) -> csr_array:
    """Lists of set bits to a 0/1 matrix.

    Entries are int32, so that products of rows (counts of common bits) cannot overflow.
    """
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    indices = np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32)
    return csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=(len(rows), bits))


def pack_rows(matrix: csr_array) -> npt.NDArray[np.uint8]:
    """0/1 matrix to packed bytes, shape (rows, ⌈bits / 8⌉), first bit highest.

    Examples
    --------
    >>> pack_rows(csr_array(np.array([[1, 0, 0, 0, 0, 0, 0, 1, 1]])))
    array([[129, 128]], dtype=uint8)
    """
    rows, bits = matrix.shape
    packed = np.zeros((rows, -(-bits // 8)), dtype=np.uint8)
    row = np.repeat(np.arange(rows), np.diff(matrix.indptr))
    np.bitwise_or.at(
        packed, (row, matrix.indices >> 3), (128 >> (matrix.indices & 7)).astype(np.uint8)
    )
    return packed


def unpack_rows(packed: npt.NDArray[np.uint8], bits: int) -> csr_array:
    """Packed bytes back to a 0/1 matrix of ``bits`` columns."""
    dense = np.unpackbits(packed, axis=1, count=bits)
    return csr_array(dense.astype(np.int32))
