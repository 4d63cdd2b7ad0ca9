import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.core.errors import SimilarityError
from mzseek.similarity.lists import LIST_SIMILARITIES, list_similarities
from mzseek.similarity.soft import candidate_cosine
from mzseek.tensors import SparseRows

from .conftest import SIMILARITIES


def list_similarity(predictions, candidates, counts, kind: str = "cosine") -> np.ndarray:
    return list_similarities(predictions, candidates, counts, (kind,))[kind]


def lists(counts: list[int], bits: int, seed: int) -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Predictions, the first of them zero, and candidates, some of them without bits."""
    rng = np.random.default_rng(seed)
    predictions = rng.random((len(counts), bits), dtype=np.float32)
    predictions[:1] = 0
    dense = (rng.random((sum(counts), bits)) < rng.random((sum(counts), 1))).astype(np.float32)
    dense[::5] = 0
    return predictions, csr_array(dense), np.array(counts, np.int64)


@pytest.mark.parametrize("kind", LIST_SIMILARITIES)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 40), st.integers(0, 99))
def test_similarities_are_those_of_rows(kind: str, counts: list[int], bits: int, seed: int) -> None:
    predictions, candidates, lengths = lists(counts, bits, seed)
    rows = np.repeat(predictions, lengths, axis=0)
    rows = rows > 0.5 if kind == "tanimoto" else rows
    wanted = SIMILARITIES[kind](rows.astype(np.float64), candidates.toarray())
    found = list_similarity(predictions, candidates, lengths, kind)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_cosines_are_those_with_gradients() -> None:
    predictions, candidates, counts = lists([4, 0, 30, 1], 64, 0)
    rows = SparseRows.from_csr(candidates, binary=True)
    wanted = candidate_cosine(torch.from_numpy(predictions), rows, torch.from_numpy(counts))
    found = list_similarity(predictions, candidates, counts)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_the_threshold_itself_is_not_above_it() -> None:
    prediction = np.array([[0.5, 0.75]], np.float32)
    rows = csr_array(np.eye(2, dtype=np.float32))
    assert list_similarity(prediction, rows, np.array([2]), "tanimoto").tolist() == [0, 1]


def test_no_lists_and_no_candidates() -> None:
    none = csr_array((0, 8), dtype=np.float32)
    assert list_similarity(np.zeros((0, 8), np.float32), none, np.zeros(0, np.int64)).tolist() == []
    assert list_similarity(np.zeros((2, 8), np.float32), none, np.zeros(2, np.int64)).tolist() == []


def test_unknown_kinds_are_refused_with_the_known_ones() -> None:
    with pytest.raises(SimilarityError, match="'dice' is unknown, expected one of: cosine, tani"):
        list_similarity(*lists([2], 8, 0), "dice")
