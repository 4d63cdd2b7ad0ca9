import numpy as np
import pytest
from hypothesis import given

from mzseek.decision import distribution
from mzseek.decision.decoders import decode_bits

from ..conftest import candidate_sets, every, expected_by_hand, unhurried


@unhurried
@given(candidate_sets(bits=10))
def test_no_fingerprint_has_more_bits_right(found) -> None:
    rows, p = found
    got = decode_bits(distribution(rows, p))
    best = expected_by_hand("bits", every(rows.shape[1]), rows, p).max()
    assert got.value == pytest.approx(best, abs=1e-9)
    assert expected_by_hand("bits", [got.bits], rows, p) == pytest.approx([best], abs=1e-9)
    assert got.upper_bound == got.value


def test_a_bit_that_half_of_the_probability_has_is_not_set() -> None:
    assert decode_bits(distribution([[1, 1], [0, 1]], [0.5, 0.5])).bits.tolist() == [0, 1]


def test_fingerprints_without_bits_are_right() -> None:
    got = decode_bits(distribution(np.zeros((2, 0)), [0.5, 0.5]))
    assert (got.bits.shape, got.value) == ((0,), 1.0)
