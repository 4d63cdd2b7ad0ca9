"""Tanimoto of all rows with all others, in blocks that fit in memory."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.similarity.formulas import tanimoto_of

_ROWS = 512


def tanimoto_blocks(
    rows: csr_array, others: csr_array
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Tanimoto similarities of all rows with all others, a few hundred rows at a time.

    Two empty fingerprints are equal: their similarity is 1.

    Parameters
    ----------
    rows, others : CSR of 0/1, shapes (n, bits) and (m, bits)

    Yields
    ------
    start : int
        First row of the block.
    similarities : float32 array, shape (rows of the block, m)

    Examples
    --------
    >>> both = csr_array(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> [(start, block.round(2).tolist()) for start, block in tanimoto_blocks(both, both)]
    [(0, [[1.0, 0.33000001311302185], [0.33000001311302185, 1.0]])]
    """
    # Counts of bits are exact in float32, and keep the blocks at half the size of float64.
    row_bits = np.diff(rows.indptr).astype(np.float32)
    other_bits = np.diff(others.indptr).astype(np.float32)
    transposed = others.astype(np.float32).T.tocsc()
    for start in range(0, rows.shape[0], _ROWS):
        block = rows[start : start + _ROWS].astype(np.float32)
        common = (block @ transposed).toarray()
        sizes = row_bits[start : start + _ROWS, None]
        yield start, tanimoto_of(common, sizes, other_bits[None, :])
