import numpy as np
import pytest

from mzseek.training.collapse import COLLAPSED_BELOW, collapse_warning, kept_warning, spread


@pytest.mark.parametrize("row", [[0.2, 0.9, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
def test_a_constant_prediction_has_no_spread(row: list[float]) -> None:
    assert spread(np.tile(np.float16(row), (50, 1))) == pytest.approx(0, abs=1e-6)


def test_spread_is_the_deviation_over_the_length_of_the_mean() -> None:
    rows = np.random.default_rng(0).random((40, 6))
    mean = rows.mean(axis=0)
    expected = np.sqrt(((rows - mean) ** 2).sum(1).mean()) / np.linalg.norm(mean)
    assert spread(rows) == pytest.approx(expected, rel=1e-5)
    assert spread(0.01 * rows) == pytest.approx(expected, rel=1e-4)  # whatever their scale


def test_of_many_predictions_a_part_is_looked_at() -> None:
    rows = np.zeros((30, 2))
    rows[::3] = [1.0, 0.0]
    assert spread(rows, most=10) == 0  # every third
    assert spread(rows, most=30) > 1


def test_predictions_that_differ_are_no_collapse() -> None:
    assert collapse_warning(np.random.default_rng(0).random((20, 8)), "iou") is None


def test_a_constant_prediction_is_told_with_the_remedy() -> None:
    warning = collapse_warning(np.full((20, 8), 0.3, np.float16), "iou")
    assert warning is not None
    assert "iou has collapsed" in warning
    assert "--bias log-odds" in warning
    assert f"{COLLAPSED_BELOW:g}" in warning
    assert "\n" not in warning


@pytest.mark.parametrize("rows", [None, np.empty((0, 4)), np.ones((1, 4))])
def test_fewer_than_two_predictions_say_nothing(rows) -> None:
    assert collapse_warning(rows, "iou") is None


def test_no_predictions_have_no_spread() -> None:
    assert spread(np.empty((0, 4))) == 0


def test_a_kept_checkpoint_that_had_collapsed_is_named() -> None:
    best = {"hit_rate@1/mass": {"spread": 0.9}, "tanimoto": {"spread": COLLAPSED_BELOW / 2}}
    assert "best by tanimoto is from before" in str(kept_warning(best))
    assert kept_warning({"tanimoto": {"spread": 0.9}}) is None
