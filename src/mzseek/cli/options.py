"""Options that several commands share, and the names that their help texts list.

Names are written out, since asking the registries would load their rooms for every ``--help``;
tests compare them.
"""

from typing import Annotated

import typer

from mzseek.cli.output import only_json

FINGERPRINT_NAMES = "morgan2 morgan4 morgan6 morgan8 rdkit map4 maccs"
BAND_NAMES = "tanimoto cosine f1"
GOAL_NAMES = "hit tanimoto cosine bits"
WITHIN_NAMES = "candidates all"


def _keep_stdout(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.with_resource(only_json())
    return wanted


Fingerprint = Annotated[str, typer.Option(help=FINGERPRINT_NAMES)]
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
