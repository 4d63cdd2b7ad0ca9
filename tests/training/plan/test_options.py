import json
import math
from pathlib import Path

import pytest

from mzseek.core.errors import LossError, ModelError, RunError
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS
from mzseek.runs.run import Run
from mzseek.training.options import MODELS, Options

TEMPERATURES = {
    "fp-cos": 1 / 256, "emb-cos": 1 / 64, "fp-mlp": 1 / 16, "emb-mlp": 1 / 16, "combined": 1 / 256,
}  # fmt: skip


def test_what_is_not_given_is_none_until_it_can_be_known() -> None:
    options = Options.of()
    assert (options.epochs, options.batch_size, options.clip) == (50, 64, 1.0)
    assert (options.loss.name, options.model, options.scorer.name) == ("bce", "mlp", "fp-cos")
    assert (options.warmup, options.validate_every, options.bias) == (None, None, None)


def test_parts_have_the_paper_s_values() -> None:
    assert vars(Options.of().encoder.options) == {"width": 1024, "blocks": 3, "dropout": 0.25}
    assert vars(Options.of("focal").loss.options) == {"gamma": 2.0}
    assert Options.of("combined").loss.options.weight == 0.5
    assert Options.of("emb-cos").scorer.options.projected == 256


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_has_its_tuned_temperature(loss: str) -> None:
    assert getattr(Options.of(loss).loss.options, "temperature", None) == TEMPERATURES.get(loss)


def test_what_is_asked_for_is_kept() -> None:
    parts = {"loss": {"temperature": 4}, "encoder": {"layers": 2}, "scorer": {"projected": 8}}
    options = Options.of("emb-cos", "transformer", parts)
    assert options.loss.options.temperature == 4.0
    assert (options.encoder.options.layers, options.encoder.options.tokens) == (2, 256)
    assert options.scorer.options.projected == 8


def test_models_are_the_encoders_and_the_baselines() -> None:
    assert set(MODELS) == {*ENCODERS, "random"}
    for model in MODELS:
        options = Options.of(model=model)
        assert options.model == model
        assert (options.encoder is None) == (options.baseline == "random") == (model == "random")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gpt"}, "model 'gpt' is unknown, expected one of: mlp"),
        ({"loss": "mse"}, "loss 'mse' is unknown, expected one of: bce"),
        ({"bias": "one"}, "bias 'one' is unknown, expected one of: zero, log-odds"),
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
