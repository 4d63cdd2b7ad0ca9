"""``mzseek reproduce``."""

from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.experiments import DropModels, run_experiments
from mzseek.cli.options import Address, AsJson, EngineName, Jobs
from mzseek.cli.output import new_table, plain, print_json, say, show
from mzseek.extras import require


def _list(wanted: bool) -> None:
    """Every experiment, and nothing else."""
    if not wanted:
        return
    require("yaml", "reproducing")
    from mzseek.experiments import experiment_named, names

    table = new_table()
    for head in ("name", "in the paper", "what"):
        table.add_column(head)
    for name in names():
        experiment = experiment_named(name)
        place = experiment.paper.partition(" (")[0]  # its label is for who has the source
        table.add_row(name, plain(place), plain(experiment.title))
    show(table)
    raise typer.Exit


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, as --list has them; all by default.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Data set (a folder, or its table); simulated data by default."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="smoke (minutes), laptop (hours) or paper (the whole protocol).")
    ] = "smoke",
    out: Annotated[Path, typer.Option(help="Folder for runs and results.")] = Path("reproduced"),
    database: Annotated[
        Path | None, typer.Option(help="Molecules that hard negatives are mined from.")
    ] = None,
    drop_models: DropModels = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    list_them: Annotated[
        bool,
        typer.Option(
            "--list", callback=_list, is_eager=True, help="Name all experiments, and exit."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's tables and figures, with the published numbers beside.

    Runs that have ended are never run again, and experiments share them. Each experiment gets its
    table (Markdown, LaTeX, CSV), its figure, and which of the paper's claims hold on these data.

    Example: mzseek reproduce main front --data dataset --scale laptop --out reproduced
    """
    require("yaml", "reproducing")
    require("matplotlib", "reproducing")
    from mzseek.experiments import experiment_named, scale_named
    from mzseek.experiments import names as known

    size = scale_named(scale)
    chosen = [experiment_named(name) for name in dict.fromkeys(names or known())]
    found, page = run_experiments(
        chosen,
        size,
        out,
        data=data,
        database=database,
        jobs=jobs,
        engine=engine,
        address=address,
        drop_models=drop_models,
    )
    if as_json:
        print_json({"out": str(out), "page": str(page), "results": found})
        return
    say(f"[bold]Look at {plain(page)}[/bold] in a browser.")
