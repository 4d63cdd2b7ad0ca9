from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.core.errors import DecisionError
from mzseek.decision import bayes_decision, decompose, regret, top_k

from .conftest import (
    FORMS,
    TOY,
    TOY_P,
    UTILITIES,
    candidate_sets,
    every,
    expected_by_hand,
)

WITHIN = ("candidates", "all")
utilities = st.sampled_from(UTILITIES)


def text(bits) -> str:
    return "".join(map(str, bits))


@pytest.mark.parametrize(
    ("utility", "bits", "value"),
    [
        ("hit", "11001", 0.4),
        ("bits", "10000", 0.72),
        ("cosine", "11111", 0.6893),
        ("tanimoto", "11001", 0.5708),
    ],
)
def test_the_papers_example_over_all_fingerprints(utility: str, bits: str, value: float) -> None:
    got = bayes_decision(utility, TOY, TOY_P, within="all")
    assert text(got.bits) == bits
    assert round(got.expected_utility, 4) == value
    assert got.index == (3 if bits == "11001" else None)
    assert got.optimal


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("utility", UTILITIES)
@given(found=candidate_sets(bits=10))
def test_no_decision_is_better(utility: str, within: str, found) -> None:
    rows, p = found
    got = bayes_decision(utility, rows, p, within)
    decisions = rows if within == "candidates" else every(rows.shape[1])
    best = expected_by_hand(utility, decisions, rows, p).max()
    assert got.expected_utility == pytest.approx(best, abs=1e-9)
    assert expected_by_hand(utility, [got.bits], rows, p) == pytest.approx([best], abs=1e-9)
    assert got.optimal
    alike = (rows == got.bits).all(1)
    assert (got.index is None) == (not alike.any())
    assert got.index is None or alike[got.index]
    if (utility, within) == ("hit", "candidates"):
        assert top_k(rows, p, k=1).tolist() == [got.index]


def test_a_search_that_may_have_missed_does_not_claim_to_be_optimal() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((40, 500)) < 0.1).astype(int)
    got = bayes_decision("tanimoto", rows, np.full(40, 1 / 40), within="all")
    assert not got.optimal
    assert got.expected_utility < got.upper_bound


@given(candidate_sets(bits=7), utilities, utilities, st.sampled_from(WITHIN))
def test_regret_is_what_is_lost_and_never_negative(found, under, decoded, within) -> None:
    rows, p = found
    got = regret(under, decoded, rows, p, within)
    assert got >= 0
    decisions = rows if within == "candidates" else every(rows.shape[1])
    chosen = bayes_decision(decoded, rows, p, within).bits
    lost = (
        expected_by_hand(under, decisions, rows, p).max()
        - expected_by_hand(under, [chosen], rows, p)[0]
    )
    assert got == pytest.approx(lost, abs=1e-9)
    assert regret(under, under, rows, p, within) == pytest.approx(0, abs=1e-12)


@given(candidate_sets(), utilities, utilities, st.sampled_from(WITHIN), st.data())
def test_the_parts_of_a_regret_sum_to_it(found, under, decoded, within, data) -> None:
    rows, p = found
    row = data.draw(st.integers(0, len(rows) - 1))
    got = decompose(under, decoded, rows, p, row, within)
    assert got.bayes + got.residual == pytest.approx(got.total, abs=1e-12)
    assert got.bayes == pytest.approx(regret(under, decoded, rows, p, within), abs=1e-12)
    best = bayes_decision(under, rows, p, within).expected_utility
    reached = expected_by_hand(under, [rows[row]], rows, p)[0]
    assert got.total == pytest.approx(best - reached, abs=1e-9)
    assert got.total >= -1e-12
    assert decompose(under, decoded, rows, p, rows[row], within) == got


@pytest.mark.parametrize("form", FORMS)
def test_a_chosen_row_is_taken_from_any_form(form: str) -> None:
    wanted = decompose("tanimoto", "hit", TOY, TOY_P, 1)
    assert decompose("tanimoto", "hit", FORMS[form](TOY), TOY_P, np.int64(1)) == wanted
    assert decompose("tanimoto", "hit", TOY, TOY_P, FORMS[form](TOY[1:2])) == wanted


def test_a_rule_may_do_better_than_the_one_it_was_made_for() -> None:
    got = decompose("tanimoto", "bits", TOY, TOY_P, chosen=[1, 1, 0, 0, 1], within="all")
    assert got.bayes > 0
    assert got.residual == pytest.approx(-got.bayes)
    assert got.total == pytest.approx(0)


@given(candidate_sets(rows=10, bits=3), st.integers(1, 12))
def test_the_k_most_probable_fingerprints_are_listed_once(found, k: int) -> None:
    rows, p = found
    got = top_k(rows, p, k)
    distinct = list(dict.fromkeys(map(tuple, rows.tolist())))
    total = {bits: p[(rows == bits).all(1)].sum() for bits in distinct}
    listed = [tuple(bits) for bits in rows[got].tolist()]
    assert len(set(listed)) == len(listed) == min(k, len(distinct))
    found = [total[bits] for bits in listed]
    assert all(a >= b - 1e-12 for a, b in pairwise(found))
    assert sum(found) == pytest.approx(sum(sorted(total.values())[::-1][:k]))
    for row, bits in zip(got, listed, strict=True):
        assert p[row] == p[(rows == bits).all(1)].max()


def test_equally_probable_ones_are_listed_in_their_order() -> None:
    assert top_k(np.eye(4), [0.25] * 4, k=3).tolist() == [0, 1, 2]
    assert top_k(np.eye(4), [0.2, 0.3, 0.2, 0.3], k=9).tolist() == [1, 3, 0, 2]
    with pytest.raises(DecisionError, match="k is 0, expected at least 1"):
        top_k(TOY, TOY_P, 0)


@pytest.mark.parametrize("call", [
    lambda **k: bayes_decision(k.get("utility", "hit"), TOY, TOY_P, k.get("within", "all")),
    lambda **k: regret("hit", k.get("utility", "hit"), TOY, TOY_P, k.get("within", "all")),
    lambda **k: regret(k.get("utility", "hit"), "hit", TOY, TOY_P, k.get("within", "all")),
    lambda **k: decompose("hit", k.get("utility", "f1"), TOY, TOY_P, 0, k.get("within", "all")),
])  # fmt: skip
def test_unknown_names_are_refused_with_the_known_ones(call) -> None:
    with pytest.raises(DecisionError, match="'dice' is unknown, expected one of: hit, bits"):
        call(utility="dice")
    with pytest.raises(
        DecisionError, match="within 'some' is unknown, expected one of: candidates, all"
    ):
        call(within="some")


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        (4, "chosen is 4, expected a row from 0 to 3"),
        (-1, "chosen is -1, expected a row from 0 to 3"),
        (1.5, "chosen is 1.5, expected a row"),
        ([1, 0], "expected one row of 5 bits"),
        (csr_array((2, 5)), "expected one row of 5 bits"),
        ([1, 0, 0, 0, 3], "hold 3, expected 0 or 1"),
    ],
)
def test_what_cannot_have_been_chosen_is_refused(chosen, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        decompose("hit", "f1", TOY, TOY_P, chosen)
