import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from torch.autograd import gradcheck

from mzseek.similarity.soft import candidate_cosine, soft_cosine, soft_tanimoto
from mzseek.tensors import SparseRows

from .conftest import SIMILARITIES

SOFT = {"cosine": soft_cosine, "soft-tanimoto": soft_tanimoto}

FOUR = np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]])


@st.composite
def ragged(draw):
    """Predictions, candidates and their counts; zero rows and empty lists among them."""
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    bits = draw(st.integers(1, 6))
    probability = st.integers(0, 8).map(lambda n: n / 8)
    predictions = draw(arrays(float, (len(counts), bits), elements=probability))
    candidates = draw(arrays(float, (sum(counts), bits), elements=st.integers(0, 1)))
    predictions[draw(arrays(bool, len(counts)))] = 0
    candidates[draw(arrays(bool, sum(counts)))] = 0
    return predictions, candidates, counts


def sparse(matrix: np.ndarray) -> SparseRows:
    return SparseRows.from_csr(csr_array(matrix), binary=True)


@given(ragged())
def test_candidates_are_compared_as_rows_are(lists) -> None:
    predictions, candidates, counts = lists
    wanted = SIMILARITIES["cosine"](np.repeat(predictions, counts, axis=0), candidates)
    got = candidate_cosine(torch.from_numpy(predictions), sparse(candidates), torch.tensor(counts))
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", SOFT)
@given(ragged())
def test_targets_are_compared_as_rows_are(kind: str, lists) -> None:
    predictions, candidates, counts = lists
    rows = predictions[np.repeat(np.arange(len(counts)), counts)]
    wanted = SIMILARITIES[kind](rows, candidates)
    for target in (torch.from_numpy(candidates), sparse(candidates)):
        got = SOFT[kind](torch.from_numpy(rows), target)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["candidates", *SOFT])
def test_gradcheck(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    predictions = torch.rand(4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([2, 0, 2, 0])
    functions = {"candidates": lambda each, rows: candidate_cosine(each, rows, counts), **SOFT}
    assert gradcheck(lambda each: functions[name](each, sparse(FOUR)), predictions)


@given(ragged())
def test_zero_vectors_have_finite_gradients(lists) -> None:
    predictions, candidates, counts = lists
    rows = torch.from_numpy(predictions).float().requires_grad_()
    candidate_cosine(rows, sparse(candidates), torch.tensor(counts)).sum().backward()
    assert rows.grad.isfinite().all()
    for similarity in SOFT.values():
        rows = torch.from_numpy(np.repeat(predictions, counts, axis=0)).float().requires_grad_()
        similarity(rows, sparse(candidates)).sum().backward()
        assert rows.grad.isfinite().all()


def test_a_candidate_without_bits_leaves_the_others_their_gradient() -> None:
    predictions = torch.tensor([[0.5, 0.25]], requires_grad=True)
    with_empty = sparse(np.array([[1, 0], [0, 0]]))
    alone = sparse(np.array([[1, 0]]))
    gradients = [
        torch.autograd.grad(
            candidate_cosine(predictions, rows, torch.tensor([rows.shape[0]])).sum(),
            predictions,
        )[0]
        for rows in (with_empty, alone)
    ]
    assert gradients[1].any()
    assert torch.equal(*gradients)
