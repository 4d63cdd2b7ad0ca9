"""Sparse rows and peak lists as tensors, and their products with dense weights."""

from mzseek.tensors.deferral import Deferred, accept_deferred, deferred, forget_deferred
from mzseek.tensors.gather import gather_dot
from mzseek.tensors.norm import mapped_norm
from mzseek.tensors.peaks import PeakLists
from mzseek.tensors.products import product
from mzseek.tensors.rows import SparseRows, Transposed, query_index
from mzseek.tensors.spreading import spread
from mzseek.tensors.weighted import weighted_product

__all__ = [
    "Deferred",
    "PeakLists",
    "SparseRows",
    "Transposed",
    "accept_deferred",
    "deferred",
    "forget_deferred",
    "gather_dot",
    "mapped_norm",
    "product",
    "query_index",
    "spread",
    "weighted_product",
]
