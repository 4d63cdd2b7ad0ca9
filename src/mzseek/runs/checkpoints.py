"""Weights on disk (safetensors) and the model they belong to."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mzseek.core.errors import ModelError, RunError, require
from mzseek.core.registry import ComponentConfig
from mzseek.datasets.prepared import Prepared
from mzseek.io import atomic_file
from mzseek.io.manifest import check_fields, parse_object
from mzseek.models import ModelSpec
from mzseek.runs.run import Run

if TYPE_CHECKING:
    from mzseek.models.model import TorchNetwork


_KIND = "mzseek model weights"
Arrays = dict[str, npt.NDArray[Any]]


def save_weights(arrays: Arrays, spec: ModelSpec, path: Path, metadata: dict[str, Any]) -> str:
    """Write a model's weights with its description in the same file; returns their digest."""
    described = {"kind": _KIND, "model": json.dumps(spec.to_dict()), "facts": json.dumps(metadata)}
    with atomic_file(path) as partial:
        save_file(arrays, partial, metadata=described)
    return digest(arrays)


def digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and numbers; a file's own has the order of names in it."""
    hashed = hashlib.sha256()
    for name, value in sorted(arrays.items()):
        # Types in torch's words, as runs of all versions have them.
        hashed.update(f"{name}\0torch.{value.dtype.name}\0{value.shape}\0".encode())
        hashed.update(value.reshape(-1).view("uint8").data)
    return hashed.hexdigest()


def load_weights(path: Path) -> tuple[Arrays, ModelSpec, dict[str, Any]]:
    """Read weights from a model's file, with its description and the metadata saved with it.

    Whether the weights are those of such a model is checked when a network is made of them
    (`network_of`). ModelError if the file is missing, no model file, or damaged.
    """
    arrays, header = read_arrays(path)
    if header.get("kind") != _KIND:
        raise ModelError(f"{path}: is no mzseek model (safetensors without its description)")
    where = f"{path}: its description"
    description = parse_object(header.get("model", ""), where, ModelError)
    try:
        spec = ModelSpec.from_dict(description)
    except ModelError as error:
        raise ModelError(f"{where} cannot be read ({error})") from error
    metadata = parse_object(header.get("facts", ""), where, ModelError)
    check_fields(metadata, {"step?": int}, where, ModelError)
    return arrays, spec, metadata


def read_arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Read all arrays of a safetensors file, and its header; ModelError if it cannot be read."""
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        # The last two: a type of numbers that numpy has not.
        raise ModelError(f"{path}: is no safetensors file, or damaged ({error})") from error


def network_of(spec: ModelSpec, arrays: Arrays, path: Path) -> "TorchNetwork":
    """Build a network from its description and its weights; ``path`` is where they are from.

    Raises
    ------
    MissingExtra
        torch is not installed.
    ModelError
        The weights are not those of such a model.
    """
    require("torch", "applying a trained network")
    from mzseek.models.layers import device
    from mzseek.models.model import TorchNetwork, model_of

    try:
        return TorchNetwork(model_of(spec, arrays).to(device()), device())
    except ModelError as error:
        raise ModelError(f"{path}: does not fit the model it describes ({error})") from error


def model_of_parts(
    encoder: ComponentConfig, scorer: ComponentConfig, prepared: Prepared
) -> ModelSpec:
    """Return the model of these parts, in the sizes of the data."""
    bits = int(prepared.manifest["fingerprint_bits"])
    return ModelSpec(encoder, scorer, int(prepared.bins.shape[1]), bits)


def model_for(run: Run, prepared: Prepared) -> ModelSpec:
    """Return a run's model in the sizes of the data; RunError for a baseline or a fitted run."""
    if run.encoder is None:
        raise RunError(f"{run.folder}: {run.description.name} has no model")
    return model_of_parts(run.encoder, run.scorer, prepared)


def best_model(run: Run, metric: str, prepared: Prepared) -> "TorchNetwork":
    """Open the network of the step at which a metric was best.

    Raises
    ------
    MissingExtra
        torch is not installed.
    ModelError, RunError
        The file is damaged, is of another model or run, or the run is still being trained.
    """
    path = run.checkpoint(metric)
    arrays, spec, metadata = load_weights(path)
    expected = model_for(run, prepared)
    if spec != expected:
        theirs, ours = spec.flat(), expected.flat()
        name = next(name for name in ours if theirs.get(name) != ours[name])
        raise RunError(
            f"{path}: is of another model ({name} {theirs.get(name)}, and {run.folder} has "
            f"{ours[name]})"
        )
    step, saved = run.best[metric]["step"], metadata.get("step")
    if saved != step:
        problem = f"holds weights of step {saved}, and {run.folder} kept step {step}"
    elif run.metadata["checkpoints"].get(metric) != digest(arrays):
        problem = f"holds other weights than {run.folder} has kept"
    else:
        return network_of(spec, arrays, path)
    why = "it is another run's, or was changed"
    if not run.finished:
        why = f"the run is being trained at this moment, or {why}"
    raise RunError(f"{path}: {problem}: {why}")
