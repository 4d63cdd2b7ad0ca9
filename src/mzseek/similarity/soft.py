"""Similarities of soft predictions with 0/1 fingerprints, as tensors with gradients."""

import torch
from torch import Tensor

from mzseek.tensors import SparseRows, gather_dot, repeat_per_list

Target = Tensor | SparseRows


def dot_rows(prediction: Tensor, target: Target) -> Tensor:
    """Return the dot product of each row with its dense or sparse target, shape (rows,)."""
    if isinstance(target, SparseRows):
        return gather_dot(prediction, target, torch.ones_like(target.starts))
    return (prediction * target).sum(1)


def size_rows(target: Target, dtype: torch.dtype) -> Tensor:
    """Return the number of set bits of each target."""
    if isinstance(target, SparseRows):
        return target.sizes.to(dtype)
    return target.sum(1).to(dtype)


def soft_cosine(prediction: Tensor, target: Target) -> Tensor:
    """Cosine of each prediction with its 0/1 target, shape (rows,).

    Of two zero vectors it is 1, of one 0.
    """
    size = size_rows(target, prediction.dtype)
    return _cosine_from(
        dot_rows(prediction, target), torch.linalg.vector_norm(prediction, dim=1), size
    )


def soft_tanimoto(prediction: Tensor, target: Target) -> Tensor:
    """Product form ``ŷᵀy / (‖ŷ‖₁ + ‖y‖₁ − ŷᵀy)`` of each prediction with its target."""
    size = size_rows(target, prediction.dtype)
    dot, total = dot_rows(prediction, target), prediction.sum(1)
    return _ratio(dot, total + size - dot, both_zero=(total == 0) & (size == 0))


def _cosine_from(dot: Tensor, length: Tensor, size: Tensor) -> Tensor:
    """Cosine from a dot product, a prediction's norm, and the bits of a fingerprint."""
    # The root of a product of the two squares would have a gradient of 0/0 at a zero vector.
    return _ratio(dot, length * size.sqrt(), both_zero=(length == 0) & (size == 0))


def _ratio(above: Tensor, below: Tensor, *, both_zero: Tensor) -> Tensor:
    # Dividing by one where the answer is known keeps NaN out of the gradient.
    safe = torch.where(below > 0, below, torch.ones_like(below))
    return torch.where(both_zero, torch.ones_like(above), above / safe)


def candidate_cosine(prediction: Tensor, candidates: SparseRows, counts: Tensor) -> Tensor:
    """Cosine of each predicted fingerprint with each candidate of its own list.

    Parameters
    ----------
    prediction : float tensor, shape (lists, bits)
        Within [0, 1].
    candidates : SparseRows of ones, shape (candidates, bits)
    counts : int tensor, shape (lists,)

    Returns
    -------
    tensor, shape (candidates,)
    """
    length = repeat_per_list(torch.linalg.vector_norm(prediction, dim=1), counts)
    dot = gather_dot(prediction, candidates, counts)
    return _cosine_from(dot, length, candidates.sizes.to(dot.dtype))
