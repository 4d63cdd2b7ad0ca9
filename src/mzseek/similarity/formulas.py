"""Similarities as formulas over sufficient statistics: what two vectors have in common, and each.

Whoever has the statistics, from sparse rows, dense rows or a matrix product, gets the similarity
from here, together with one rule for zero vectors: two of them are equal and have similarity 1,
one of them has similarity 0 with anything else.

The statistics of vectors a and b are ``dot`` = Σaᵢbᵢ, ``size`` = Σaᵢ (the number of bits where a is
0/1) and ``squared`` = Σaᵢ². Arguments broadcast; float32 stays float32, integers become float64.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


def tanimoto_of(dot: npt.ArrayLike, size_a: npt.ArrayLike, size_b: npt.ArrayLike) -> Floats:
    """Tanimoto similarity, or its product form where a vector is not 0/1.

    ``a·b / (‖a‖₁ + ‖b‖₁ − a·b)``

    Parameters
    ----------
    dot, size_a, size_b : arrays that broadcast together
        Of vectors with values in [0, 1].

    Returns
    -------
    array
        The similarities, in the shape of the arguments.

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

    Returns
    -------
    array
        The similarities, in the shape of the arguments.

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

    Returns
    -------
    array
        The similarities, in the shape of the arguments.

    Examples
    --------
    >>> f1_of(dot=[1, 0, 0], size_a=[2, 0, 0], size_b=[2, 3, 0]).tolist()
    [0.5, 0.0, 1.0]
    """
    dot, size_a, size_b = _floats(dot, size_a, size_b)
    return _ratio(2 * dot, size_a + size_b)


def minmax_of(total: npt.ArrayLike, difference: npt.ArrayLike) -> Floats:
    """Σmin/Σmax, from total = Σ(aᵢ + bᵢ) and difference = Σ|aᵢ − bᵢ|.

    ``Σmin(aᵢ, bᵢ) / Σmax(aᵢ, bᵢ) = (total − difference) / (total + difference)``

    Returns
    -------
    array
        The similarities, in the shape of the arguments.

    Examples
    --------
    >>> minmax_of(total=[4, 3, 0], difference=[2, 3, 0]).round(3).tolist()
    [0.333, 0.0, 1.0]
    """
    total, difference = _floats(total, difference)
    return _ratio(total - difference, total + difference)


def bit_agreement_of(
    dot: npt.ArrayLike, size_a: npt.ArrayLike, size_b: npt.ArrayLike, bits: int
) -> Floats:
    """Share of equal bits, zeros included, of 0/1 vectors with so many bits.

    Returns
    -------
    array
        The shares, in the shape of the arguments.

    Examples
    --------
    >>> bit_agreement_of(dot=[1, 0, 0], size_a=[2, 0, 0], size_b=[2, 3, 0], bits=4).tolist()
    [0.5, 0.25, 1.0]
    """
    dot, size_a, size_b = _floats(dot, size_a, size_b)
    different = size_a + size_b - 2 * dot
    return _ratio(bits - different, np.full_like(different, bits))


def _floats(*arrays: npt.ArrayLike) -> list[Floats]:
    """Arrays of floats: small integers would overflow in a sum of two sizes."""
    plain = [np.asarray(array) for array in arrays]
    return [values if values.dtype.kind == "f" else values.astype(np.float64) for values in plain]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient that is 1 where the denominator is 0: nothing on either side is agreement."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    ones = np.ones(shape, dtype=np.result_type(numerator, denominator))
    return np.divide(numerator, denominator, out=ones, where=denominator != 0)
