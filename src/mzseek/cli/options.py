"""Options that several commands share; the names that help texts list come from registries."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field
from fractions import Fraction
from typing import Annotated, Any, get_type_hints

import typer

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.cli.output import only_json
from mzseek.core.registry import FOLDS, IDENTITIES, RANKED_BY, TIES
from mzseek.parallel.ray import ENGINES


def _keep_stdout(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.with_resource(only_json())
    return wanted


def number(text: str) -> float:
    """A number as people write it, ``1/64`` included."""
    return float(Fraction(text)) if "/" in text else float(text)


def either(names: Collection[str]) -> str:
    """``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


Fold = Annotated[str, typer.Option(help=f"{either(FOLDS)}.")]
Similarity = Annotated[
    str | None,
    typer.Option(
        help=f"Rank by {either(RANKED_BY)} of the predicted fingerprint; by default as the model "
        "was trained."
    ),
]
TieRule = Annotated[str, typer.Option(help=f"Equal scores: {either(TIES)}.")]
Identity = Annotated[
    str, typer.Option(help=f"A hit has the same {either(IDENTITIES)} (its first block).")
]
Fingerprint = Annotated[str, typer.Option(help=" ".join(FINGERPRINTS))]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Processes; all cores by default.", show_default=False),
]
EngineName = Annotated[
    str,
    typer.Option(help="; ".join(f"{name}: {kind.stands_for}" for name, kind in ENGINES.items())),
]
Address = Annotated[str | None, typer.Option(help="Of a running Ray cluster.")]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=_keep_stdout,
        help="End with a JSON object, alone on standard output.",
    ),
]


def options_of(kind: type, fields: Collection[Field[Any]]) -> Callable[[Callable[..., None]], Any]:
    """Add an option to a command for each of these fields of a dataclass, with its own help.

    The command takes them by keyword, as ``**options``.
    """
    hints = get_type_hints(kind)
    added = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[hints[field.name], typer.Option(help=field.metadata["meaning"])],
        )
        for field in fields
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        signature = inspect.Signature(
            [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + added
        )
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return decorate
