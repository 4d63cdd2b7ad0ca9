"""All commands, gathered."""

from typing import Annotated

import typer

from mzseek import __version__
from mzseek.cli.advise import advise
from mzseek.cli.bands import bands
from mzseek.cli.data import data_app
from mzseek.cli.database import database_app
from mzseek.cli.decide import decide
from mzseek.cli.demo import demo
from mzseek.cli.evaluate import evaluate
from mzseek.cli.negatives import negatives
from mzseek.cli.prepare import prepare
from mzseek.cli.train import train

app = typer.Typer(
    name="mzseek",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mzseek {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find the molecule behind a tandem mass spectrum.

    This version makes data sets, trains models, measures them and decodes them for any metric; it
    does not annotate yet.
    """


app.add_typer(data_app, name="data")
app.add_typer(database_app, name="database")
app.command("prepare")(prepare)
app.command("negatives")(negatives)
app.command("train")(train)
app.command("evaluate")(evaluate)
app.command("bands")(bands)
app.command("advise")(advise)
app.command("decide")(decide)
app.command("demo")(demo)
