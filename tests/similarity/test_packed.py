"""Tanimoto of packed fingerprints: pairs, blocks, and sums over fixed references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.similarity import packed, tanimoto, tanimoto_blocks
from mzseek.similarity.packed import (
    ReferenceSimilarity,
    Words,
    fingerprint_hashes,
    pack_words,
    packed_tanimoto,
    unpack_words,
)

matrices = st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=9).map(
    lambda rows: np.array([[i in row for i in range(10)] for row in rows], dtype=int)
)


def drawn(rows: int, bits: int, seed: int = 0) -> csr_array:
    """Rows in which a few bits are frequent and most are rare; the first has none."""
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, bits)) < 2 / (1 + np.arange(bits)[rng.permutation(bits)])
    dense[0] = False
    return csr_array(dense.astype(np.int32))


def words(rows: int, bits: int, seed: int = 0) -> Words:
    return pack_words(drawn(rows, bits, seed))


@given(matrices, matrices, st.integers(1, 4))
def test_blocks_are_intersection_over_union(one: np.ndarray, other: np.ndarray, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "_ROWS", size)
        blocks = list(tanimoto_blocks(csr_array(one), csr_array(other)))
    assert [start for start, _ in blocks] == list(range(0, len(one), size))
    found = np.concatenate([block for _, block in blocks])
    common, union = one @ other.T, (one[:, None] | other[None]).sum(2)
    expected = np.where(union > 0, common / np.maximum(union, 1), 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("bits", [1, 63, 64, 65, 167, 4096])
def test_packing_and_unpacking_changes_nothing(bits: int) -> None:
    rows = drawn(7, bits)
    packed_rows = pack_words(rows)
    assert packed_rows.shape == (7, -(-bits // 64))
    assert np.array_equal(unpack_words(packed_rows, bits).toarray(), rows.toarray())
    assert unpack_words(packed_rows[:0], bits).shape == (0, bits)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("bits", [5, 64, 167])
def test_packed_tanimoto_is_that_of_rows(
    bits: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mzseek.similarity.packed.is_plain", lambda: plain)
    rows, others = drawn(6, bits, 1), drawn(4, bits, 2)
    found = packed_tanimoto(pack_words(rows), pack_words(others))
    for column in range(4):
        expected = tanimoto(rows, csr_array(np.repeat(others[[column]].toarray(), 6, 0)))
        assert np.allclose(found[:, column], expected)
    assert found[0, 0] == 1  # two empty ones are equal


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("bits", [5, 167, 700, 4096])
def test_sums_are_those_over_all_similarities(
    bits: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mzseek.similarity.packed.is_plain", lambda: plain)
    rows, references = words(6, bits, 1), words(19, bits, 2)
    references[[4, 7]] = rows[3]
    weights = np.random.default_rng(3).normal(size=(19, 2)).astype(np.float32)
    included, maybe_same = np.ones(19, np.bool_), np.ones(19, np.bool_)
    included[5] = maybe_same[7] = False
    similarities = packed_tanimoto(rows, references).astype(np.float64)
    assert similarities[3, 4] == similarities[3, 7] == 1
    similarities[maybe_same & (similarities >= 0.9999)] = 0
    similarities[:, 5] = 0
    columns = np.array([7, 0, 5])
    sums, selected = ReferenceSimilarity(references).to_rows(
        rows, weights, included, maybe_same, same=0.9999, selected=columns
    )
    expected = np.stack([similarities @ weights, similarities**2 @ weights], 2)
    assert np.allclose(sums, expected, atol=1e-6)
    assert np.allclose(selected, similarities[:, columns], atol=1e-6)
    assert selected[3, 0] == 1  # as similar as can be, and another molecule


def test_a_row_depends_on_no_other() -> None:
    rows, references = words(8, 2048, 1), ReferenceSimilarity(words(50, 2048, 2))
    weights = np.random.default_rng(3).normal(size=(50, 3)).astype(np.float32)
    flags = np.ones(50, np.bool_), np.zeros(50, np.bool_)
    together, _ = references.to_rows(rows, weights, *flags)
    for row in range(8):
        alone, _ = references.to_rows(rows[row : row + 1], weights[:, 1:2], *flags)
        assert np.array_equal(alone[0, 0], together[row, 1])


def test_machine_code_and_numpy_add_up_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, references = words(8, 2048, 1), ReferenceSimilarity(words(203, 2048, 2))
    weights = np.random.default_rng(3).normal(size=(203, 3)).astype(np.float32)
    flags = np.arange(203) % 5 > 0, np.arange(203) % 3 > 0
    compiled = references.to_rows(rows, weights, *flags, 0.3, np.array([4, 1]))
    monkeypatch.setattr("mzseek.similarity.packed.is_plain", lambda: True)
    plain = references.to_rows(rows, weights, *flags, 0.3, np.array([4, 1]))
    assert all(np.array_equal(one, other) for one, other in zip(compiled, plain, strict=True))
    assert (compiled[0][1:] != 0).all()  # the first row has no bits


def test_hashes_tell_fingerprints_apart() -> None:
    rows = words(200, 2048, 4)
    assert np.array_equal(fingerprint_hashes(rows), fingerprint_hashes(rows.copy()))
    assert len(np.unique(fingerprint_hashes(rows))) == len(np.unique(rows, axis=0))
