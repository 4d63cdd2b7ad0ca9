import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import LossError, ModelError, MzseekError, RunError
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS, encoder_part
from mzseek.runs.run import Run
from mzseek.training.options import (
    PAPER,
    PAPER_STEPS,
    PROTOCOLS,
    Options,
    for_resume,
    for_steps,
    list_settings,
    protocol_lines,
    read_settings,
    with_protocol,
)

TEMPERATURES = {
    "fp-cos": 1 / 256, "emb-cos": 1 / 64, "fp-mlp": 1 / 16, "emb-mlp": 1 / 16, "combined": 1 / 256,
}  # fmt: skip


def test_what_is_not_given_is_none_until_it_can_be_known() -> None:
    options = Options.of()
    paper = (options.epochs, options.batch_size, options.lr, options.clip)
    assert paper == (50, 64, 1e-4, 1.0)
    assert (options.loss.name, options.model, options.scorer.name) == ("bce", "mlp", "fp-cos")
    assert (options.warmup, options.validate_every, options.bias) == (None, None, None)


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_have_the_paper_s_values_unless_others_are_given(loss: str) -> None:
    options = Options.of(loss)
    assert vars(options.encoder.options) == {"width": 1024, "blocks": 3, "dropout": 0.25}
    assert getattr(options.loss.options, "temperature", None) == TEMPERATURES.get(loss)
    assert getattr(options.loss.options, "gamma", 2.0) == 2.0
    assert getattr(options.loss.options, "weight", 0.5) == 0.5
    assert getattr(options.scorer.options, "projected", 256) == 256
    parts = {"loss": {"temperature": 4}, "encoder": {"layers": 2}, "scorer": {"projected": 8}}
    given = Options.of("emb-cos", "transformer", parts)
    assert given.loss.options.temperature == 4.0
    assert (given.encoder.options.layers, given.encoder.options.tokens) == (2, 256)
    assert given.scorer.options.projected == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gpt"}, "model 'gpt' is unknown, expected one of: mlp"),
        ({"loss": "mse"}, "loss 'mse' is unknown, expected one of: bce"),
        ({"bias": "one"}, "bias 'one' is unknown, expected one of: zero, log-odds"),
        ({"precision": "half"}, "precision 'half' is unknown, expected one of: float32, bfloat16"),
        ({"epochs": 0}, "epochs is 0, expected more than 0"),
        ({"epochs": 1.5}, "epochs is 1.5, expected a whole number"),
        ({"epochs": "many"}, "epochs is 'many', expected a whole number"),
        ({"colour": "red"}, "option 'colour' is unknown, expected one of: candidates, epochs"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": math.nan}, "lr is nan"),
        ({"lr": math.inf}, "lr is inf, expected a finite number"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"clip": math.nan}, "clip is nan"),
        ({"validate_every": 0}, "validate_every is 0"),
        ({"warmup": -1}, "warmup is -1, expected 0 or more"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"patience": 0}, "patience is 0, expected more than 0"),
        ({"threads": 0}, "threads is 0"),
        ({"loss": "emb-cos", "bias": "log-odds"}, "emb-cos predicts no fingerprint"),
        ({"loss": "fp-cos", "start_from": "runs/cosine", "bias": "log-odds"}, "leave it out"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(changes, message: str) -> None:
    with pytest.raises((RunError, LossError)) as refused:
        Options.of(**changes)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("names", "parts", "message"),
    [
        ((), {"head": {}}, "part 'head' is unknown, expected one of: encoder, scorer, loss"),
        ((), {"encoder": {"width": 0}}, "encoder mlp: width is 0, expected more than 0"),
        ((), {"encoder": {"blocks": -1}}, "encoder mlp: blocks is -1, expected 0 or more"),
        ((), {"encoder": {"dropout": 1.0}}, "dropout is 1.0, expected 0 to less than 1"),
        (("emb-cos",), {"scorer": {"projected": 0}}, "scorer emb-cos: projected is 0"),
        (("focal",), {"loss": {"gamma": -0.5}}, "loss focal: gamma is -0.5, expected 0 or more"),
        (("focal",), {"loss": {"gamma": math.nan}}, "gamma is nan"),
        (("fp-cos",), {"loss": {"temperature": 0.0}}, "temperature is 0.0, expected more than 0"),
        (("fp-cos",), {"loss": {"temperature": math.inf}}, "temperature is inf"),
        (("combined",), {"loss": {"weight": 1.5}}, "weight is 1.5, expected 0 to 1"),
        (("combined",), {"loss": {"pairwise": True}}, "'pairwise' is unknown, expected one of: t"),
        ((), {"loss": {"temperature": 1.0}}, "loss bce: option 'temperature' is unknown, it has"),
        (("iou",), {"loss": {"gamma": 1.0}}, "loss iou: option 'gamma' is unknown, it has no opt"),
        # Given is given, also where it is what the losses that have it take by default.
        ((), {"loss": {"gamma": 2.0}}, "loss bce: option 'gamma' is unknown"),
        (("bce", "deepsets"), {"encoder": {"blocks": 3}}, "encoder deepsets: option 'blocks' is u"),
        (("bce", "random"), {"encoder": {"width": 3}}, "model random: option 'width' is unknown"),
    ],
    ids=str,
)
def test_options_of_parts_that_do_not_fit_are_refused(names, parts, message: str) -> None:
    with pytest.raises((RunError, LossError, ModelError)) as refused:
        Options.of(*names, parts=parts)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("loss", "model", "parts"),
    [
        ("combined", "mlp", {"encoder": {"width": 8}, "loss": {"weight": 0.25}}),
        ("emb-mlp", "transformer", {"encoder": {"tokens": 16}, "scorer": {"projected": 4}}),
        ("bce", "random", {}),
    ],
)
def test_options_come_back_from_a_run(loss, model, parts, small, tmp_path: Path) -> None:
    given = {"patience": 3, "start_from": "runs/a", "clip": math.inf, "warmup": 7}
    options = Options.of(loss, model, parts, **given)
    Run.create(tmp_path / "run", options.described(small), small)
    assert Options.of_run(Run.open(tmp_path / "run")) == options


def test_options_of_a_run_that_do_not_fit_are_refused(small, tmp_path: Path) -> None:
    Run.create(tmp_path / "run", Options.of().described(small), small)
    path = tmp_path / "run" / "run.json"
    facts = json.loads(path.read_text())
    for changes, message in (
        ({"colour": "red"}, "option 'colour' is unknown"),
        ({"lr": "fast"}, "lr is 'fast', expected a number"),
        ({"epochs": 0}, "epochs is 0, expected more than 0"),
    ):
        path.write_text(json.dumps(facts | {"options": facts["options"] | changes}))
        with pytest.raises(RunError, match=f"run.json: {message}"):
            Options.of_run(Run.open(tmp_path / "run"))


def test_texts_become_options_of_their_types() -> None:
    texts = [
        "encoder.layers=4",
        "encoder.dropout=0",
        "scorer.projected=128",
        "loss.temperature=1/8",
    ]
    found = read_settings(texts, "emb-mlp", "transformer")
    assert found == {
        "encoder": {"layers": 4, "dropout": 0.0},
        "scorer": {"projected": 128},
        "loss": {"temperature": 0.125},
    }
    assert type(found["encoder"]["dropout"]) is float
    assert Options.of("emb-mlp", "transformer", found).encoder.options.layers == 4


def test_what_is_given_otherwise_goes_along() -> None:
    given = {"encoder": {"width": 8, "blocks": None}, "loss": {"gamma": None}}
    assert read_settings(["encoder.blocks=1"], "bce", "mlp", given) == {
        "encoder": {"width": 8, "blocks": 1}, "scorer": {}, "loss": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width", "--set 'width': expected PART.OPTION=VALUE, such as encoder.width=512"),
        ("encoder.width", "expected PART.OPTION=VALUE"),
        ("width=3", "expected PART.OPTION=VALUE"),
        ("", "expected PART.OPTION=VALUE"),
        ("head.width=3", "part 'head' is unknown, expected one of: encoder, scorer, loss"),
        ("encoder.depth=3", "encoder mlp: option 'depth' is unknown, expected one of: width, bl"),
        ("scorer.projected=3", "scorer fp-cos: option 'projected' is unknown, it has no options"),
        ("loss.gamma=3", "loss bce: option 'gamma' is unknown, it has no options"),
        ("encoder.blocks=many", "encoder mlp: blocks is 'many', expected a whole number"),
        ("encoder.blocks=1=2", "encoder mlp: blocks is '1=2', expected a whole number"),
        ("encoder.width=9", "--set encoder.width: is given twice"),
    ],
)
def test_what_does_not_fit_is_one_line(text: str, message: str) -> None:
    with pytest.raises(MzseekError) as refused:
        read_settings([text], "bce", "mlp", {"encoder": {"width": 8}})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_baseline_has_no_encoder_to_set() -> None:
    with pytest.raises(MzseekError, match="the model random has no encoder"):
        read_settings(["encoder.width=3"], "bce", "random")


def test_every_part_is_listed_with_its_options() -> None:
    listed = dict(list_settings())
    assert len(listed) == len(ENCODERS) + len(SCORERS) + len(LOSSES)
    assert [name for name, _, _ in listed["encoder transformer"]] == [
        "width", "tokens", "layers", "heads", "dropout",
    ]  # fmt: skip
    assert listed["loss emb-cos"][0][:2] == ("temperature", "1/64")


def test_names_and_settings_load_no_library() -> None:
    heavy = "{'torch', 'numpy', 'scipy', 'rdkit'}"
    code = f"import sys, mzseek.training.options; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
@given(steps=st.integers(PAPER_STEPS, 10**7))
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
    assert for_steps(Options.of(loss), PAPER_STEPS - 1).bias == short
    assert for_steps(Options.of(loss), PAPER_STEPS).bias == "zero"
    # The first stage's bias is not touched.
    assert for_steps(Options.of(loss, start_from="runs/a"), 190).bias == "zero"


def test_going_on_keeps_what_the_run_was_begun_with() -> None:
    begun = for_steps(with_protocol(Options.of(), "paper"), 190)
    assert for_resume(Options.of(), begun) == begun
    assert for_resume(Options.of(warmup=19), begun) == replace(begun, warmup=19)
    # What has a default of its own is not taken over.
    assert for_resume(Options.of(), replace(begun, epochs=9)).epochs == 50


@pytest.mark.parametrize(
    ("changes", "bias"),
    [({}, ", bias started at log-odds"), ({"loss": "cosine"}, ", bias started at zero"),
     ({"loss": "emb-cos"}, ""), ({"start_from": "runs/a"}, "")],
)  # fmt: skip
def test_what_follows_from_the_steps_is_told_in_one_line(changes, bias: str) -> None:
    options = for_steps(Options.of(epochs=10, **changes), 190)
    assert protocol_lines(options, 190) == [
        f"190 steps: warm-up 19 steps, validation every 10{bias}"
    ]


def test_a_warm_up_and_validations_that_never_come_are_warned_of() -> None:
    first, warmup, validation = protocol_lines(with_protocol(Options.of(lr=5e-5), "paper"), 190)
    assert first.startswith("190 steps: warm-up 500 steps, validation every 1,000")
    assert warmup.startswith("warning: the warm-up of 500 steps is longer than the run of 190")
    assert "ends at 38 % of 5e-05" in warmup
    assert validation.startswith("warning: validation every 1,000 steps of 190")
    assert "once, at the end" in validation
    assert len(protocol_lines(with_protocol(Options.of(), "paper"), 1000)) == 1


def test_an_unknown_protocol_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RunError, match="protocol 'mine' is unknown, expected one of: auto, paper"):
        with_protocol(Options.of(), "mine")
