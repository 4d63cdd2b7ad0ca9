import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.decision import distribution
from mzseek.decision.decoders import decode_f1, largest, size_marginals

from ..conftest import candidate_sets, every, expected_by_hand, unhurried


@unhurried
@given(candidate_sets(bits=10))
def test_no_fingerprint_has_a_higher_expected_f1(found) -> None:
    rows, p = found
    got = decode_f1(distribution(rows, p))
    best = expected_by_hand("f1", every(rows.shape[1]), rows, p).max()
    assert got.value == pytest.approx(best, abs=1e-9)
    assert expected_by_hand("f1", [got.bits], rows, p) == pytest.approx([best], abs=1e-9)
    assert got.upper_bound == got.value


def test_the_zero_vector_is_decided_for_where_it_is_likely_enough() -> None:
    got = decode_f1(distribution([[0, 0], [1, 0], [0, 1]], [0.6, 0.2, 0.2]))
    assert (got.bits.tolist(), got.value) == ([0, 0], 0.6)


@unhurried
@given(candidate_sets())
def test_size_marginals_are_counted_by_bit_and_size(found) -> None:
    rows, p = found
    known = distribution(rows, p)
    used, (sizes, _) = np.flatnonzero(known.used), known.by_size
    got = size_marginals(known, used, sizes)
    for i, bit in enumerate(used):
        for j, size in enumerate(sizes):
            here = (rows[:, bit] == 1) & (rows.sum(1) == size)
            assert got[i, j] == pytest.approx(p[here].sum(), abs=1e-12)


@unhurried
@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 10))
def test_the_largest_are_no_smaller_than_the_rest(values, count: int) -> None:
    places = largest(np.array(values, float), count)
    assert len(set(places.tolist())) == min(count, len(values))
    assert sorted(np.array(values)[places]) == sorted(values)[-count:]
