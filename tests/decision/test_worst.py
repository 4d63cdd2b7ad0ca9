import math

import numpy as np
import pytest
from scipy.optimize import linprog

from mzseek.core.errors import DecisionError
from mzseek.decision import worst_case

from .conftest import every, expected_by_hand

LIMITS = {
    ("hit", "bits"): lambda m: 1 / 2,
    ("tanimoto", "bits"): lambda m: 1 / 2,
    ("cosine", "bits"): lambda m: 1 / 2,
    ("bits", "hit"): lambda m: (m - 2) / (m + 2),
    ("tanimoto", "hit"): lambda m: (m - 1) / (m + 2),
    ("cosine", "hit"): lambda m: math.sqrt(m * (m - 1)) / (m + 2),
}
# What the regret tends to where that is more than the limit of the paper's proof, which does not
# look at the best decision.
MORE = {("cosine", "bits"): lambda m: (1 + math.sqrt(m - 1)) / (2 * math.sqrt(m))}
CASES = pytest.mark.parametrize("pair", LIMITS, ids=" for ".join)


@CASES
@pytest.mark.parametrize("m", [4, 5, 8, 30, 100])
def test_the_regret_nears_its_limit(pair, m: int) -> None:
    limit, wanted = LIMITS[pair](m), MORE.get(pair, LIMITS[pair])(m)
    assert wanted >= limit
    gaps = []
    for epsilon in (1e-4, 1e-6, 1e-8):
        case = worst_case(*pair, m, epsilon)
        assert case.limit == pytest.approx(limit)
        assert (case.probabilities > 0).all()
        assert case.probabilities.sum() == pytest.approx(1)
        gaps.append(abs(case.regret - wanted))
    assert gaps[0] >= gaps[1] >= gaps[2]
    assert gaps[0] <= (4 * m + 4) * 1e-4
    assert gaps[2] < 1e-5


@pytest.mark.parametrize("under", ["hit", "tanimoto", "cosine"])
@pytest.mark.parametrize("m", [3, 4, 10, 50])
def test_deciding_by_bits_loses_at_least_a_half(under: str, m: int) -> None:
    for epsilon in (1e-3, 1e-6):
        assert worst_case(under, "bits", m, epsilon).regret >= 0.5 - epsilon - 1e-12


@CASES
@pytest.mark.parametrize("m", [4, 5, 7, 10])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.01])
def test_the_regret_is_what_looking_at_every_decision_says(pair, m: int, epsilon: float) -> None:
    under, decoded = pair
    case = worst_case(under, decoded, m, epsilon)
    decisions = every(m)
    of_decoded = expected_by_hand(decoded, decisions, case.fingerprints, case.probabilities)
    values = expected_by_hand(under, decisions, case.fingerprints, case.probabilities)
    assert np.sort(of_decoded)[-1] > np.sort(of_decoded)[-2] + 1e-12, "no tie decides it"
    assert case.regret == pytest.approx(values.max() - values[np.argmax(of_decoded)], abs=1e-9)


def test_the_limits_known_to_be_the_largest_say_so() -> None:
    tight = {pair: worst_case(*pair, m=6).tight for pair in LIMITS}
    assert {pair for pair, each in tight.items() if each} == {("hit", "bits"), ("bits", "hit")}


def test_three_bits_are_enough_for_deciding_by_bits() -> None:
    for pair in [("hit", "bits"), ("tanimoto", "bits"), ("cosine", "bits")]:
        case = worst_case(*pair, m=3)
        assert case.regret == pytest.approx(MORE.get(pair, LIMITS[pair])(3), abs=1e-4)


def largest_regret(under: str, decoded: str, m: int) -> float:
    """The largest regret of any distribution over {0,1}^m, by linear programs.

    With the decision and its rival given, the regret is linear in the probabilities, and so is
    "this decision is the best": for HR@1 no other outcome is more probable, for bits every bit
    agrees with at least half. Ties belong to the closure, as the limits do. Bits may be put in any
    order, so that decisions with their ones first are enough.
    """
    outcomes = every(m)
    worth = np.array([expected_by_hand(under, outcomes, outcomes[[i]], np.ones(1))
                      for i in range(len(outcomes))]).T  # fmt: skip
    largest = -np.inf
    for decision in (np.arange(m) < ones for ones in range(m + 1)):
        mine = int(np.flatnonzero((outcomes == decision).all(1))[0])
        if decoded == "hit":
            least = np.eye(len(outcomes))
            least[:, mine] -= 1
            bound = np.zeros(len(outcomes))
        else:
            least = -(outcomes == decision).T.astype(float)
            bound = np.full(m, -0.5)
        for rival in range(len(outcomes)):
            found = linprog(
                worth[mine] - worth[rival], least, bound, np.ones((1, len(outcomes))), [1.0]
            )
            assert found.status == 0
            largest = max(largest, -found.fun)
    return largest


@pytest.mark.slow
@CASES
@pytest.mark.parametrize("m", [3, 4, 5, 6])
def test_no_distribution_loses_more_than_a_tight_limit(pair, m: int) -> None:
    if pair[1] == "hit" and m == 3:
        with pytest.raises(DecisionError, match="m is 3, expected at least 4"):
            worst_case(*pair, m)
        return
    largest, case = largest_regret(*pair, m), worst_case(*pair, m)
    assert case.regret <= largest + 1e-9
    assert case.limit <= largest + 1e-9
    if case.tight:
        assert case.limit == pytest.approx(largest, abs=1e-9)


def test_of_three_bits_another_distribution_loses_more() -> None:
    assert largest_regret("bits", "hit", 3) == pytest.approx(2 / 9)
    assert LIMITS["bits", "hit"](3) < 2 / 9


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("hit", "tanimoto", 5), "no worst case of 'hit' decoded for 'tanimoto' is known"),
        (("f1", "hit", 5), "expected one of: hit decoded for bits; tanimoto decoded for bits"),
        (("hit", "bits", 2), "m is 2, expected at least 3"),
        (("tanimoto", "hit", 3), "m is 3, expected at least 4"),
        (("bits", "hit", 3), "m is 3, expected at least 4"),
        (("hit", "bits", 5, 0.0), "epsilon is 0, expected above 0 and below 0.05"),
        (("hit", "bits", 5, 0.05), "epsilon is 0.05, expected above 0 and below 0.05"),
        (("hit", "bits", 5, np.nan), "epsilon is nan, expected above 0"),
    ],
)
def test_what_has_no_worst_case_is_refused(arguments, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        worst_case(*arguments)
