"""Weights and training state on disk: safetensors and JSON, never a pickle."""

import hashlib
import json
from pathlib import Path
from typing import Any, get_type_hints

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mzseek.errors import ModelError, RunError
from mzseek.files import atomic_directory, atomic_file, read_object
from mzseek.files.json_file import check_fields, parse_object
from mzseek.models import ModelSpec, Retriever, build
from mzseek.training.optimizer import ClippedAdam

_KIND = "mzseek model weights"
_STATE = {"step": int, "run?": str, "digest?": str}


def save_weights(model: Retriever, spec: ModelSpec, path: Path, facts: dict[str, Any]) -> str:
    """Write a model's weights with its description in the same file; returns their digest."""
    described = {"kind": _KIND, "model": json.dumps(spec.to_dict()), "facts": json.dumps(facts)}
    weights = _plain(model.state_dict())
    with atomic_file(path) as partial:
        save_file(weights, partial, metadata=described)
    return digest(weights)


def digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and numbers; a file's own has the order of names in it."""
    found = hashlib.sha256()
    for name, value in sorted(_plain(tensors).items()):
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
    tensors, metadata = _read(path)
    if metadata.get("kind") != _KIND:
        raise ModelError(f"{path}: is no mzseek model (safetensors without its description)")
    where = f"{path}: its description"
    spec = _spec_in(metadata.get("model", ""), where)
    facts = parse_object(metadata.get("facts", ""), where, ModelError)
    check_fields(facts, {"step?": int}, where, ModelError)
    _check_shapes(spec, tensors, path)
    model = build(spec)
    load_into(model, tensors, path)
    return model.eval(), spec, facts


def _spec_in(text: str, where: str) -> ModelSpec:
    found = parse_object(text, where, ModelError)
    check_fields(found, get_type_hints(ModelSpec), where, ModelError)
    try:
        return ModelSpec.from_dict(found)
    except ModelError as error:
        raise ModelError(f"{where} cannot be read ({error})") from error


def _check_shapes(spec: ModelSpec, tensors: dict[str, Tensor], path: Path) -> None:
    """Refuse weights of other shapes than described, before room is made for what is described."""
    if spec.blocks > len(tensors):
        raise ModelError(f"{path}: does not fit the model it describes ({spec.blocks:,} blocks)")
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
    tensors = _plain(tensors)
    with atomic_directory(folder) as partial:
        save_file(tensors, partial / "state.safetensors")
        text = json.dumps(facts | {"digest": digest(tensors)})
        (partial / "state.json").write_text(text, encoding="utf-8")


def load_state(
    folder: Path, model: Retriever, optimizer: ClippedAdam, run: str | None = None
) -> dict[str, Any]:
    """Put back what `save_state` wrote; returns the plain facts.

    Parameters
    ----------
    folder : Path
    model : Retriever
    optimizer : ClippedAdam
    run : str, optional
        Identity of the run that it must be the state of.

    Raises
    ------
    RunError, ModelError
        It is damaged, or of another run.
    """
    anew = f"remove {folder} to begin the run anew"
    path = folder / "state.safetensors"
    facts = read_object(folder / "state.json", RunError, anew)
    check_fields(facts, _STATE, folder / "state.json", RunError, anew)
    if run is not None and facts.get("run", run) != run:
        raise RunError(f"{folder}: is the state of another run; {anew}")
    tensors, _ = _read(path)
    if "digest" in facts and facts["digest"] != digest(tensors):
        raise RunError(f"{path}: has changed since it was written; {anew}")
    weights = {
        name.removeprefix("model."): value
        for name, value in tensors.items()
        if name.startswith("model.")
    }
    load_into(model, weights, path)
    for name, parameter in model.named_parameters():
        for what in ("step", "exp_avg", "exp_avg_sq"):
            value = tensors.get(f"optimizer.{what}.{name}")
            if value is None:
                continue
            if value.shape != (() if what == "step" else parameter.shape):
                raise RunError(f"{path}: {what} of {name} has another shape; {anew}")
            optimizer.state[parameter][what] = value.to(parameter.device)
    try:
        torch.set_rng_state(tensors["random.cpu"])
        if torch.cuda.is_available() and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"])
    except (KeyError, RuntimeError, TypeError) as error:
        raise RunError(f"{path}: its random state cannot be read; {anew}") from error
    return {name: value for name, value in facts.items() if name != "digest"}


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
