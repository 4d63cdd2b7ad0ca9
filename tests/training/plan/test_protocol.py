from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import RunError
from mzseek.losses import LOSSES
from mzseek.models import encoder_part
from mzseek.training.options import (
    AS_IN_PAPER,
    PAPER,
    PROTOCOLS,
    Options,
    as_begun,
    for_steps,
    told,
    with_protocol,
)

STEPS = st.integers(1, 10**6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("steps", [1, 190, 950, 5_560, 20_000, 151_650])
def test_the_paper_s_protocol_is_exact_whatever_the_length(loss: str, steps: int) -> None:
    asked = with_protocol(Options.of(loss), "paper")
    found = for_steps(asked, steps)
    assert found == asked
    assert (found.warmup, found.validate_every, found.bias) == (500, 1000, "zero")
    assert (found.epochs, found.batch_size, found.clip, found.lr) == (50, 64, 1.0, 1e-4)
    assert (found.encoder, found.loss.options) == (encoder_part("mlp"), LOSSES[loss].options())
    assert (found.patience, found.start_from) == (None, None)


@pytest.mark.parametrize("loss", LOSSES)
@given(steps=st.integers(AS_IN_PAPER, 10**7))
def test_a_long_run_has_the_paper_s_protocol_unasked(loss: str, steps: int) -> None:
    assert for_steps(Options.of(loss), steps) == with_protocol(Options.of(loss), "paper")


@given(an_epoch=st.integers(1, 20_000), epochs=st.integers(1, 100))
def test_every_run_warms_up_before_its_end_and_is_validated_often(
    an_epoch: int, epochs: int
) -> None:
    steps = an_epoch * epochs
    found = for_steps(Options.of(epochs=epochs), steps)
    assert found.warmup is not None
    assert found.validate_every is not None
    assert 0 <= found.warmup <= steps / 10
    assert found.warmup <= PAPER["warmup"]
    assert 1 <= found.validate_every <= PAPER["validate_every"]
    validations = -(-steps // found.validate_every)
    assert validations >= min(10, epochs, steps)
    assert validations <= max(20, steps // 1000 + 1)
    # At the most two an epoch, where that does not make them too far apart.
    assert found.validate_every >= min(an_epoch // 2, 1000)


@pytest.mark.parametrize(
    ("epochs", "steps", "every"), [(1, 19, 9), (10, 190, 10), (50, 950, 48), (10, 5560, 278)]
)
def test_how_often_runs_of_these_lengths_are_validated(epochs: int, steps: int, every: int) -> None:
    assert for_steps(Options.of(epochs=epochs), steps).validate_every == every


@given(st.lists(STEPS, min_size=2, max_size=2).map(sorted))
def test_a_longer_run_never_warms_up_less_nor_is_validated_more_densely(steps: list[int]) -> None:
    short, long = (for_steps(Options.of(), n) for n in steps)
    assert (short.warmup or 0) <= (long.warmup or 0)
    assert (short.validate_every or 0) <= (long.validate_every or 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(steps=STEPS)
def test_what_is_given_is_kept_also_where_it_is_a_default(protocol: str, steps: int) -> None:
    for given_values in (
        {"warmup": 500, "validate_every": 1000, "bias": "zero"},
        {"warmup": 0, "validate_every": 7, "bias": "log-odds"},
    ):
        found = for_steps(with_protocol(Options.of(**given_values), protocol), steps)
        assert {name: getattr(found, name) for name in given_values} == given_values


@pytest.mark.parametrize("loss", LOSSES)
def test_a_short_run_starts_its_bias_at_log_odds_where_the_loss_would_stall(loss: str) -> None:
    short = "log-odds" if loss in ("bce", "focal", "iou") else "zero"
    assert for_steps(Options.of(loss), 190).bias == short
    assert for_steps(Options.of(loss), AS_IN_PAPER - 1).bias == short
    assert for_steps(Options.of(loss), AS_IN_PAPER).bias == "zero"
    # The first stage's bias is not touched.
    assert for_steps(Options.of(loss, start_from="runs/a"), 190).bias == "zero"


def test_losses_that_stall_are_losses_that_predict_a_fingerprint() -> None:
    stalling = [loss for loss in LOSSES.values() if loss.stalls]
    assert {loss.name for loss in stalling} == {"bce", "focal", "iou"}
    assert all(loss.predicts_fingerprint for loss in stalling)


@pytest.mark.parametrize("loss", LOSSES)
def test_settled_options_are_accepted(loss: str) -> None:
    for options in (Options.of(loss), Options.of(loss, start_from="runs/a")):
        found = for_steps(options, 190)
        found.check()
        assert found == for_steps(found, 99_999)


def test_going_on_keeps_what_the_run_was_begun_with() -> None:
    begun = for_steps(with_protocol(Options.of(), "paper"), 190)
    assert as_begun(Options.of(), begun) == begun
    assert as_begun(Options.of(warmup=19), begun) == replace(begun, warmup=19)
    # What has a default of its own is not taken over.
    assert as_begun(Options.of(), replace(begun, epochs=9)).epochs == 50


@pytest.mark.parametrize(
    ("changes", "bias"),
    [({}, ", bias started at log-odds"), ({"loss": "cosine"}, ", bias started at zero"),
     ({"loss": "emb-cos"}, ""), ({"start_from": "runs/a"}, "")],
)  # fmt: skip
def test_what_follows_from_the_steps_is_told_in_one_line(changes, bias: str) -> None:
    options = for_steps(Options.of(epochs=10, **changes), 190)
    assert told(options, 190) == [f"190 steps: warm-up 19 steps, validation every 10{bias}"]


def test_a_warm_up_and_validations_that_never_come_are_warned_of() -> None:
    first, warmup, validation = told(with_protocol(Options.of(lr=5e-5), "paper"), 190)
    assert first.startswith("190 steps: warm-up 500 steps, validation every 1,000")
    assert warmup.startswith("warning: the warm-up of 500 steps is longer than the run of 190")
    assert "ends at 38 % of 5e-05" in warmup
    assert validation.startswith("warning: validation every 1,000 steps of 190")
    assert "once, at the end" in validation
    assert len(told(with_protocol(Options.of(), "paper"), 1000)) == 1


def test_an_unknown_protocol_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RunError, match="protocol 'mine' is unknown, expected one of: auto, paper"):
        with_protocol(Options.of(), "mine")
