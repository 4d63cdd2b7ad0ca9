import numpy as np

from mzseek.decision.decoders import exact


def test_an_exact_decision_is_its_own_bound() -> None:
    got = exact(4, np.array([3, 1]), np.float64(0.25))
    assert got.bits.tolist() == [0, 1, 0, 1]
    assert got.bits.dtype == np.uint8
    assert (got.value, got.upper_bound) == (0.25, 0.25)


def test_no_chosen_bit_is_the_zero_vector() -> None:
    assert exact(3, np.array([], np.int64), 1).bits.tolist() == [0, 0, 0]
