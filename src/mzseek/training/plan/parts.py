"""Options of parts as they are written on the command line: ``encoder.layers=4``. No torch."""

from collections.abc import Iterable, Mapping
from typing import Any

from mzseek.errors import LossError, RunError
from mzseek.losses import LOSSES, loss_named
from mzseek.models import BASELINES, ENCODERS, SCORERS, scorer_named
from mzseek.registry import check_name, described, option_from_text

MODELS = (*ENCODERS, *BASELINES)
CONTROLS = (*(name for name, kind in ENCODERS.items() if not kind.sees_spectrum), *BASELINES)
PARTS = ("encoder", "scorer", "loss")


def read_settings(
    texts: Iterable[str],
    loss: str,
    model: str,
    given: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Options of the parts, from texts and from what is given already.

    Parameters
    ----------
    texts : iterable of str
        ``PART.OPTION=VALUE``, the part being the encoder, the scorer or the loss.
    loss, model : str
        Names of what is trained: they say which options there are.
    given : mapping, optional
        Options that were given in another way, by part; None means "not given".

    Returns
    -------
    dict
        By part, as `mzseek.training.plan.options.Options.of` takes them.

    Raises
    ------
    RunError, LossError
        A name is unknown, a value does not fit, or an option is given twice.

    Examples
    --------
    >>> read_settings(["encoder.layers=4", "loss.gamma=3"], "focal", "transformer")
    {'encoder': {'layers': 4}, 'scorer': {}, 'loss': {'gamma': 3.0}}
    """
    check_name(LOSSES, loss, "loss", LossError)
    check_name(MODELS, model, "model", RunError)
    taken: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for part, options in (given or {}).items():
        taken[part] |= {name: value for name, value in options.items() if value is not None}
    kinds: dict[str, tuple[str, Any]] = {
        "scorer": (loss_named(loss).scorer, scorer_named(loss_named(loss).scorer)),
        "loss": (loss, loss_named(loss)),
    }
    if model in ENCODERS:
        kinds["encoder"] = (model, ENCODERS[model])
    for text in texts:
        where, equals, value = text.partition("=")
        part, dot, name = where.partition(".")
        if not (equals and dot):
            raise RunError(
                f"--set {text[:80]!r}: expected PART.OPTION=VALUE, such as encoder.width=512"
            )
        check_name(PARTS, part, "--set: part", RunError)
        if part not in kinds:
            raise RunError(f"--set {where[:80]}: the model {model} has no encoder")
        if name in taken[part]:
            raise RunError(f"--set {where}: is given twice")
        whose, kind = kinds[part]
        taken[part][name] = option_from_text(
            kind.options, name, value, f"--set: {part} {whose}", RunError
        )
    return taken


def list_settings() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Every part by its whole name (``encoder mlp``); of its options, name, default and meaning."""
    return [
        (f"{part} {name}", described(kind.options))
        for part, kinds in (("encoder", ENCODERS), ("scorer", SCORERS), ("loss", LOSSES))
        for name, kind in kinds.items()
    ]
