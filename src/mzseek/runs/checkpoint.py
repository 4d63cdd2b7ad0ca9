"""Weights on disk: safetensors, never a pickle."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mzseek.errors import ModelError
from mzseek.files import atomic_file
from mzseek.files.json_file import check_fields, parse_object
from mzseek.models import ModelSpec, Retriever, build
from mzseek.runs.description import model_as_text, model_from_text

_KIND = "mzseek model weights"


def save_weights(model: Retriever, spec: ModelSpec, path: Path, facts: dict[str, Any]) -> str:
    """Write a model's weights with its description in the same file; returns their digest."""
    described = {"kind": _KIND, "model": model_as_text(spec), "facts": json.dumps(facts)}
    weights = plain(model.state_dict())
    with atomic_file(path) as partial:
        save_file(weights, partial, metadata=described)
    return digest(weights)


def digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and numbers; a file's own has the order of names in it."""
    found = hashlib.sha256()
    for name, value in sorted(plain(tensors).items()):
        found.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def load_weights(path: Path) -> tuple[Retriever, ModelSpec, dict[str, Any]]:
    """A model from its file, with its description and the facts it was saved with.

    Raises
    ------
    ModelError
        The file is missing, no model file, damaged, or does not fit its own description.
    """
    tensors, metadata = read_tensors(path)
    if metadata.get("kind") != _KIND:
        raise ModelError(f"{path}: is no mzseek model (safetensors without its description)")
    where = f"{path}: its description"
    spec = model_from_text(metadata.get("model", ""), where)
    facts = parse_object(metadata.get("facts", ""), where, ModelError)
    check_fields(facts, {"step?": int}, where, ModelError)
    _check_shapes(spec, tensors, path)
    model = build(spec, seed=0)  # whoever calls finds its random numbers where they were
    load_into(model, tensors, path)
    return model.eval(), spec, facts


def _check_shapes(spec: ModelSpec, tensors: dict[str, Tensor], path: Path) -> None:
    """Refuse weights of other shapes than described, before room is made for what is described."""
    if spec.repeats > len(tensors):
        what = f"{spec.repeats:,} {spec.encoder_kind.repeats}"
        raise ModelError(f"{path}: does not fit the model it describes ({what})")
    try:
        with torch.device("meta"):
            expected = build(spec).state_dict()
    except (ModelError, RuntimeError, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{path}: its description cannot be read ({reason})") from error
    for name in {**expected, **tensors}:
        if name not in expected or name not in tensors:
            what = "lacks" if name in expected else "holds"
            raise ModelError(f"{path}: does not fit the model it describes (it {what} {name})")
        if (found := tensors[name]).shape != expected[name].shape or not found.is_floating_point():
            raise ModelError(
                f"{path}: does not fit the model it describes ({name} is {found.dtype} of "
                f"{tuple(found.shape)}, expected numbers of {tuple(expected[name].shape)})"
            )


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
    tensors, _ = read_tensors(path)
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


def plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as safetensors takes them."""
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a file, and what it says of itself.

    Raises
    ------
    ModelError
        It is missing, damaged or no such file.
    """
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: is no safetensors file, or damaged ({error})") from error
