"""Weights on disk: safetensors, never a pickle; read and written as arrays."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mzseek.errors import ModelError
from mzseek.files import atomic_file
from mzseek.files.json_file import check_fields, parse_object
from mzseek.models import ModelSpec
from mzseek.runs.description import model_as_text, model_from_text

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
    (`mzseek.runs.network`).

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
