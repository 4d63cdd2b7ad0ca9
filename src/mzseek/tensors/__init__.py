"""Sparse rows and peak lists as tensors, and their products with dense weights."""

from mzseek.tensors.products import (
    Deferred,
    accept_deferred,
    deferred,
    forget_deferred,
    gather_dot,
    mapped_norm,
    product,
    weighted_product,
)
from mzseek.tensors.rows import PeakLists, SparseRows, query_index, repeat_per_list

__all__ = [
    "Deferred",
    "PeakLists",
    "SparseRows",
    "accept_deferred",
    "deferred",
    "forget_deferred",
    "gather_dot",
    "mapped_norm",
    "product",
    "query_index",
    "repeat_per_list",
    "weighted_product",
]
