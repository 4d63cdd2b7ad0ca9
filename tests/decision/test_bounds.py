import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from mzseek.core.errors import DecisionError
from mzseek.decision import (
    agreement_guaranteed,
    bayes_decision,
    bound_hit_under_similarity,
    bound_similarity_under_hit,
    distribution,
    regret,
    regret_bounds,
    row_bounds,
    worst_case,
)

from .conftest import (
    SIMILARITIES,
    TOY,
    TOY_P,
    candidate_sets,
    every,
    expected_by_hand,
    worth,
)

similarities = st.sampled_from(SIMILARITIES)
unit = st.floats(0, 1)


def regrets_from_similarities(s, p) -> tuple[float, float]:
    """What HR@1 decoding loses in similarity, and similarity decoding in HR@1, of any matrix.

    Of several best under the similarity, the most probable is taken.
    """
    u = s @ np.asarray(p)
    mode, best = int(np.argmax(p)), int(np.lexsort((-np.asarray(p), -u))[0])
    return float(u[best] - u[mode]), float(p[mode] - p[best])


def tight_similarities(low: float, high: float, p_star: float, p_similarity: float):
    """Similarities and probabilities for which the first bound is attained.

    The mode is row 0, the best under the similarity row 1, and 200 others share what is left. It is
    a matrix of similarities: fingerprints that have them need not exist.
    """
    p = np.array([p_star, p_similarity, *[(1 - p_star - p_similarity) / 200] * 200])
    s = np.full((len(p), len(p)), low)
    s[1, :] = s[:, 1] = high
    np.fill_diagonal(s, 1)
    return s, p


@given(candidate_sets(least=2, distinct=True), similarities)
def test_each_candidate_is_worth_what_the_band_allows(found, name: str) -> None:
    rows, p = found
    got = regret_bounds(name, rows, p)
    u = expected_by_hand(name, rows, rows, p)
    for expected, probability in zip(u, p, strict=True):
        low, high = row_bounds(got.low, got.high, min(float(probability), 1.0))
        assert low - 1e-9 <= expected <= high + 1e-9
    pairs = worth(name, rows, rows)[np.triu_indices(len(rows), 1)]
    assert (got.low, got.high) == pytest.approx((pairs.min(), pairs.max()), abs=1e-12)


def test_row_bounds_are_attained_and_check_what_they_are_given() -> None:
    # One other candidate: the band is a single similarity, and both bounds are the expectation.
    [of_first, _] = expected_by_hand(
        "tanimoto", [[1, 1, 0], [0, 1, 1]], [[1, 1, 0], [0, 1, 1]], [0.7, 0.3]
    )
    assert row_bounds(1 / 3, 1 / 3, 0.7) == pytest.approx((of_first, of_first))
    assert row_bounds(0.0, 1.0, 0.2) == (0.2, 1.0)
    for arguments in ((0.5, 0.4, 0.1), (0.1, 0.4, 1.5)):
        with pytest.raises(DecisionError):
            row_bounds(*arguments)


@given(candidate_sets(), similarities)
def test_regrets_within_the_candidates_stay_within_their_bounds(found, name: str) -> None:
    rows, p = found
    got = regret_bounds(name, rows, p)
    assert regret(name, "hit", rows, p) <= got.hit_under_similarity + 1e-9
    assert regret("hit", name, rows, p) <= got.similarity_under_hit + 1e-9
    if got.agreement:
        mode = bayes_decision("hit", rows, p).bits
        best = expected_by_hand(name, rows, rows, p).max()
        assert expected_by_hand(name, [mode], rows, p)[0] == pytest.approx(best, abs=1e-9)


@given(candidate_sets(), similarities)
def test_every_mode_and_every_maximiser_keep_the_theorems(found, name: str) -> None:
    """By brute force over the candidates: of several that are equally good, any may be taken."""
    given, p = found
    rows, group = np.unique(given, axis=0, return_inverse=True)
    p = np.bincount(group.ravel(), weights=p)
    similar = worth(name, rows, rows)
    u = similar @ p
    got = regret_bounds(name, given, found[1])
    assert got.p_star == pytest.approx(p.max(), abs=1e-12)
    for best in np.flatnonzero(u > u.max() - 1e-12):
        for mode in np.flatnonzero(p > p.max() - 1e-12):
            if len(rows) == 1:
                assert (got.hit_under_similarity, got.similarity_under_hit) == (0, 0)
                continue
            pairs = similar[np.triu_indices(len(rows), 1)]
            low, high, p_best = pairs.min(), pairs.max(), min(p[best], p.max())
            first = bound_hit_under_similarity(low, high, p.max(), p_best)
            assert u[best] - u[mode] <= first + 1e-9
            assert p[mode] - p[best] <= got.similarity_under_hit + 1e-9
            if got.agreement:
                assert u[mode] == pytest.approx(u.max(), abs=1e-9)


@given(candidate_sets(), similarities)
def test_the_facts_of_a_list_are_read_from_its_distinct_candidates(found, name: str) -> None:
    rows, p = found
    known = distribution(rows, p)
    got = regret_bounds(name, rows, p)
    ranked = np.sort(known.probabilities)[::-1]
    assert got.p_star == ranked[0]
    assert got.margin == pytest.approx(ranked[0] - (ranked[1] if len(ranked) > 1 else 0))
    chosen = bayes_decision(name, rows, p).bits
    assert got.p_similarity == pytest.approx(p[(rows == chosen).all(1)].sum(), abs=1e-12)
    if len(known) == 1:
        assert np.isnan([got.low, got.high]).all()
        assert (got.hit_under_similarity, got.similarity_under_hit, got.agreement) == (0, 0, True)
    else:
        assert got.high < 1, "twins are merged first"


def test_twins_that_hold_all_probability_have_bounds() -> None:
    got = regret_bounds("tanimoto", [[0]] * 6 + [[1]], [1 / 6] * 6 + [0])
    assert (got.p_star, got.hit_under_similarity, got.similarity_under_hit) == (1, 0, 0)
    assert got.agreement


@given(unit, unit, st.floats(0.05, 0.5), st.floats(0.1, 1))
def test_the_first_bound_is_attained(one: float, other: float, p: float, share: float) -> None:
    low, high = sorted((one, other))
    bound = bound_hit_under_similarity(low, high, p, p * share)
    s, q = tight_similarities(low, high, p, p * share)
    off = s[~np.eye(len(s), dtype=bool)]
    assert (off.min(), off.max()) == (low, high)
    assert q.sum() == pytest.approx(1)
    assert q[2:].max() <= q[1] <= q[0]
    found, _ = regrets_from_similarities(s, q)
    assert found == pytest.approx(bound, abs=1e-12)


def test_bounds_by_hand() -> None:
    assert bound_hit_under_similarity(0.2, 0.6, 0.3, 0.1) == pytest.approx(0.4 * 0.6 - 0.4 * 0.2)
    assert bound_hit_under_similarity(0.2, 0.6, 0.8, 0.1) == 0
    assert bound_hit_under_similarity(0.5, 0.5, 0.3, 0.3) == 0
    assert bound_similarity_under_hit(0.2, 0.6, 0.3) == 0.3
    assert bound_similarity_under_hit(0.2, 0.6, 0.9) == pytest.approx(0.1)
    assert bound_similarity_under_hit(0.2, 1.0, 0.9) == 0.9
    assert agreement_guaranteed(0.2, 0.6, 0.75, margin=0.26)
    assert not agreement_guaranteed(0.2, 0.6, 0.75, margin=0.24)
    assert not agreement_guaranteed(1.0, 1.0, 1.0, margin=1.0), "near duplicates promise nothing"


def test_over_all_fingerprints_the_bounds_fail_and_are_refused() -> None:
    rows, p = np.eye(3, dtype=int), np.full(3, 1 / 3)
    within = regret_bounds("cosine", rows, p)
    assert (within.hit_under_similarity, within.similarity_under_hit) == (0, 0)
    assert regret("cosine", "hit", rows, p) == regret("hit", "cosine", rows, p) == 0
    assert round(regret("cosine", "hit", rows, p, within="all"), 3) == 0.244
    assert round(regret("hit", "cosine", rows, p, within="all"), 3) == 0.333
    u = expected_by_hand("cosine", every(3), rows, p)
    assert round(u.max() - 1 / 3, 3) == 0.244
    with pytest.raises(DecisionError, match="within the candidates alone; over all fingerprints"):
        regret_bounds("cosine", rows, p, within="all")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(
        DecisionError, match="within 'some' is unknown, expected one of: candidates, all"
    ):
        regret_bounds("cosine", TOY, TOY_P, within="some")
    for name in ("hit", "dice"):
        with pytest.raises(DecisionError, match=f"similarity '{name}' is unknown, expected one of"):
            regret_bounds(name, TOY, TOY_P)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((0.5, 0.4, 0.3, 0.2), "band is 0.5 to 0.4, expected low at most high"),
        ((-0.1, 0.4, 0.3, 0.2), "low is -0.1, expected 0 to 1"),
        ((0.1, 1.4, 0.3, 0.2), "high is 1.4, expected 0 to 1"),
        ((0.1, np.nan, 0.3, 0.2), "high is nan, expected 0 to 1"),
        ((0.1, 0.4, 1.3, 0.2), "p_star is 1.3, expected 0 to 1"),
        ((0.1, 0.4, 0.3, -0.2), "p_similarity is -0.2, expected 0 to 1"),
        ((0.1, 0.4, 0.3, 0.35), "p_similarity 0.35 is above p_star 0.3"),
    ],
)
def test_what_is_no_band_or_probability_is_refused(arguments, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        bound_hit_under_similarity(*arguments)
    if "similarity" not in reason:
        with pytest.raises(DecisionError, match=reason):
            bound_similarity_under_hit(*arguments[:3])
        with pytest.raises(DecisionError, match=reason):
            agreement_guaranteed(*arguments[:3], margin=0.1)
    with pytest.raises(DecisionError, match=r"margin is -0.1, expected 0 to 1"):
        agreement_guaranteed(0.1, 0.4, 0.5, margin=-0.1)


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
