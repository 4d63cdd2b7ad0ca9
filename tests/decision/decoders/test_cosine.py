import numpy as np
import pytest
from hypothesis import given

from mzseek.decision import distribution
from mzseek.decision.decoders import decode_cosine

from ..conftest import TOY, TOY_P, candidate_sets, every, expected_by_hand, unhurried


@unhurried
@given(candidate_sets(bits=10))
def test_no_fingerprint_has_a_higher_expected_cosine(found) -> None:
    rows, p = found
    got = decode_cosine(distribution(rows, p))
    best = expected_by_hand("cosine", every(rows.shape[1]), rows, p).max()
    assert got.value == pytest.approx(best, abs=1e-9)
    assert expected_by_hand("cosine", [got.bits], rows, p) == pytest.approx([best], abs=1e-9)
    assert got.upper_bound == got.value


def test_the_zero_vector_is_decided_for_where_it_is_likely_enough() -> None:
    rows = [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    got = decode_cosine(distribution(rows, [0.4, 0.15, 0.15, 0.15, 0.15]))
    assert (got.bits.any(), got.value) == (False, 0.4)
    # All four bits are worth 4 · 0.175 / 2.
    got = decode_cosine(distribution(rows, [0.3, 0.175, 0.175, 0.175, 0.175]))
    assert got.bits.tolist() == [1, 1, 1, 1]
    assert got.value == pytest.approx(0.35)


def test_the_toy_example_takes_every_bit() -> None:
    got = decode_cosine(distribution(TOY, TOY_P))
    assert got.bits.tolist() == [1] * 5
    # Of two bits cos = √(2/5), of three √(3/5).
    assert got.value == pytest.approx(0.6 * np.sqrt(2 / 5) + 0.4 * np.sqrt(3 / 5))
