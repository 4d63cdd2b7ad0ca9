import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.datasets.build import (
    assign_folds,
    join_clusters,
    nearest_similarity,
    structure_clusters,
)
from mzseek.similarity import packed as blocks

matrices = st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=14).map(
    lambda rows: np.array([[i in row for i in range(12)] for row in rows], dtype=int)
)


def tanimoto(one: np.ndarray, other: np.ndarray) -> float:
    union = int((one | other).sum())
    return 1.0 if union == 0 else int((one & other).sum()) / union


@given(matrices, st.sampled_from([0.3, 0.5, 0.8]))
def test_clusters_are_what_single_linkage_gives(dense: np.ndarray, threshold: float) -> None:
    size = len(dense)
    group = list(range(size))
    for i in range(size):
        for j in range(size):
            # float32 in the code: keep clear of the threshold
            if tanimoto(dense[i], dense[j]) >= threshold - 1e-6:
                old, new = group[i], group[j]
                group = [new if g == old else g for g in group]
    got = structure_clusters(csr_array(dense), threshold - 1e-6)
    for i in range(size):
        for j in range(size):
            assert (got[i] == got[j]) == (group[i] == group[j])


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=15))
def test_joined_clusters_share_neither_cluster_nor_label(pairs: list[tuple[int, int]]) -> None:
    clusters = np.array([c for c, _ in pairs], dtype=np.int64)
    labels = np.array([label for _, label in pairs], dtype=np.int64)
    joined = join_clusters(clusters, labels)
    for i in range(len(pairs)):
        for j in range(len(pairs)):
            if clusters[i] == clusters[j] or labels[i] == labels[j]:
                assert joined[i] == joined[j]
    # No more is joined than must be: as many groups as a search from scratch finds.
    group = list(range(len(pairs)))
    for i in range(len(pairs)):
        for j in range(len(pairs)):
            if pairs[i][0] == pairs[j][0] or pairs[i][1] == pairs[j][1]:
                old, new = group[i], group[j]
                group = [new if g == old else g for g in group]
    assert len(set(group)) == len(set(joined.tolist()))


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    dense = (rng.random((50, 30)) < 0.2).astype(int)
    whole = structure_clusters(csr_array(dense), 0.4)
    monkeypatch.setattr(blocks, "_ROWS", 7)
    assert np.array_equal(structure_clusters(csr_array(dense), 0.4), whole)


@given(matrices, matrices)
def test_nearest(one: np.ndarray, other: np.ndarray) -> None:
    got = nearest_similarity(csr_array(one), csr_array(other))
    wanted = [max(tanimoto(row, candidate) for candidate in other) for row in one]
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_nearest_of_nothing() -> None:
    assert (
        nearest_similarity(csr_array(np.eye(3, dtype=int)), csr_array((0, 3))).tolist() == [0] * 3
    )
    assert structure_clusters(csr_array((0, 3))).tolist() == []


@given(st.lists(st.integers(0, 40), min_size=1, max_size=400), st.integers(0, 5))
def test_no_cluster_is_torn_and_shares_are_near(labels: list[int], seed: int) -> None:
    clusters = np.unique(labels, return_inverse=True)[1]
    fractions = {"train": 0.8, "val": 0.1, "test": 0.1}
    folds = assign_folds(clusters, fractions, seed)
    for cluster in np.unique(clusters):
        assert len({folds[i] for i in np.flatnonzero(clusters == cluster)}) == 1
    largest = int(np.bincount(clusters).max())
    for name, share in fractions.items():
        assert abs(folds.count(name) - share * len(folds)) <= largest + 1
    assert folds == assign_folds(clusters, fractions, seed)
