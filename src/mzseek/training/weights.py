"""Weights of a model that is trained: as arrays, and put into it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch

from mzseek.errors import ModelError
from mzseek.models import Retriever
from mzseek.runs.checkpoint import read_arrays


def load_into(model: Retriever, arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Put weights into a model that must have exactly these; ``path`` is where they are from."""
    try:
        model.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items()})
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
    arrays, _ = read_arrays(path)
    own = model.state_dict()
    fitting = {
        name: torch.from_numpy(value)
        for name, value in arrays.items()
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
