import hashlib
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_by_torch
from safetensors.torch import save_file as by_torch

from mzseek.core.errors import ModelError, MzseekError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.models import SCORERS, build
from mzseek.models.model import TorchNetwork, arrays_of, as_arrays
from mzseek.runs.checkpoints import (
    best_model,
    digest,
    load_weights,
    model_for,
    network_of,
    save_weights,
)
from mzseek.runs.predictions import predict_fold
from mzseek.runs.run import Run


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def assert_one_line(error: pytest.ExceptionInfo, path: Path) -> None:
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


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


METRIC = "tanimoto"


@pytest.fixture
def run(trained, tmp_path: Path) -> Run:
    """A run of one's own, without predictions."""
    shutil.copytree(trained("bce").folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "predictions")
    return Run.open(tmp_path / "run")


def take_from(other: Run, run: Run) -> None:
    """Put the checkpoints of one run into the place of another's."""
    shutil.rmtree(run.folder / "checkpoints")
    shutil.copytree(other.folder / "checkpoints", run.folder / "checkpoints")


def test_a_runs_own_model_is_read(run: Run, small: Prepared) -> None:
    network = best_model(run, METRIC, small)
    expected = load_file(run.checkpoint(METRIC))
    found = arrays_of(network.model)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(value, expected[name]) for name, value in found.items())
    assert run.metadata["checkpoints"][METRIC] == digest(expected)
    assert set(run.metadata["checkpoints"]) == set(run.best)
    assert model_for(run, small).width == 32


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"width": 48}, "is of another model (encoder.width 48, and "),
        ({"loss": "fp-cos", "blocks": 2}, "is of another model (encoder.blocks 2, and "),
        ({"dropout": 0.5}, "is of another model (encoder.dropout 0.5, and "),
        ({"model": "deepsets"}, "is of another model (encoder deepsets, and "),
        ({"seed": 1, "validate_every": 7}, "holds weights of step"),
        ({"seed": 1}, "holds other weights than "),
    ],
    ids=str,
)
@pytest.mark.parametrize("status", ["finished", "training"])
def test_a_checkpoint_of_another_run_is_refused_for_what_it_is(
    changes: dict, why: str, status: str, trained, run: Run, small: Prepared
) -> None:
    other = trained(**changes)
    take_from(other, run)
    run.metadata["status"] = status
    for metric in run.best:  # as if it were of the same step, where the step is not the point
        run.metadata["best"][metric]["step"] = other.best[metric]["step"] + ("step" in why)
    for action in (lambda: best_model(run, METRIC, small), lambda: evaluate(run, Scoring())):
        with pytest.raises(RunError) as refused:
            action()
        said = str(refused.value)
        assert why in said
        assert ("being trained" in said) == (status == "training" and "another model" not in why)
    assert not (run.folder / "predictions").exists()


def test_a_changed_weight_is_noticed(run: Run, small: Prepared) -> None:
    for path in (run.folder / "checkpoints").iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    with pytest.raises(RunError, match=r"holds other weights than .* it is another run's, or was"):
        best_model(run, METRIC, small)


ABSURD = {
    "encoder.options.width": 10**9,
    "encoder.options.blocks": 10**12,
    "encoder.options.dropout": 7,
    "encoder.name": "gpt",
    "encoder": "gpt",
    "encoder.options": {"depth": 3},
    "scorer.name": "none",
    "scorer.options": {"projected": "many"},
    "scorer": None,
    "bins": 2**62,
    "bits": -1,
}


def assert_refused(run: Run, prepared: Prepared, change) -> None:
    """Rewrite the header of the checkpoint; reading it must then be a one-line error."""
    path = run.checkpoint(METRIC)
    with safe_open(path, "np") as file:
        header = file.metadata()
    save_file(load_file(path), path, header | change(header))
    with pytest.raises(MzseekError) as refused:
        best_model(run, METRIC, prepared)
    assert_one_line(refused, path)


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_description_is_refused_before_memory_is_allocated(
    name: str, run: Run, small: Prepared
) -> None:
    def change(header: dict[str, str]) -> dict[str, str]:
        described = parent = json.loads(header["model"])
        *parents, last = name.split(".")
        for key in parents:
            parent = parent[key]
        parent[last] = ABSURD[name]
        return {"model": json.dumps(described)}

    assert_refused(run, small, change)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "1" * 5_000, '{"width": 1}'])
@pytest.mark.parametrize("part", ["model", "facts"])
def test_damaged_descriptions_are_one_line(text: str, part: str, run: Run, small: Prepared) -> None:
    assert_refused(run, small, lambda header: {part: text})


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_loaded_network_scores_as_the_saved_one(
    scorer: str, small, small_spec, small_model, tmp_path: Path
) -> None:
    model, path = small_model(scorer), tmp_path / "w.safetensors"
    save_weights(arrays_of(model), small_spec(scorer), path, {})
    arrays, spec, _ = load_weights(path)
    one = predict_fold(TorchNetwork(model), small, "val").lists["mass"].scores
    two = predict_fold(network_of(spec, arrays, path), small, "val").lists["mass"].scores
    assert one.tolist() == two.tolist()
    fresh = predict_fold(TorchNetwork(build(small_spec(scorer), seed=5)), small, "val")
    assert one.tolist() != fresh.lists["mass"].scores.tolist()
