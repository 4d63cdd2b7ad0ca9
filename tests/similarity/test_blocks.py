import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.similarity import packed as blocks
from mzseek.similarity import tanimoto_blocks

matrices = st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=9).map(
    lambda rows: np.array([[i in row for i in range(10)] for row in rows], dtype=int)
)


@given(matrices, matrices, st.integers(1, 4))
def test_tanimoto_is_intersection_over_union(one: np.ndarray, other: np.ndarray, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_ROWS", size)
        got_blocks = list(tanimoto_blocks(csr_array(one), csr_array(other)))
    assert [start for start, _ in got_blocks] == list(range(0, len(one), size))
    got = np.concatenate([block for _, block in got_blocks])
    for i, row in enumerate(one):
        for j, column in enumerate(other):
            union = int((row | column).sum())
            wanted = int((row & column).sum()) / union if union else 1.0
            assert got[i, j] == pytest.approx(wanted, rel=1e-6)
