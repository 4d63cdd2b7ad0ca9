"""How close a predicted fingerprint is to the true one, one value for each row.

Bits are compared as bits: `binarise` makes them of probabilities, and `tanimoto` and
`bit_accuracy` refuse anything that is not 0 or 1. The similarities of probabilities are those of
`mzseek.similarity`.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from mzseek import similarity
from mzseek.core.errors import MetricError
from mzseek.similarity import bit_agreement_of, checked_rows, cosine, overlap, soft_tanimoto
from mzseek.similarity.rows import Rows

__all__ = ["binarise", "bit_accuracy", "cosine", "soft_tanimoto", "tanimoto"]

Values = npt.NDArray[np.float64]


def binarise(predicted: Rows, threshold: float = 0.5) -> Rows:
    """Return the bits of a predicted fingerprint: 1 strictly above the threshold.

    Parameters
    ----------
    predicted : dense array or CSR, shape (n, bits)
        Probabilities, usually. A one-dimensional array is taken as one row.
    threshold : float
        At least 0 for CSR, whose zeros must stay zeros.

    Returns
    -------
    uint8 array or CSR, shape (n, bits)
        Of 0 and 1, dense or sparse as it was given.

    Examples
    --------
    >>> binarise([[0.5, 0.51, 0.2]]).tolist()
    [[0, 1, 0]]
    """
    rows = checked_rows(predicted, "predicted rows")
    values = rows.data if issparse(rows) else rows
    if np.isnan(values).any():
        raise MetricError("predicted rows hold NaN, expected numbers")
    if not issparse(rows):
        return (rows > threshold).astype(np.uint8)
    if threshold < 0:
        raise MetricError(f"threshold is {threshold}, expected at least 0 for sparse rows")
    rows = rows.copy()
    rows.sum_duplicates()
    rows.data = (rows.data > threshold).astype(np.uint8)
    rows.eliminate_zeros()
    return rows


def tanimoto(predicted_bits: Rows, true_bits: Rows) -> Values:
    """Tanimoto similarity of predicted and true bits.

    Parameters
    ----------
    predicted_bits, true_bits : dense array or CSR of 0/1, shape (n, bits)

    Returns
    -------
    float64 array, shape (n,)
        One value for each row; two rows without bits have 1, one without bits has 0.

    Examples
    --------
    >>> tanimoto([[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0]]).round(3).tolist()
    [0.333, 1.0]
    >>> tanimoto([[0.9, 0.8, 0.1]], [[0, 1, 1]])
    Traceback (most recent call last):
    ...
    mzseek.core.errors.MetricError: predicted bits hold 0.9 in row 0, expected 0 and 1: binarise \
them first
    """
    return similarity.tanimoto(
        _bits(predicted_bits, "predicted bits"), _bits(true_bits, "true bits")
    )


def bit_accuracy(predicted_bits: Rows, true_bits: Rows) -> Values:
    """Return the share of bits that are predicted correctly, zeros included.

    Parameters are as in `tanimoto`. Fingerprints are mostly zeros, so a prediction of no bits at
    all has a high accuracy.

    Returns
    -------
    float64 array, shape (n,)

    Examples
    --------
    >>> bit_accuracy([[1, 1, 0, 0]], [[0, 1, 1, 0]]).tolist()
    [0.5]
    """
    predicted = _bits(predicted_bits, "predicted bits")
    overlaps = overlap(predicted, _bits(true_bits, "true bits"))
    return bit_agreement_of(*overlaps, bits=predicted.shape[1])


def _bits(rows: Rows, name: str) -> Rows:
    checked = checked_rows(rows, name)
    if checked.dtype == np.bool_:
        return checked
    values = checked.data if issparse(checked) else checked.reshape(-1)
    other = (values != 0) & (values != 1)
    if other.any():
        first = int(other.argmax())
        if issparse(checked):
            row = int(np.searchsorted(checked.indptr, first, side="right")) - 1
        else:
            row = first // checked.shape[1]
        raise MetricError(
            f"{name} hold {values[first].item():.6g} in row {row}, expected 0 and 1: "
            "binarise them first"
        )
    return checked
