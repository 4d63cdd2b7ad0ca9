from dataclasses import fields, is_dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from mzseek.tensors import PeakLists, SparseRows, query_index, repeat_per_list

matrices = st.tuples(st.integers(0, 5), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.0, 1.0, -2.5]))
)


def turned_back(rows: SparseRows) -> np.ndarray:
    """The dense matrix, read from the transpose alone."""
    turned = rows.transposed
    assert turned is not None
    full = np.zeros(rows.shape)
    borders = [*turned.starts.tolist(), len(turned.indices)]
    for column, (start, end) in zip(turned.columns, pairwise(borders), strict=True):
        for entry in range(start, end):
            value = 1.0 if turned.values is None else turned.values[entry]
            full[turned.indices[entry], column] += value
    return full


@given(matrices)
def test_dense_gives_back_the_matrix(matrix: np.ndarray) -> None:
    rows = SparseRows.from_csr(csr_array(matrix))
    assert rows.shape == matrix.shape
    assert rows.sizes.tolist() == np.count_nonzero(matrix, axis=1).tolist()
    assert (rows.dense(torch.float64).numpy() == matrix).all()
    assert rows.dense().dtype == torch.float32


@given(matrices, st.booleans())
def test_the_transpose_has_the_same_entries(matrix: np.ndarray, binary: bool) -> None:
    rows = SparseRows.from_csr(csr_array(matrix), binary=binary, transpose=True)
    assert (turned_back(rows) == (matrix != 0 if binary else matrix)).all()
    assert rows.transposed.columns.tolist() == np.flatnonzero(matrix.any(0)).tolist()


@pytest.mark.parametrize("binary", [True, False])
def test_ready_is_the_transpose_made_later_and_once(matrix, sparse, binary: bool) -> None:
    later = sparse(matrix, binary=binary).ready()
    wanted = sparse(matrix, binary=binary, transpose=True)
    assert later.ready() is later
    assert wanted.ready() is wanted
    assert (turned_back(later) == turned_back(wanted)).all()
    assert (later.transposed.values is None) == binary


def test_entries_given_twice_add_up(sparse) -> None:
    rows = SparseRows.from_arrays(
        np.array([0, 3]), np.array([1, 1, 2]), np.array([0.5, 0.25, 2.0]), 4, transpose=True
    )
    assert rows.dense().tolist() == [[0, 0.75, 2, 0]]
    assert turned_back(rows).tolist() == [[0, 0.75, 2, 0]]


def device_types(value) -> set[str]:
    """Of all tensors in a dataclass, whatever it is nested in."""
    if isinstance(value, torch.Tensor):
        return {value.device.type}
    inside = [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else []
    return set().union(*map(device_types, inside))


@pytest.mark.parametrize("transpose", [True, False])
def test_another_device_gets_everything(matrix, sparse, transpose: bool) -> None:
    peaks = PeakLists(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3) > 0, torch.ones(2))
    for tensors in (sparse(matrix, transpose=transpose), peaks):
        assert device_types(tensors) == {"cpu"}
        assert device_types(tensors.to("meta")) == {"meta"}


def test_indices_are_small_integers_whatever_they_were() -> None:
    rows = SparseRows.from_arrays(np.array([0, 1]), np.array([2]), None, 3, transpose=True)
    assert {rows.indptr.dtype, rows.indices.dtype, rows.transposed.indices.dtype} == {torch.int32}


@given(st.lists(st.integers(0, 4), max_size=6), st.sampled_from([torch.int32, torch.int64]))
def test_query_index_names_the_list_of_each_entry(counts: list[int], dtype: torch.dtype) -> None:
    wanted = [i for i, count in enumerate(counts) for _ in range(count)]
    got = query_index(torch.tensor(counts, dtype=dtype))
    assert got.dtype == torch.int64
    assert got.tolist() == wanted


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_it_is_indexing_with_gradients(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([2, 0, 3, 1])
    assert torch.equal(repeat_per_list(values, counts), values[query_index(counts)])
    assert torch.autograd.gradcheck(lambda v: repeat_per_list(v, counts).square(), values)


def test_no_candidates_at_all() -> None:
    values = torch.randn(2, 3, requires_grad=True)
    repeat_per_list(values, torch.tensor([0, 0])).sum().backward()
    assert torch.equal(values.grad, torch.zeros(2, 3))


def test_two_threads_give_the_same_gradient_every_time() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        counts = torch.full((64,), 253)
        weights = torch.randn(64 * 253, 256)
        found = []
        for _ in range(5):
            values = torch.ones(64, 256, requires_grad=True)
            (repeat_per_list(values, counts) * weights).sum().backward()
            found.append(values.grad)
        assert all(torch.equal(found[0], other) for other in found[1:])
    finally:
        torch.set_num_threads(before)
