import numpy as np
import pytest
from hypothesis import given

from mzseek.decision import distribution
from mzseek.decision.decoders import decode_hit

from ..conftest import candidate_sets, every, expected_by_hand, unhurried


@unhurried
@given(candidate_sets(bits=8))
def test_no_fingerprint_is_more_probable(found) -> None:
    rows, p = found
    got = decode_hit(distribution(rows, p))
    best = expected_by_hand("hit", every(rows.shape[1]), rows, p).max()
    assert got.value == pytest.approx(best, abs=1e-9)
    assert expected_by_hand("hit", [got.bits], rows, p) == pytest.approx([best], abs=1e-9)
    assert got.upper_bound == got.value


def test_twins_together_may_beat_the_most_probable_row() -> None:
    got = decode_hit(distribution([[1, 0], [0, 1], [1, 0]], [0.3, 0.4, 0.3]))
    assert got.bits.tolist() == [1, 0]
    assert got.value == pytest.approx(0.6)


def test_of_equally_probable_ones_the_first_is_taken() -> None:
    assert decode_hit(distribution([[0, 1], [1, 0]], [0.5, 0.5])).bits.tolist() == [0, 1]
    assert decode_hit(distribution(np.zeros((1, 3)), [1])).bits.tolist() == [0, 0, 0]
