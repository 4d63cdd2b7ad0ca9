from pathlib import Path

import pytest
import torch

from mzseek.core.errors import ModelError
from mzseek.models.model import arrays_of
from mzseek.runs.checkpoints import save_weights
from mzseek.training.state import load_into, start_from


def assert_one_line(error: pytest.ExceptionInfo, path: Path) -> None:
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_weights_of_another_make_up_do_not_go_into_a_model(small_model, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(ModelError) as refused:
        load_into(small_model("bce"), arrays_of(small_model("emb-cos")), path)
    assert_one_line(refused, path)


@pytest.mark.parametrize(("first", "second"), [("bce", "emb-cos"), ("bce", "bce")])
def test_a_second_stage_takes_all_that_fits(
    first: str, second: str, small_model, small_spec, tmp_path: Path
) -> None:
    source, model = small_model(first, seed=1), small_model(second, seed=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    save_weights(arrays_of(source), small_spec(first), tmp_path / "w.safetensors", {})
    taken = start_from(model, tmp_path / "w.safetensors")
    given = source.state_dict()
    assert taken == sorted(set(before) & set(given))
    assert {name for name in before if name.startswith("encoder.")} <= set(taken)
    for name, value in model.state_dict().items():
        assert torch.equal(value, given[name] if name in taken else before[name])


def test_a_second_stage_with_another_encoder_is_refused(
    small_model, small_spec, tmp_path: Path
) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(arrays_of(small_model()), small_spec(), path, {})
    with pytest.raises(ModelError, match="has another encoder than this model") as refused:
        start_from(small_model(model="deepsets"), path)
    assert_one_line(refused, path)
