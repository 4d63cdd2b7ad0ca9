import json
import subprocess
import sys
from dataclasses import asdict as plain

import pytest

from mzseek.core.errors import ModelError, MzseekError
from mzseek.core.registry import ComponentConfig
from mzseek.losses import LOSSES
from mzseek.models import ENCODERS, SCORERS, ModelSpec, encoder_part, scorer_part
from mzseek.runs.run import Description, model_as_text, model_from_text


def description(loss: str = "bce", encoder: str | None = "mlp", **changes: object) -> Description:
    made = {
        "loss": ComponentConfig(loss, LOSSES[loss].options()),
        "scorer": scorer_part(LOSSES[loss].scorer),
        "encoder": encoder_part(encoder) if encoder else None,
        "baseline": None if encoder else "random",
        "bins": 9 if encoder else None,
        "bits": 7 if encoder else None,
        "options": {"candidates": "mass", "seed": 3},
    }
    return Description(**made | changes)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("encoder", [*ENCODERS, None])
def test_a_description_comes_back_from_json(loss: str, encoder: str | None) -> None:
    made = description(loss, encoder)
    written = json.loads(json.dumps(made.to_dict()))
    assert Description.from_dict(written) == made
    assert written["loss"] == {"name": loss, "options": plain(LOSSES[loss].options())}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_what_is_asked_of_a_run_is_asked_of_its_parts(encoder: str) -> None:
    for loss in LOSSES:
        made, scorer = description(loss, encoder), SCORERS[LOSSES[loss].scorer]
        assert made.model_name == encoder
        assert made.sees_spectrum == ENCODERS[encoder].sees_spectrum
        assert made.predicts_fingerprint == scorer.reads_fingerprint
        assert made.reports_fingerprint == LOSSES[loss].reports_fingerprint
        assert made.scores_by == ("cosine" if scorer.name == "fp-cos" else None)


def test_a_baseline_predicts_and_sees_nothing() -> None:
    made = description("bce", None)
    assert (made.model_name, made.scores_by) == ("random", None)
    assert not made.predicts_fingerprint
    assert not made.reports_fingerprint
    assert not made.sees_spectrum


@pytest.mark.parametrize("field", ["model", "loss", "options"])
@pytest.mark.parametrize("value", [None, 3, "text", [], {"name": 3}, {"baseline": []}])
def test_damaged_descriptions_are_one_line(field: str, value: object) -> None:
    with pytest.raises(MzseekError) as refused:
        Description.from_dict(description().to_dict() | {field: value})
    assert "\n" not in str(refused.value)


def test_a_model_comes_back_from_its_text() -> None:
    spec = ModelSpec.of("transformer", "emb-mlp", encoder={"layers": 1})
    assert model_from_text(model_as_text(spec), "x") == spec
    for text in ("", "{", "[]", "{}", '{"encoder": "mlp"}', '{"encoder": {"name": "mlp"}}'):
        with pytest.raises(ModelError, match="x") as refused:
            model_from_text(text, "x")
        assert "\n" not in str(refused.value)


def test_descriptions_need_no_torch() -> None:
    code = "import sys, mzseek.runs.run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
