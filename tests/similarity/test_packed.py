"""Tanimoto of packed fingerprints."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mzseek.similarity import tanimoto
from mzseek.similarity.packed import pack_words, packed_tanimoto, unpack_words


def drawn(rows: int, bits: int, seed: int = 0) -> csr_array:
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, bits)) < rng.random((rows, 1))
    dense[0] = False
    return csr_array(dense.astype(np.int32))


@pytest.mark.parametrize("bits", [1, 63, 64, 65, 167, 4096])
def test_packing_and_unpacking_changes_nothing(bits: int) -> None:
    rows = drawn(7, bits)
    packed = pack_words(rows)
    assert packed.shape == (7, -(-bits // 64))
    assert np.array_equal(unpack_words(packed, bits).toarray(), rows.toarray())
    assert unpack_words(packed[:0], bits).shape == (0, bits)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("bits", [5, 64, 167])
def test_it_is_the_tanimoto_of_rows(
    bits: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mzseek.similarity.packed.is_plain", lambda: plain)
    rows, others = drawn(6, bits, 1), drawn(4, bits, 2)
    found = packed_tanimoto(pack_words(rows), pack_words(others))
    for place in range(4):
        expected = tanimoto(rows, csr_array(np.repeat(others[[place]].toarray(), 6, 0)))
        assert np.allclose(found[:, place], expected)
    assert found[0, 0] == 1  # two empty ones are equal
