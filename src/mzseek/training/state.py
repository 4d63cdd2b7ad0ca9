"""All that a run needs to go on after a kill: weights, moments, random state."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import save_file

from mzseek.errors import RunError
from mzseek.files import atomic_directory, read_object
from mzseek.files.json_file import check_fields
from mzseek.models import Retriever
from mzseek.models.applied import as_arrays
from mzseek.runs.checkpoint import digest, read_arrays
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.weights import load_into

_STATE = {"step": int, "run?": str, "digest?": str}


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
    arrays = as_arrays(tensors)
    with atomic_directory(folder) as partial:
        save_file(arrays, partial / "state.safetensors")
        text = json.dumps(facts | {"digest": digest(arrays)})
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
    arrays, _ = read_arrays(path)
    if "digest" in facts and facts["digest"] != digest(arrays):
        raise RunError(f"{path}: has changed since it was written; {anew}")
    weights = {
        name.removeprefix("model."): value
        for name, value in arrays.items()
        if name.startswith("model.")
    }
    load_into(model, weights, path)
    for name, parameter in model.named_parameters():
        for what in ("step", "exp_avg", "exp_avg_sq"):
            value = arrays.get(f"optimizer.{what}.{name}")
            if value is None:
                continue
            if value.shape != (() if what == "step" else parameter.shape):
                raise RunError(f"{path}: {what} of {name} has another shape; {anew}")
            optimizer.state[parameter][what] = torch.from_numpy(value).to(parameter.device)
    try:
        torch.set_rng_state(torch.from_numpy(arrays["random.cpu"]))
        if torch.cuda.is_available() and "random.cuda" in arrays:
            torch.cuda.set_rng_state(torch.from_numpy(arrays["random.cuda"]))
    except (KeyError, RuntimeError, TypeError) as error:
        raise RunError(f"{path}: its random state cannot be read; {anew}") from error
    return {name: value for name, value in facts.items() if name != "digest"}
