import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_by_torch
from safetensors.torch import save_file as by_torch

from mzseek.core.errors import ModelError
from mzseek.models import SCORERS
from mzseek.models.model import arrays_of, as_arrays
from mzseek.runs.checkpoints import digest, load_weights, save_weights


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
    arrays, spec = arrays_of(small_model(loss)), small_spec(loss)
    path = tmp_path / "deep" / "w.safetensors"
    kept = save_weights(arrays, spec, path, {"step": 7})
    found, described, facts = load_weights(path)
    assert (described, facts) == (spec, {"step": 7})
    assert found.keys() == arrays.keys()
    for name, value in found.items():
        assert value.dtype == arrays[name].dtype
        assert np.array_equal(value, arrays[name])
    assert kept == digest(found)


def test_files_and_digests_are_those_that_torch_wrote(
    small_model, small_spec, tmp_path: Path
) -> None:
    """Runs keep the digest of their weights."""
    model, spec = small_model("emb-mlp"), small_spec("emb-mlp")
    tensors = dict(model.state_dict()) | {"a scalar": torch.tensor(2.0), "none": torch.ones(0, 3)}
    expected = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        expected.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        expected.update(value.reshape(-1).view(torch.uint8).numpy().data)
    assert digest(as_arrays(tensors)) == expected.hexdigest()
    save_weights(arrays_of(model), spec, tmp_path / "ours", {"step": 7})
    with safe_open(tmp_path / "ours", "pt") as file:
        metadata = file.metadata()
    by_torch(model.state_dict(), tmp_path / "theirs", metadata)
    assert load_by_torch(tmp_path / "ours").keys() == load_by_torch(tmp_path / "theirs").keys()
    sizes = [(tmp_path / name).stat().st_size for name in ("ours", "theirs")]
    assert sizes[0] == sizes[1]


def with_width(described: dict, width: object) -> dict:
    options = described["encoder"]["options"] | {"width": width}
    return described | {"encoder": described["encoder"] | {"options": options}}


def bad_files(tmp_path: Path, model, spec) -> dict[str, Path]:
    good = tmp_path / "good.safetensors"
    save_weights(arrays_of(model), spec, good, {})
    content, metadata = good.read_bytes(), {"kind": "mzseek model weights", "facts": "{}"}
    tensors = load_file(good)
    paths = {
        name: tmp_path / f"{name}.safetensors"
        for name in (
            "truncated", "header", "empty", "text", "pickle", "other", "unknown encoder",
            "no json", "a list", "wrong type", "odd facts",
        )
    }  # fmt: skip
    paths["truncated"].write_bytes(content[: len(content) // 2])
    paths["header"].write_bytes(content[:100])
    paths["empty"].write_bytes(b"")
    paths["text"].write_text("hello\n" * 100)
    paths["pickle"].write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    save_file({"weight": np.ones(3)}, paths["other"])

    def described(model: object) -> dict[str, str]:
        return metadata | {"model": json.dumps(model)}

    facts = spec.to_dict()
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
