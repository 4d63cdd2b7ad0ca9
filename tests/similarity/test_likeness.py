"""Similarities to molecules that stay the same."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mzseek.similarity.packed import ReferenceSimilarity, Words, marks, pack_words, packed_tanimoto


def drawn(rows: int, bits: int, seed: int) -> Words:
    """Rows in which a few bits are frequent and most are rare; the first has none."""
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, bits)) < 2 / (1 + np.arange(bits)[rng.permutation(bits)])
    dense[0] = False
    return pack_words(csr_array(dense.astype(np.int32)))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("bits", [5, 167, 700, 4096])
def test_sums_are_those_over_all_similarities(
    bits: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mzseek.similarity.packed.is_plain", lambda: plain)
    rows, known = drawn(6, bits, 1), drawn(19, bits, 2)
    known[4] = rows[3]
    known[7] = rows[3]
    weights = np.random.default_rng(3).normal(size=(19, 2)).astype(np.float32)
    lends, itself = np.ones(19, np.bool_), np.ones(19, np.bool_)
    lends[5] = itself[7] = False
    alike = packed_tanimoto(rows, known).astype(np.float64)
    assert alike[3, 4] == alike[3, 7] == 1
    alike[itself & (alike >= 0.9999)] = 0
    alike[:, 5] = 0
    wanted = np.array([7, 0, 5])
    sums, some = ReferenceSimilarity(known).to_rows(
        rows, weights, lends=lends, itself=itself, same=0.9999, wanted=wanted
    )
    assert np.allclose(sums, np.stack([alike @ weights, alike**2 @ weights], 2), atol=1e-6)
    assert np.allclose(some, alike[:, wanted], atol=1e-6)
    assert some[3, 0] == 1  # as similar as can be, and another molecule


def test_a_row_depends_on_no_other() -> None:
    rows, known = drawn(8, 2048, 1), drawn(50, 2048, 2)
    weights = np.random.default_rng(3).normal(size=(50, 3)).astype(np.float32)
    asked = {"lends": np.ones(50, np.bool_), "itself": np.zeros(50, np.bool_)}
    together, _ = ReferenceSimilarity(known).to_rows(rows, weights, **asked)
    for row in range(8):
        alone, _ = ReferenceSimilarity(known).to_rows(rows[row : row + 1], weights[:, 1:2], **asked)
        assert np.array_equal(alone[0, 0], together[row, 1])


def test_marks_tell_fingerprints_apart() -> None:
    rows = drawn(200, 2048, 4)
    assert np.array_equal(marks(rows), marks(rows.copy()))
    assert len(np.unique(marks(rows))) == len(np.unique(rows, axis=0))


def test_machine_code_and_numpy_add_up_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, known = drawn(8, 2048, 1), drawn(203, 2048, 2)
    weights = np.random.default_rng(3).normal(size=(203, 3)).astype(np.float32)
    asked = {"lends": np.arange(203) % 5 > 0, "itself": np.arange(203) % 3 > 0, "same": 0.3}
    compiled = ReferenceSimilarity(known).to_rows(rows, weights, **asked, wanted=np.array([4, 1]))
    monkeypatch.setattr("mzseek.similarity.packed.is_plain", lambda: True)
    plain = ReferenceSimilarity(known).to_rows(rows, weights, **asked, wanted=np.array([4, 1]))
    assert all(np.array_equal(one, other) for one, other in zip(compiled, plain, strict=True))
    assert (compiled[0][1:] != 0).all()  # the first row has no bits
