"""All commands, each loaded when it is called."""

import importlib
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from mzseek.version import __version__

# The first line of each command's help; `mzseek.cli.commands.NAME` has a function NAME, or a group
# NAME_app. `_MODULES` names the modules that hold several commands.
COMMANDS = {
    "annotate": "Find the molecules behind spectra: ranked, with reasons and a confidence.",
    "formula": "Rank the molecular formulas behind spectra, without a database.",
    "network": "Connect similar features, so that unknowns get a neighbourhood.",
    "show": "What is in a file of spectra: counts, ions, masses, structures, skipped records.",
    "data": "Get, build and check data sets, and match their candidates.",
    "database": "Build a molecule database and look molecules up in it.",
    "library": "Build a library of reference spectra and search it.",
    "prepare": "Turn a data set into the sparse arrays that training reads.",
    "negatives": "Mine negatives for training, for every molecule of a data set.",
    "train": "Train a model on a prepared data set.",
    "fit": "Fit a ranker over channels of evidence: fragments, analogs, trained runs.",
    "simulate": "Predict the fragment spectra of molecules, as a library in silico.",
    "model": "Make, check and describe the bundle that annotation goes by.",
    "evaluate": "Score a run, from its saved predictions where there are any.",
    "report": "Pages about runs: the trade-off, calibration, how training went, and the data.",
    "bands": "How alike the candidates are: the similarity bands that bound regret.",
    "advise": "Which fingerprint and which loss to train with, for these candidates and your goal.",
    "decide": "What to decide for, by the metric that counts, and what each other decision costs.",
    "reproduce": "Run the paper's tables and figures, with the published numbers beside.",
    "tune": "Train a grid of one's own, choose on validation, and write the table.",
    "serve": "Annotate in the browser, or over HTTP: a web page and an API for a laboratory.",
    "demo": "Annotate real spectra with what comes with mzseek, then train on some of them.",
}

_MODULES = {"reproduce": "experiments", "tune": "experiments"}


class Group(TyperGroup):
    """Commands below a command, each shown with its whole first line."""

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``, not given by default: of None, typer asks pydantic whether it is a flag."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option

    def first_lines(self) -> list[tuple[str, str]]:
        """Return the names of the commands, and what they are for."""
        return [
            (name, (command.help or "").split("\n")[0]) for name, command in self.commands.items()
        ]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write names and first lines; typer would cut them at the width of the page."""
        with formatter.section("Commands"):
            formatter.write_dl(self.first_lines())


@cache
def loaded(name: str) -> Any:
    """Return the command of that name, as click has it."""
    from mzseek.cli.options import CheckedCommand

    module = importlib.import_module(f"mzseek.cli.commands.{_MODULES.get(name, name)}")
    # Plain text: markup would take `mzseek[extras]` for a style, and boxes take time to draw.
    holder = typer.Typer(add_completion=False, rich_markup_mode=None)
    holder.callback()(lambda: None)
    if hasattr(module, f"{name}_app"):
        group = getattr(module, f"{name}_app")
        for command in group.registered_commands:
            command.cls = CheckedCommand
        holder.add_typer(group, name=name, cls=Group)
    else:
        holder.command(name, cls=CheckedCommand)(getattr(module, name))
    commands: dict[str, Any] = get_command(holder).commands  # type: ignore[attr-defined]
    return commands[name]


class LazyGroup(Group):
    """Commands whose modules are not imported before they are called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, if there is one."""
        return loaded(cmd_name) if cmd_name in COMMANDS else None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an end of file inside its work is nobody's wish to stop."""
        try:
            return super().invoke(ctx)
        except EOFError as error:  # typer would begin a new line after the input has ended
            raise typer.Abort from error

    def first_lines(self) -> list[tuple[str, str]]:
        """Return the names of the commands, and what they are for, without importing them."""
        return list(COMMANDS.items())


app = typer.Typer(
    name="mzseek",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(requested: bool) -> None:
    if requested:
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

    `mzseek annotate my.mgf` answers with what comes with it. The other commands build databases and
    libraries, train models, measure them, and check claims.
    """
