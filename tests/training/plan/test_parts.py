import subprocess
import sys

import pytest

from mzseek.core.errors import MzseekError
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS
from mzseek.training.options import CONTROLS, MODELS, Options, list_settings, read_settings


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


def test_controls_are_known_by_what_they_say_of_themselves() -> None:
    assert set(CONTROLS) == {"precursor", "blind", "random"} <= set(MODELS)


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
