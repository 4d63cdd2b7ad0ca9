import dataclasses
import json
import math

import pytest

from mzseek.errors import LossError, RunError
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS
from mzseek.runs.options import MODELS, Options

TEMPERATURES = {
    "fp-cos": 1 / 256, "emb-cos": 1 / 64, "fp-mlp": 1 / 16, "emb-mlp": 1 / 16, "combined": 1 / 256,
}  # fmt: skip


def test_what_is_not_given_is_none_until_it_can_be_known() -> None:
    options = Options().resolved()
    assert (options.epochs, options.batch_size, options.clip) == (50, 64, 1.0)
    assert (options.model, options.blocks, options.width, options.projected) == (
        "mlp", 3, 1024, 256,
    )  # fmt: skip
    assert (options.warmup, options.validate_every, options.bias) == (None, None, None)
    assert (options.temperature, options.gamma, options.weight) == (None, None, None)


def test_each_loss_and_model_resolves_to_the_paper_s_values() -> None:
    assert Options(loss="focal").resolved().gamma == 2.0
    assert Options(loss="combined").resolved().weight == 0.5
    assert Options(model="transformer").resolved().blocks is None


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_resolves_to_its_tuned_temperature(loss: str) -> None:
    assert Options(loss=loss).resolved().temperature == TEMPERATURES.get(loss)


def test_a_temperature_that_is_asked_for_is_kept() -> None:
    assert Options(loss="fp-cos", temperature=4.0).resolved().temperature == 4.0


@pytest.mark.parametrize("loss", LOSSES)
def test_resolving_twice_changes_nothing(loss: str) -> None:
    once = Options(loss=loss).resolved()
    assert once.resolved() == once


def test_models_are_the_encoders_and_the_baselines() -> None:
    assert set(MODELS) == {*ENCODERS, "random"}
    for model in MODELS:
        assert Options(model=model).resolved().model == model


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gpt"}, "model 'gpt' is unknown, expected one of: mlp"),
        ({"bias": "one"}, "bias 'one' is unknown, expected one of: zero, log-odds"),
        ({"epochs": 0}, "epochs is 0, expected more than 0"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": math.nan}, "lr is nan"),
        ({"lr": math.inf}, "lr is inf"),
        ({"width": 0}, "width is 0"),
        ({"projected": 0}, "projected is 0"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"validate_every": 0}, "validate_every is 0"),
        ({"warmup": -1}, "warmup is -1, expected 0 or more"),
        ({"blocks": -1}, "blocks is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"loss": "focal", "gamma": -0.5}, "gamma is -0.5"),
        ({"loss": "focal", "gamma": math.nan}, "gamma is nan"),
        ({"patience": 0}, "patience is 0, expected more than 0"),
        ({"threads": 0}, "threads is 0"),
        ({"loss": "fp-cos", "temperature": 0.0}, "temperature is 0.0"),
        ({"loss": "fp-cos", "temperature": math.nan}, "temperature is nan"),
        ({"dropout": 1.0}, "dropout is 1.0, expected 0 to less than 1"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"loss": "combined", "weight": 1.5}, "weight is 1.5, expected 0 to 1"),
        ({"temperature": 1.0}, "--temperature: the loss bce has none"),
        ({"loss": "iou", "gamma": 1.0}, "--gamma: the loss iou has none"),
        ({"loss": "emb-cos", "weight": 0.1}, "--weight: the loss emb-cos has none"),
        # Given is given, also where it is what the losses that have it take by default.
        ({"gamma": 2.0}, "--gamma: the loss bce has none"),
        ({"weight": 0.5}, "--weight: the loss bce has none"),
        ({"model": "deepsets", "blocks": 3}, "--blocks: the model deepsets has none"),
        ({"pairwise": True}, "--pairwise: the loss bce reads no pairs"),
        ({"loss": "combined", "pairwise": True}, "--pairwise: the loss combined reads no pairs"),
        ({"loss": "emb-cos", "bias": "log-odds"}, "emb-cos predicts no fingerprint"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else None,
)
def test_what_does_not_fit_is_refused_in_one_line(changes, message: str) -> None:
    with pytest.raises(RunError) as refused:
        Options(**changes).resolved()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_loss_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LossError, match="loss 'mse' is unknown, expected one of: bce"):
        Options(loss="mse").resolved()


def test_options_survive_json() -> None:
    options = Options(loss="combined", patience=3, start_from="runs/a", clip=math.inf).resolved()
    assert Options.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    assert set(options.to_dict()) == {field.name for field in dataclasses.fields(Options)}


# What version 0.1 wrote for every run: numbers also where they do not apply.
WRITTEN_BEFORE = {
    "loss": "bce", "model": "mlp", "candidates": "mass", "epochs": 50, "batch_size": 64,
    "lr": 0.0001, "seed": 0, "temperature": None, "gamma": 2.0, "weight": 0.5, "pairwise": False,
    "blocks": 3, "width": 1024, "projected": 256, "dropout": 0.25, "warmup": 500, "clip": 1.0,
    "bias": "zero", "validate_every": 1000, "patience": None, "start_from": None, "threads": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [{}, {"loss": "focal"}, {"loss": "combined", "temperature": 1 / 256}, {"model": "deepsets"}],
    ids=str,
)
def test_options_that_were_written_before_are_those_of_the_same_command(changes) -> None:
    found = Options.from_dict(WRITTEN_BEFORE | changes)
    assert found == Options(**changes, warmup=500, validate_every=1000, bias="zero").resolved()
    assert found.resolved() == found


def test_facts_of_another_version_are_refused() -> None:
    with pytest.raises(RunError, match="options do not fit"):
        Options.from_dict({"loss": "bce", "colour": "red"})
    with pytest.raises(RunError, match="options do not fit"):
        Options.from_dict({"loss": ["bce"]})


def test_options_of_other_parts_are_refused() -> None:
    with pytest.raises(RunError, match="--blocks: the model transformer has none"):
        Options(model="transformer", blocks=6).resolved()
    with pytest.raises(RunError, match="the bias comes from the run that --start-from names"):
        Options(loss="fp-cos", start_from="runs/cosine", bias="log-odds").resolved()
