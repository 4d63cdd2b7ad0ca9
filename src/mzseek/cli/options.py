"""Options that several commands share; the names that help texts list come from registries."""

from typing import Annotated

import typer

from mzseek.chem.fingerprinting.registry import FINGERPRINTS
from mzseek.cli.output import only_json


def _keep_stdout(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.with_resource(only_json())
    return wanted


Fingerprint = Annotated[str, typer.Option(help=" ".join(FINGERPRINTS))]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Processes; all cores by default.", show_default=False),
]
EngineName = Annotated[
    str, typer.Option(help="local (processes) or ray (a cluster; needs mzseek[cluster]).")
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
