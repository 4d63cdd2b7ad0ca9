import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from torch.autograd import gradcheck

from mzseek.errors import SimilarityError
from mzseek.similarity import SIMILARITIES
from mzseek.similarity.soft import (
    CANDIDATE_SIMILARITIES,
    candidate_similarity,
    soft_cosine,
    soft_tanimoto,
)
from mzseek.tensors import SparseRows, query_index

SOFT = {"cosine": soft_cosine, "soft-tanimoto": soft_tanimoto}


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


@pytest.mark.parametrize("kind", CANDIDATE_SIMILARITIES)
@settings(deadline=None)
@given(ragged())
def test_candidates_are_compared_as_rows_are(kind: str, lists) -> None:
    predictions, candidates, counts = lists
    queries = np.repeat(np.arange(len(counts)), counts)
    rows = predictions[queries]
    wanted = SIMILARITIES[kind](rows > 0.5 if kind == "tanimoto" else rows, candidates)
    got = candidate_similarity(
        torch.from_numpy(predictions), sparse(candidates), torch.tensor(counts), kind
    )
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", SOFT)
@settings(deadline=None)
@given(ragged())
def test_targets_are_compared_as_rows_are(kind: str, lists) -> None:
    predictions, candidates, counts = lists
    rows = predictions[np.repeat(np.arange(len(counts)), counts)]
    wanted = SIMILARITIES[kind](rows, candidates)
    for target in (torch.from_numpy(candidates), sparse(candidates)):
        got = SOFT[kind](torch.from_numpy(rows), target)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["cosine", "soft-tanimoto", "minmax-tanimoto"])
def test_gradcheck(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    predictions = torch.rand(3, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    candidates = np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]])
    counts = torch.tensor([2, 0, 2])
    assert gradcheck(
        lambda each: candidate_similarity(each, sparse(candidates), counts, kind), predictions
    )


@pytest.mark.parametrize("kind", ["cosine", "soft-tanimoto", "minmax-tanimoto"])
@settings(deadline=None)
@given(ragged())
def test_zero_vectors_have_finite_gradients(kind: str, lists) -> None:
    predictions, candidates, counts = lists
    predictions = torch.from_numpy(predictions).float().requires_grad_()
    candidate_similarity(
        predictions, sparse(candidates), torch.tensor(counts), kind
    ).sum().backward()
    assert predictions.grad.isfinite().all()


def test_a_candidate_without_bits_leaves_the_others_their_gradient() -> None:
    predictions = torch.tensor([[0.5, 0.25]], requires_grad=True)
    with_empty = sparse(np.array([[1, 0], [0, 0]]))
    alone = sparse(np.array([[1, 0]]))
    gradients = [
        torch.autograd.grad(
            candidate_similarity(predictions, rows, torch.tensor([rows.shape[0]])).sum(),
            predictions,
        )[0]
        for rows in (with_empty, alone)
    ]
    assert gradients[1].any()
    assert torch.equal(*gradients)


def test_the_threshold_itself_is_not_above_it() -> None:
    prediction = torch.tensor([[0.5, 0.75]])
    rows = sparse(np.array([[1, 0], [0, 1]]))
    assert candidate_similarity(prediction, rows, torch.tensor([2]), "tanimoto").tolist() == [0, 1]


def test_each_candidate_meets_the_prediction_of_its_own_list() -> None:
    predictions = torch.eye(3)
    rows = sparse(np.eye(3)[[0, 1, 1, 2, 0]])
    counts = torch.tensor([2, 1, 2])
    assert query_index(counts).tolist() == [0, 0, 1, 2, 2]
    assert candidate_similarity(predictions, rows, counts).tolist() == [1, 0, 1, 1, 0]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(SimilarityError, match="'dice' is unknown, expected one of cosine, tanim"):
        candidate_similarity(torch.ones(1, 2), sparse(np.eye(2)), torch.tensor([2]), "dice")
