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
from mzseek.runs.run import Run, model_as_text, model_from_text

if TYPE_CHECKING:
    from mzseek.models.model import TorchNetwork


_KIND = "mzseek model weights"
Arrays = dict[str, npt.NDArray[Any]]


def save_weights(arrays: Arrays, spec: ModelSpec, path: Path, facts: dict[str, Any]) -> str:
    """Write a model's weights with its description in the same file; returns their digest."""
    described = {"kind": _KIND, "model": model_as_text(spec), "facts": json.dumps(facts)}
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
    """Weights from a model's file, with its description and the facts it was saved with.

    Whether the weights are those of such a model is seen when a network is made of them
    (`mzseek.runs.checkpoints`).

    Raises
    ------
    ModelError
        The file is missing, no model file, or damaged.
    """
    arrays, metadata = read_arrays(path)
    if metadata.get("kind") != _KIND:
        raise ModelError(f"{path}: is no mzseek model (safetensors without its description)")
    where = f"{path}: its description"
    spec = model_from_text(metadata.get("model", ""), where)
    facts = parse_object(metadata.get("facts", ""), where, ModelError)
    check_fields(facts, {"step?": int}, where, ModelError)
    return arrays, spec, facts


def read_arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    """All arrays of a file, and what it says of itself.

    Raises
    ------
    ModelError
        It is missing, damaged or no such file.
    """
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        # The last two: a type of numbers that numpy has not.
        raise ModelError(f"{path}: is no safetensors file, or damaged ({error})") from error


def network_of(spec: ModelSpec, arrays: Arrays, path: Path) -> "TorchNetwork":
    """Build a network from its description and its weights.

    Parameters
    ----------
    spec : ModelSpec
    arrays : dict of str to array
        Weights by name.
    path : Path
        Where they are from, for messages.

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
    """The model of these parts, in the sizes of the data."""
    bits = int(prepared.manifest["fingerprint_bits"])
    return ModelSpec(encoder, scorer, int(prepared.bins.shape[1]), bits)


def model_for(run: Run, prepared: Prepared) -> ModelSpec:
    """The model of a run, in the sizes of the data.

    Raises
    ------
    RunError
        It is a baseline or was fitted: neither has one.
    """
    if run.encoder is None:
        raise RunError(f"{run.folder}: {run.made.name} has no model")
    return model_of_parts(run.encoder, run.scorer, prepared)


def kept_model(run: Run, metric: str, prepared: Prepared) -> "TorchNetwork":
    """The network of the step at which a metric was best.

    Raises
    ------
    MissingExtra
        torch is not installed.
    ModelError, RunError
        The file is damaged, is of another model or run, or the run is still being trained.
    """
    path = run.checkpoint(metric)
    arrays, spec, facts = load_weights(path)
    expected = model_for(run, prepared)
    if spec != expected:
        theirs, ours = spec.flat(), expected.flat()
        name = next(name for name in ours if theirs.get(name) != ours[name])
        raise RunError(
            f"{path}: is of another model ({name} {theirs.get(name)}, and {run.folder} has "
            f"{ours[name]})"
        )
    step, kept = run.best[metric]["step"], run.facts["checkpoints"].get(metric)
    if facts.get("step") != step:
        fault = f"holds weights of step {facts.get('step')}, and {run.folder} kept step {step}"
    elif kept != digest(arrays):
        fault = f"holds other weights than {run.folder} has kept"
    else:
        return network_of(spec, arrays, path)
    why = "it is another run's, or was changed"
    if not run.finished:
        why = f"the run is being trained at this moment, or {why}"
    raise RunError(f"{path}: {fault}: {why}")
