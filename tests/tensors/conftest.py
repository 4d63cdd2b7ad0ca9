"""Sparse rows of every shape that matters, and ragged lists of them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from mzseek.tensors import SparseRows

# Candidates of each list; the second and the last list are empty.
COUNTS = [2, 0, 1, 4, 0]


def full_matrix() -> np.ndarray:
    """Seven rows of nine columns: empty rows first, within and last, columns 0 and 5 unused."""
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((7, 9)) < 0.5, rng.normal(size=(7, 9)), 0)
    matrix[[0, 3, 6]] = 0
    matrix[:, [0, 5]] = 0
    return matrix


MATRICES = {
    "some rows empty": full_matrix(),
    "no entries": np.zeros((7, 9)),
    "all entries": np.arange(1.0, 64.0).reshape(7, 9) / 16,
}


@pytest.fixture(params=MATRICES)
def matrix(request) -> np.ndarray:
    return MATRICES[request.param]


@pytest.fixture
def counts() -> torch.Tensor:
    return torch.tensor(COUNTS)


@pytest.fixture
def sparse() -> Callable[..., SparseRows]:
    """Rows of a dense matrix; ``binary`` says that what is not zero is one."""

    def make(matrix: np.ndarray, *, binary: bool = False, transpose: bool = False) -> SparseRows:
        return SparseRows.from_csr(csr_array(matrix), binary=binary, transpose=transpose)

    return make
