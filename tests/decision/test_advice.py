import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import DecisionError
from mzseek.decision import bound_hit_under_similarity, bound_similarity_under_hit
from mzseek.decision.advice import METRICS as GOAL_METRICS
from mzseek.decision.advice import advise, band_row, compares
from mzseek.decision.utilities import GOALS, UTILITIES
from mzseek.losses import LOSSES
from mzseek.metrics import METRICS

NARROW, WIDE = {"low": 0.1, "high": 0.3}, {"low": 0.1, "high": 0.9}
SIMILARITY = {"cosine": "cosine", "bits": "bits"}
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
    found = advise(goal, {"morgan2": NARROW}, 0.5, "morgan2", SIMILARITY.get(goal, "tanimoto"))
    assert (found.goal, found.loss) == (goal, GOALS[goal])
    assert goal in UTILITIES
    assert LOSSES[found.loss].stands_for == GOAL_METRICS[goal]
    assert GOAL_METRICS[goal] in METRICS
    assert found.reasons[0].startswith(f"Loss {found.loss}: ")


# Of two fingerprints, the first has more to lose of HR@1 and less of the similarity.
ALIKE, APART = {"low": 0.9, "high": 0.95}, {"low": 0.1, "high": 0.4}


@pytest.mark.parametrize(
    ("goal", "first", "points"),
    [("hit", "apart", "points of HR@1"), ("tanimoto", "alike", "points of Tanimoto"),
     ("cosine", "alike", "points of cosine")],
)  # fmt: skip
def test_fingerprints_are_compared_by_what_the_goal_can_lose(
    goal: str, first: str, points: str
) -> None:
    bands = {"alike": ALIKE, "apart": APART}
    found = advise(goal, bands, 0.4, "apart", SIMILARITY.get(goal, "tanimoto"))
    assert (found.fingerprint, found.compared) == (first, goal)
    of_goal = [row.hit_loss if goal == "hit" else row.similarity_loss for row in found.rows]
    other = [row.similarity_loss if goal == "hit" else row.hit_loss for row in found.rows]
    assert of_goal == sorted(of_goal)
    assert other == sorted(other, reverse=True)
    assert of_goal[0] < of_goal[1]
    [reason] = [each for each in found.reasons if each.startswith(f"Fingerprint {first}: ")]
    assert f"{100 * of_goal[0]:.1f} {points}; with " in reason
    assert reason.endswith(f"it would be {100 * of_goal[1]:.1f}.")
    assert "HR@1" in points or "HR@1" not in reason


def test_bits_keep_the_fingerprint_that_the_data_have_and_its_bound() -> None:
    sparse, dense = {"low": 0.98, "high": 0.99}, {"low": 0.5, "high": 0.9}
    found = advise("bits", {"maccs": dense, "morgan2": sparse}, 0.4, "maccs", "bits")
    assert (found.fingerprint, found.compared) == ("maccs", None)
    assert [row.fingerprint for row in found.rows] == ["maccs", "morgan2"]
    assert found.rows == [band_row("maccs", **dense, p_star=0.4),
                          band_row("morgan2", **sparse, p_star=0.4)]  # fmt: skip
    assert found.rows[0].similarity_loss > found.rows[1].similarity_loss, "yet it is kept"
    [cost] = [reason for reason in found.reasons if "can cost" in reason]
    assert "up to 20 points of bit accuracy with maccs" in cost
    assert any("cannot be compared" in reason for reason in found.reasons)
    small = advise("bits", {"morgan2": sparse}, 0.4, "morgan2", "bits").reasons
    assert any("up to 0.2 points of bit accuracy with morgan2" in reason for reason in small)
    assert [goal for goal in GOALS if not compares(goal)] == ["bits"]


@pytest.mark.parametrize("own", ["one", "two"])
def test_of_equal_fingerprints_the_one_that_the_data_have_is_kept(own: str) -> None:
    assert advise("hit", {"one": WIDE, "two": WIDE}, 0.5, own).fingerprint == own


def test_where_all_can_lose_as_much_the_other_loss_decides_and_that_is_said() -> None:
    found = advise("hit", {"wide": WIDE, "narrow": {"low": 0.1, "high": 0.6}}, 0.2, "wide")
    assert found.fingerprint == "narrow"
    assert [row.hit_loss for row in found.rows] == [0.2, 0.2]
    [reason] = [each for each in found.reasons if each.startswith("Fingerprint ")]
    assert "All 2 can lose as much, 20.0 points of HR@1; it has the least to lose of Tan" in reason


def test_another_fingerprint_is_another_similarity() -> None:
    bands = {"wide": WIDE, "narrow": NARROW}
    for goal, own, said in (
        ("tanimoto", "wide", True), ("tanimoto", "narrow", False), ("hit", "wide", False),
    ):  # fmt: skip
        reasons = advise(goal, bands, 0.5, own).reasons
        assert any("is another number" in reason for reason in reasons) == said


def test_reasons_give_the_bound_in_points() -> None:
    row = band_row("morgan2", **WIDE, p_star=0.4)
    reasons = advise("hit", {"morgan2": WIDE}, 0.4, "maccs").reasons
    assert not any(reason.startswith("Fingerprint") for reason in reasons)  # nothing to compare
    [hit] = [reason for reason in reasons if "can cost" in reason]
    assert f"up to {100 * row.hit_loss:.0f} points of HR@1" in hit
    assert "40 % of the probability" in hit
    found = advise("cosine", {"morgan2": WIDE}, 0.4, "maccs", "cosine")
    [cost] = [reason for reason in found.reasons if "can cost" in reason]
    assert f"up to {100 * row.similarity_loss:.0f} points of cosine" in cost
    assert any("emb-cos and decode it" in reason for reason in found.reasons)


def test_what_no_advice_can_be_given_on_is_refused() -> None:
    with pytest.raises(DecisionError, match="goal 'f1' is unknown, expected one of: hit, tanimoto"):
        advise("f1", {"morgan2": NARROW}, 0.5, "morgan2")
    with pytest.raises(DecisionError, match="no bands, expected those of at least one"):
        advise("hit", {}, 0.5, "morgan2")
    for goal in ("cosine", "bits"):
        with pytest.raises(DecisionError, match=f"bands are of tanimoto, expected those of {goal}"):
            advise(goal, {"morgan2": NARROW}, 0.5, "morgan2", "tanimoto")
    with pytest.raises(DecisionError, match="no band of maccs, the fingerprint that the data have"):
        advise("bits", {"morgan2": NARROW}, 0.5, "maccs", "bits")
