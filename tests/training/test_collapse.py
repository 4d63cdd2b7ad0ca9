from dataclasses import replace

import numpy as np
import pytest

from mzseek.training.loop import COLLAPSED_BELOW, collapse_warning, kept_warning, learned, spread
from mzseek.training.options import Options


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


CONSTANT = np.full((20, 8), 0.3, np.float16)
GIVEN = {"loss": "iou", "lr": 1e-4, "warmup": 500, "bias": "zero"}
ZERO = Options.of(**GIVEN)
LONG, SHORT = 5560, 190


@pytest.mark.parametrize("step", [1, SHORT, LONG])
def test_predictions_that_differ_are_no_collapse(step: int) -> None:
    assert collapse_warning(np.random.default_rng(0).random((20, 8)), ZERO, step) is None


@pytest.mark.parametrize("warmup", [0, 1, 7, 40, 500])
@pytest.mark.parametrize("step", [0, 1, 6, 7, 40, 123])
def test_how_far_training_has_come_is_the_sum_of_its_learning_rates(warmup: int, step: int) -> None:
    rates = [2e-4 * (min(1, n / warmup) if warmup else 1) for n in range(1, step + 1)]
    assert learned(Options.of(lr=2e-4, warmup=warmup), step) == pytest.approx(sum(rates))


def test_a_constant_prediction_is_told_with_the_remedy() -> None:
    warning = str(collapse_warning(CONSTANT, ZERO, LONG))
    assert "iou has collapsed" in warning
    assert warning.endswith("Start again with --bias log-odds")
    assert f"{COLLAPSED_BELOW:g}" in warning
    assert "\n" not in warning


@pytest.mark.parametrize("loss", ["bce", "iou"])
def test_a_run_that_was_too_short_is_not_said_to_collapse(loss: str) -> None:
    warning = str(collapse_warning(CONSTANT, Options.of(**GIVEN | {"loss": loss}), SHORT))
    assert f"after 190 steps, {loss} has hardly begun to learn" in warning
    assert "collapsed" not in warning
    assert warning.endswith("Start again with --bias log-odds and more --epochs")


@pytest.mark.parametrize(
    ("changes", "short", "long"),
    [
        ({"bias": "log-odds"}, "more --epochs", "a smaller --lr"),
        ({"loss": "emb-cos"}, "more --epochs", "a smaller --lr"),
        ({"loss": "fp-cos", "start_from": "runs/a"}, "more --epochs", "a smaller --lr"),
    ],
    ids=str,
)
def test_a_remedy_that_was_taken_or_cannot_be_is_not_advised(changes, short, long) -> None:
    options = Options.of(**GIVEN | changes)
    for step, remedy in ((SHORT, short), (LONG, long)):
        assert str(collapse_warning(CONSTANT, options, step)).endswith(f"again with {remedy}")


def test_a_smaller_rate_is_never_advised_to_a_run_that_was_too_short() -> None:
    for options in (
        ZERO,
        replace(ZERO, bias="log-odds"),
        Options.of("emb-cos", lr=1e-4, warmup=500),
    ):
        assert "--lr" not in str(collapse_warning(CONSTANT, options, SHORT))


@pytest.mark.parametrize("rows", [None, np.empty((0, 4)), np.ones((1, 4))])
def test_fewer_than_two_predictions_say_nothing(rows) -> None:
    assert collapse_warning(rows, ZERO, LONG) is None


def test_no_predictions_have_no_spread() -> None:
    assert spread(np.empty((0, 4))) == 0


def test_a_kept_checkpoint_that_had_collapsed_is_named() -> None:
    best = {"hit_rate@1/mass": {"spread": 0.9}, "tanimoto": {"spread": COLLAPSED_BELOW / 2}}
    assert "best by tanimoto is from before" in str(kept_warning(best))
    assert kept_warning({"tanimoto": {"spread": 0.9}}) is None
