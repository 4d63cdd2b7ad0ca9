"""Runs of the first format, in which the options of all parts stood side by side."""

from collections.abc import Mapping
from typing import Any

from mzseek.errors import RunError
from mzseek.files.json_file import check_fields
from mzseek.losses import loss_named
from mzseek.models import BASELINES, encoder_named, scorer_named
from mzseek.registry import check_name, own_options

FORMAT = 1
# Every option of that format, and its type; of those that are missing, the default holds.
_OPTIONS: dict[str, Any] = {
    "loss": str, "model": str, "candidates": str, "epochs": int, "batch_size": int, "lr": float,
    "seed": int, "temperature": float | None, "gamma": float | None, "weight": float | None,
    "pairwise": bool, "blocks": int | None, "width": int, "projected": int, "dropout": float,
    "warmup": int | None, "clip": float, "bias": str | None, "validate_every": int | None,
    "patience": int | None, "start_from": str | None, "threads": int | None,
}  # fmt: skip
_OF_PARTS = {
    "loss", "model", "temperature", "gamma", "weight", "pairwise", "blocks", "width", "projected",
    "dropout",
}  # fmt: skip


def as_now(options: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The description of a run of the first format, in the form of today.

    Parameters
    ----------
    options : mapping
        Its options, as its folder has them.
    where : object
        What messages call it.

    Raises
    ------
    RunError
        One is unknown, or of another type.
    LossError, ModelError
        It names a loss or a model that is unknown.
    """
    for name in options:
        check_name(_OPTIONS, name, f"{where}: option", RunError)
    expected = {f"{name}?": kind for name, kind in _OPTIONS.items()}
    check_fields({"options": options}, {"options": expected}, where, RunError)
    given = {name: value for name, value in options.items() if value is not None}
    loss = loss_named(given.get("loss", "bce"))
    scorer = scorer_named(loss.scorer)
    name = given.get("model", "mlp")
    model: dict[str, Any] = {"baseline": name}
    if name not in BASELINES:
        model = {
            "encoder": {"name": name, "options": own_options(encoder_named(name).options, given)}
        }
    model["scorer"] = {"name": scorer.name, "options": own_options(scorer.options, given)}
    # Of a part, its own options alone: numbers were written also where none apply.
    training = {name: value for name, value in options.items() if name not in _OF_PARTS}
    return {
        "model": model,
        "loss": {"name": loss.name, "options": own_options(loss.options, given)},
        "options": {"candidates": "mass", "seed": 0, **training},
    }
