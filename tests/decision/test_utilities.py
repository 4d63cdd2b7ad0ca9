import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import csr_array

from mzseek.core.errors import DecisionError
from mzseek.decision import UTILITIES, distribution, expected_utility, utility_named
from mzseek.decision.distributions import expected, expected_of_candidates
from mzseek.decision.utilities import BAND_SIMILARITIES

from .conftest import SIMILARITIES, candidate_sets, every, expected_by_hand
from .conftest import UTILITIES as NAMES


def test_values_by_hand() -> None:
    rows, p = [[1, 1, 0, 0], [0, 1, 1, 1]], [0.25, 0.75]
    # 1100 against 0111: one bit in common, a union of four, one bit of four equal.
    wanted = {"hit": 0.25, "bits": 0.25 + 0.75 * 0.25, "tanimoto": 0.25 + 0.75 * 0.25,
              "cosine": 0.25 + 0.75 / np.sqrt(6), "f1": 0.25 + 0.75 * 0.4}  # fmt: skip
    got = {name: expected_utility(name, [1, 1, 0, 0], rows, p) for name in NAMES}
    assert got == pytest.approx(wanted)


@pytest.mark.parametrize("name", [name for name in SIMILARITIES if name != "bits"])
def test_zero_is_like_zero_and_like_nothing_else(name: str) -> None:
    rows = [[0, 0], [1, 0]]
    assert expected_utility(name, [0, 0], rows, [0.3, 0.7]) == pytest.approx(0.3)
    assert expected_utility(name, [1, 0], rows, [0.3, 0.7]) == pytest.approx(0.7)
    assert expected_utility(name, [0, 1], rows, [0.3, 0.7]) == 0


@pytest.mark.parametrize("name", NAMES)
@given(found=candidate_sets(bits=5))
def test_any_fingerprint_is_worth_what_the_definition_says(name: str, found) -> None:
    rows, p = found
    decisions = every(rows.shape[1])
    got = [expected_utility(name, bits, rows, p) for bits in decisions]
    assert got == pytest.approx(expected_by_hand(name, decisions, rows, p), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(found=candidate_sets())
def test_candidates_are_worth_what_the_definition_says(name: str, found) -> None:
    rows, p = found
    known = distribution(rows, p)
    decisions = [known.bits_of(i) for i in range(len(known))]
    got = expected_of_candidates(name, known)
    assert got == pytest.approx(expected_by_hand(name, decisions, rows, p), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_fingerprints_without_bits_are_all_alike(name: str) -> None:
    nothing = np.zeros((2, 0))
    assert expected_utility(name, nothing[0], nothing, [0.5, 0.5]) == 1
    assert expected_of_candidates(name, distribution(nothing, [0.5, 0.5])).tolist() == [1]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    known = "'dice' is unknown, expected one of: hit, bits, tanimoto, cosine, f1"
    with pytest.raises(DecisionError, match=known):
        utility_named("dice")
    with pytest.raises(DecisionError, match=known):
        expected_utility("dice", [1], [[1]], [1.0])


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        ([1, 0], r"prediction has shape \(2,\), expected one row of 3 bits"),
        ([[1, 0, 0], [0, 1, 0]], r"prediction has shape \(2, 3\), expected one row of 3 bits"),
        (csr_array((2, 3)), r"prediction has shape \(2, 3\)"),
        ([1, 0, 2], "hold 2, expected 0 or 1"),
        ([0.5, 0, np.nan], "hold 0.5, expected 0 or 1"),
    ],
)
def test_what_is_no_prediction_is_refused(prediction, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        expected_utility("f1", prediction, [[1, 0, 1]], [1.0])


ROWS = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
KNOWN = distribution(ROWS, [0.4, 0.3, 0.1, 0.2])


@pytest.mark.parametrize("name", UTILITIES)
def test_without_its_bound_a_decision_is_the_same(name: str) -> None:
    with_bound, without = (
        UTILITIES[name].rules.decode(KNOWN, bound=bound) for bound in (True, False)
    )
    assert with_bound.bits.tolist() == without.bits.tolist()
    assert with_bound.value == without.value == pytest.approx(expected(name, without.bits, KNOWN))


def test_names_are_their_keys() -> None:
    assert all(name == each.name == utility_named(name).name for name, each in UTILITIES.items())
    assert BAND_SIMILARITIES == ("bits", "tanimoto", "cosine", "f1")


def test_names_and_facts_load_no_library() -> None:
    heavy = "{'numpy', 'scipy'}"
    code = f"import sys, mzseek.decision.utilities; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
