"""Weights and training state on disk: safetensors and JSON, never a pickle."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mzseek.errors import ModelError, RunError
from mzseek.files import atomic_directory, atomic_file
from mzseek.models import ModelSpec, Retriever, build
from mzseek.training.optimizer import ClippedAdam

_KIND = "mzseek model weights"


def save_weights(model: Retriever, spec: ModelSpec, path: Path, facts: dict[str, Any]) -> None:
    """Write a model's weights with its description in the same file."""
    described = {"kind": _KIND, "model": json.dumps(spec.to_dict()), "facts": json.dumps(facts)}
    with atomic_file(path) as partial:
        save_file(_plain(model.state_dict()), partial, metadata=described)


def load_weights(path: Path) -> tuple[Retriever, ModelSpec, dict[str, Any]]:
    """A model from its file, with its description and the facts it was saved with.

    Raises
    ------
    ModelError
        The file is missing, no model file, damaged, or does not fit its own description.
    """
    tensors, metadata = _read(path)
    if metadata.get("kind") != _KIND:
        raise ModelError(f"{path}: is no mzseek model (safetensors without its description)")
    try:
        spec = ModelSpec.from_dict(json.loads(metadata["model"]))
        facts = dict(json.loads(metadata["facts"]))
        model = build(spec)
    except (KeyError, ValueError, TypeError, ModelError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"{path}: its description cannot be read ({reason})") from error
    load_into(model, tensors, path)
    return model.eval(), spec, facts


def load_into(model: Retriever, tensors: dict[str, Tensor], path: Path) -> None:
    """Put weights into a model that must have exactly these."""
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise ModelError(f"{path}: does not fit the model it describes ({first})") from error


def start_from(model: Retriever, path: Path) -> list[str]:
    """Take over another model's encoder, and every other weight of the same name and shape.

    Returns
    -------
    list of str
        Names of the weights that were taken.

    Raises
    ------
    ModelError
        A weight of this model's encoder is not there, or of another shape.
    """
    tensors, _ = _read(path)
    own = model.state_dict()
    fitting = {
        name: value
        for name, value in tensors.items()
        if name in own and own[name].shape == value.shape
    }
    missing = [name for name in own if name.startswith("encoder.") and name not in fitting]
    if missing:
        raise ModelError(
            f"{path}: has another encoder than this model ({len(missing)} of its weights do not "
            f"fit, {missing[0]} first)"
        )
    model.load_state_dict(fitting, strict=False)
    return sorted(fitting)


def save_state(
    folder: Path, model: Retriever, optimizer: ClippedAdam, facts: dict[str, Any]
) -> None:
    """Write all that a run needs to go on: weights, moments, random state, and plain facts."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for what, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{what}.{name}"] = value
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    with atomic_directory(folder) as partial:
        save_file(_plain(tensors), partial / "state.safetensors")
        (partial / "state.json").write_text(json.dumps(facts))


def load_state(folder: Path, model: Retriever, optimizer: ClippedAdam) -> dict[str, Any]:
    """Put back what `save_state` wrote; returns the plain facts."""
    tensors, _ = _read(folder / "state.safetensors")
    try:
        facts = dict(json.loads((folder / "state.json").read_text()))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: its state cannot be read ({error})") from error
    weights = {
        name.removeprefix("model."): value
        for name, value in tensors.items()
        if name.startswith("model.")
    }
    load_into(model, weights, folder / "state.safetensors")
    for name, parameter in model.named_parameters():
        for what in ("step", "exp_avg", "exp_avg_sq"):
            value = tensors.get(f"optimizer.{what}.{name}")
            if value is not None:
                optimizer.state[parameter][what] = value.to(parameter.device)
    torch.set_rng_state(tensors["random.cpu"])
    if torch.cuda.is_available() and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return facts


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: is no safetensors file, or damaged ({error})") from error
