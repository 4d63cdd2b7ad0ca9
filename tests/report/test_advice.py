import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.decision import bound_hit_under_similarity, bound_similarity_under_hit
from mzseek.errors import DecisionError
from mzseek.losses import LOSSES
from mzseek.metrics import METRICS
from mzseek.report.advice import GOALS, advise, band_row

NARROW, WIDE = {"low": 0.1, "high": 0.3}, {"low": 0.1, "high": 0.9}
UNIT = st.floats(0, 1)


@given(UNIT, UNIT, st.floats(0.01, 1))
def test_a_row_has_the_worst_of_both_bounds(one: float, other: float, p_star: float) -> None:
    low, high = sorted((one, other))
    row = band_row("maccs", low, high, p_star)
    for p in np.linspace(0, min(p_star, 1 - p_star), 9):
        assert row.similarity_loss >= bound_hit_under_similarity(low, high, p_star, p) - 1e-9
    assert row.hit_loss == bound_similarity_under_hit(low, high, p_star)
    assert row.similarity_loss >= 0
    assert 0 <= row.hit_loss <= 1


@pytest.mark.parametrize("goal", GOALS)
def test_the_loss_stands_for_the_goal(goal: str) -> None:
    found = advise(goal, {"morgan2": NARROW}, 0.5)
    assert (found.goal, found.loss) == (goal, GOALS[goal])
    stands_for = {"hit": "hit_rate@1", "bits": "bit_accuracy"}.get(goal, goal)
    assert LOSSES[found.loss].stands_for == stands_for
    assert stands_for in METRICS
    assert found.reasons[0].startswith(f"--loss {found.loss}: ")


@pytest.mark.parametrize("goal", GOALS)
def test_the_fingerprint_with_the_least_to_lose_comes_first(goal: str) -> None:
    found = advise(goal, {"wide": WIDE, "narrow": NARROW}, 0.5)
    assert found.fingerprint == "narrow"
    assert [row.fingerprint for row in found.rows] == ["narrow", "wide"]
    assert any(reason.startswith("--fingerprint narrow: ") for reason in found.reasons)


def test_one_fingerprint_is_not_compared() -> None:
    found = advise("hit", {"morgan2": WIDE}, 0.5)
    assert found.fingerprint == "morgan2"
    assert not any("--fingerprint" in reason for reason in found.reasons)


def test_reasons_give_the_bound_in_points() -> None:
    row = band_row("morgan2", **WIDE, p_star=0.4)
    [hit] = [r for r in advise("hit", {"morgan2": WIDE}, 0.4).reasons if "can cost" in r]
    assert f"up to {100 * row.hit_loss:.0f} points of HR@1" in hit
    assert "40 % of the probability" in hit
    found = advise("cosine", {"morgan2": WIDE}, 0.4, "cosine")
    [cost] = [reason for reason in found.reasons if "can cost" in reason]
    assert f"up to {100 * row.similarity_loss:.0f} points of cosine" in cost
    assert any("emb-cos and decode it" in reason for reason in found.reasons)


def test_the_surer_the_less_similarity_there_is_to_lose() -> None:
    sure = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    rows = [band_row("maccs", **WIDE, p_star=p) for p in sure]
    losses = [row.similarity_loss for row in rows]
    assert losses == sorted(losses, reverse=True)
    # HR@1 is another matter: what is improbable cannot be lost.
    assert all(row.hit_loss <= p for row, p in zip(rows, sure, strict=True))
    assert rows[-1].hit_loss == rows[-1].similarity_loss == 0


def test_advice_is_plain_data() -> None:
    found = advise("hit", {"a": NARROW, "b": WIDE}, 0.5)
    facts = vars(found) | {"rows": [vars(row) for row in found.rows]}
    assert json.loads(json.dumps(facts)) == facts


def test_what_no_advice_can_be_given_on_is_refused() -> None:
    with pytest.raises(DecisionError, match="goal 'f1' is unknown, expected one of: hit, tanimoto"):
        advise("f1", {"morgan2": NARROW}, 0.5)
    with pytest.raises(DecisionError, match="no bands, expected those of at least one"):
        advise("hit", {}, 0.5)
