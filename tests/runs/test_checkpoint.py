import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from mzseek.errors import ModelError
from mzseek.models import SCORERS, build
from mzseek.runs.checkpoint import (
    load_into,
    load_weights,
    save_weights,
    start_from,
)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def assert_one_line(error: pytest.ExceptionInfo, path: Path) -> None:
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("loss", SCORERS)
def test_weights_come_back_bit_by_bit(loss: str, small_model, small_spec, tmp_path: Path) -> None:
    model, spec, path = small_model(loss), small_spec(loss), tmp_path / "deep" / "w.safetensors"
    save_weights(model, spec, path, {"step": 7})
    found, described, facts = load_weights(path)
    assert (described, facts, found.training) == (spec, {"step": 7}, False)
    state = model.state_dict()
    assert set(found.state_dict()) == set(state)
    assert all(torch.equal(value, state[name]) for name, value in found.state_dict().items())


def with_width(described: dict, width: object) -> dict:
    options = described["encoder"]["options"] | {"width": width}
    return described | {"encoder": described["encoder"] | {"options": options}}


def bad_files(tmp_path: Path, model, spec) -> dict[str, Path]:
    good = tmp_path / "good.safetensors"
    save_weights(model, spec, good, {})
    content, metadata = good.read_bytes(), {"kind": "mzseek model weights", "facts": "{}"}
    tensors = {name: value.clone() for name, value in load_file(good).items()}
    paths = {
        name: tmp_path / f"{name}.safetensors"
        for name in (
            "truncated", "header", "empty", "text", "pickle", "other", "wider", "lacking",
            "unknown encoder", "no json", "a list", "wrong type", "odd facts",
        )
    }  # fmt: skip
    paths["truncated"].write_bytes(content[: len(content) // 2])
    paths["header"].write_bytes(content[:100])
    paths["empty"].write_bytes(b"")
    paths["text"].write_text("hello\n" * 100)
    paths["pickle"].write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    save_file({"weight": torch.ones(3)}, paths["other"])

    def described(model: object) -> dict[str, str]:
        return metadata | {"model": json.dumps(model)}

    facts = spec.to_dict()
    save_file(tensors, paths["wider"], metadata=described(with_width(facts, 64)))
    save_file({"weight": torch.ones(3)}, paths["lacking"], metadata=described(facts))
    save_file(
        tensors, paths["unknown encoder"], metadata=described(facts | {"encoder": {"name": "gpt"}})
    )
    save_file(tensors, paths["no json"], metadata=metadata | {"model": "{"})
    save_file(tensors, paths["a list"], metadata=described([1, 2]))
    save_file(tensors, paths["wrong type"], metadata=described(with_width(facts, "wide")))
    save_file(tensors, paths["odd facts"], metadata=described({"width": 3}))
    return paths | {"absent": tmp_path / "absent.safetensors", "folder": tmp_path}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absent", "no such file"),
        ("folder", "no such file"),
        ("truncated", "is no safetensors file, or damaged"),
        ("header", "is no safetensors file, or damaged"),
        ("empty", "is no safetensors file, or damaged"),
        ("text", "is no safetensors file, or damaged"),
        ("pickle", "is no safetensors file, or damaged"),
        ("other", "is no mzseek model"),
        ("wider", "does not fit the model it describes"),
        ("lacking", "does not fit the model it describes"),
        ("unknown encoder", "encoder 'gpt' is unknown"),
        ("no json", "its description: is damaged"),
        ("a list", "its description: holds a list, expected a JSON object"),
        ("wrong type", "encoder mlp: width is 'wide', expected a whole number"),
        ("odd facts", "its description cannot be read (model description differs in"),
    ],
)
def test_what_is_no_model_file_is_refused_by_name_and_never_unpickled(
    kind: str, message: str, small_model, small_spec, tmp_path: Path
) -> None:
    path = bad_files(tmp_path, small_model(), small_spec())[kind]
    with pytest.raises(ModelError) as refused:
        load_weights(path)
    assert_one_line(refused, path)
    assert message in str(refused.value)
    assert not (tmp_path / "sprung").exists()


def test_the_trap_would_have_sprung(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


def test_weights_of_another_make_up_do_not_go_into_a_model(small_model, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(ModelError) as refused:
        load_into(small_model("bce"), small_model("emb-cos").state_dict(), path)
    assert_one_line(refused, path)


@pytest.mark.parametrize(("first", "second"), [("bce", "emb-cos"), ("bce", "bce")])
def test_a_second_stage_takes_all_that_fits(
    first: str, second: str, small_model, small_spec, tmp_path: Path
) -> None:
    source, model = small_model(first, seed=1), small_model(second, seed=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    save_weights(source, small_spec(first), tmp_path / "w.safetensors", {})
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
    save_weights(small_model(), small_spec(), path, {})
    with pytest.raises(ModelError, match="has another encoder than this model") as refused:
        start_from(small_model(model="deepsets"), path)
    assert_one_line(refused, path)


def test_a_loaded_model_says_what_the_saved_one_said(
    small, small_spec, small_model, tmp_path: Path
) -> None:
    from mzseek.training.train import predict_fold

    model = small_model("emb-mlp").eval()
    save_weights(model, small_spec("emb-mlp"), tmp_path / "w.safetensors", {})
    one = predict_fold(model, small, "val").lists["mass"].scores
    two = predict_fold(load_weights(tmp_path / "w.safetensors")[0], small, "val")
    assert one.tolist() == two.lists["mass"].scores.tolist()
    fresh = predict_fold(build(small_spec("emb-mlp"), seed=5), small, "val")
    assert one.tolist() != fresh.lists["mass"].scores.tolist()
