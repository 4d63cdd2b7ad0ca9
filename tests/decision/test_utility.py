import numpy as np
import pytest

from mzseek.decision.distributions import distribution, expected, expected_of_candidates
from mzseek.decision.utilities import UTILITIES

ROWS = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
KNOWN = distribution(ROWS, [0.4, 0.3, 0.1, 0.2])


@pytest.mark.parametrize("name", UTILITIES)
def test_a_decision_that_is_the_truth_is_worth_one(name: str) -> None:
    for size in (0.0, 1.0, 4.0):
        found = UTILITIES[name].of(np.float64(size), np.float64(size), np.float64(size), 4)
        assert float(found) == 1.0


@pytest.mark.parametrize("name", UTILITIES)
def test_the_short_way_over_candidates_is_the_long_one(name: str) -> None:
    one_by_one = [expected(name, KNOWN.bits_of(row), KNOWN) for row in range(len(KNOWN))]
    assert expected_of_candidates(name, KNOWN) == pytest.approx(one_by_one)


@pytest.mark.parametrize("name", UTILITIES)
def test_without_its_bound_a_decision_is_the_same(name: str) -> None:
    with_bound, without = (UTILITIES[name].decode(KNOWN, bound=bound) for bound in (True, False))
    assert with_bound.bits.tolist() == without.bits.tolist()
    assert with_bound.value == without.value == pytest.approx(expected(name, without.bits, KNOWN))
