import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import (
    agreement_guaranteed,
    bayes_decision,
    bound_hit_under_similarity,
    bound_similarity_under_hit,
    distribution,
    regret,
    regret_bounds,
    regrets_from_similarities,
    tight_similarities,
)

from .conftest import (
    FORMS,
    SIMILARITIES,
    TOY,
    TOY_P,
    candidate_sets,
    every,
    expected_by_hand,
    unhurried,
    worth,
)

similarities = st.sampled_from(SIMILARITIES)
unit = st.floats(0, 1)


@unhurried
@given(candidate_sets(least=2, distinct=True), similarities)
def test_each_candidate_is_worth_what_the_band_allows(found, name: str) -> None:
    rows, p = found
    got = regret_bounds(name, rows, p)
    u = expected_by_hand(name, rows, rows, p)
    assert (u >= p + got.low * (1 - p) - 1e-12).all()
    assert (u <= p + got.high * (1 - p) + 1e-12).all()
    pairs = worth(name, rows, rows)[np.triu_indices(len(rows), 1)]
    assert (got.low, got.high) == pytest.approx((pairs.min(), pairs.max()), abs=1e-12)


@unhurried
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


@unhurried
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


@unhurried
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


@unhurried
@given(unit, unit, st.floats(0.05, 0.5), st.floats(0.1, 1))
def test_the_first_bound_is_attained(one: float, other: float, p: float, share: float) -> None:
    low, high = sorted((one, other))
    bound = bound_hit_under_similarity(low, high, p, p * share)
    s, q = tight_similarities(low, high, p, p * share, others=200)
    off = s[~np.eye(len(s), dtype=bool)]
    assert (off.min(), off.max()) == (low, high)
    assert q.sum() == pytest.approx(1)
    assert q[2:].max() <= q[1] <= q[0]
    found, _ = regrets_from_similarities(s, q)
    assert found == pytest.approx(bound, abs=1e-12)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.9), (0.2, 0.5), (0.1, 1.0)])
@pytest.mark.parametrize(("p_star", "p_similarity"), [(0.1, 0.1), (0.2, 0.05), (0.4, 0.35)])
def test_the_first_bound_is_attained_where_it_is_not_nothing(
    low: float, high: float, p_star: float, p_similarity: float
) -> None:
    bound = bound_hit_under_similarity(low, high, p_star, p_similarity)
    assert bound > 0
    found, lost = regrets_from_similarities(*tight_similarities(low, high, p_star, p_similarity))
    assert found == pytest.approx(bound, abs=1e-12)
    assert lost <= bound_similarity_under_hit(low, high, p_star) + 1e-12


@unhurried
@given(candidate_sets(distinct=True), similarities)
def test_regrets_from_similarities_are_those_of_the_candidates(found, name: str) -> None:
    rows, p = found
    first, second = regrets_from_similarities(worth(name, rows, rows), p)
    assert first == pytest.approx(regret(name, "hit", rows, p), abs=1e-9)
    u = expected_by_hand(name, rows, rows, p)
    assume((u > u.max() - 1e-9).sum() == 1)  # of several best, another may be taken
    assert second == pytest.approx(regret("hit", name, rows, p), abs=1e-9)


def test_of_several_best_the_most_probable_is_taken() -> None:
    assert regrets_from_similarities(np.ones((3, 3)), [0.2, 0.5, 0.3]) == (0, 0)


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


@pytest.mark.parametrize("form", FORMS)
def test_bounds_do_not_depend_on_the_form(form: str) -> None:
    for name in SIMILARITIES:
        assert regret_bounds(name, FORMS[form](TOY), TOY_P) == regret_bounds(name, TOY, TOY_P)


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
    with pytest.raises(DecisionError, match=reason):
        tight_similarities(*arguments)
    if "similarity" not in reason:
        with pytest.raises(DecisionError, match=reason):
            bound_similarity_under_hit(*arguments[:3])
        with pytest.raises(DecisionError, match=reason):
            agreement_guaranteed(*arguments[:3], margin=0.1)


def test_a_margin_is_a_probability() -> None:
    with pytest.raises(DecisionError, match=r"margin is -0.1, expected 0 to 1"):
        agreement_guaranteed(0.1, 0.4, 0.5, margin=-0.1)


def test_more_probability_than_there_is_is_refused() -> None:
    with pytest.raises(DecisionError, match=r"sum to 1.2, expected at most 1"):
        tight_similarities(0.1, 0.4, 0.6, 0.6)


@pytest.mark.parametrize(
    "s", [np.ones((2, 3)), [[1, 0.5], [0.4, 1]], [[0.9, 0.5], [0.5, 1]], [[1.0]]]
)
def test_what_are_no_similarities_is_refused(s) -> None:
    with pytest.raises(DecisionError, match="expected a symmetric"):
        regrets_from_similarities(s, [0.5, 0.5])
