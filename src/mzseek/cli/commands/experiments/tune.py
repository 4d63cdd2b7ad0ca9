"""``mzseek tune``."""

from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.experiments import DropModels, run_experiments
from mzseek.cli.options import Address, AsJson, EngineName, Jobs
from mzseek.cli.output import plain, print_json, say
from mzseek.extras import require


def tune(
    grid: Annotated[
        Path, typer.Argument(help="A file that says what to train: rows, columns, protocol.")
    ],
    data: Annotated[Path, typer.Option(help="Data set (a folder, or its table).")],
    out: Annotated[Path, typer.Option(help="Folder for runs and results.")],
    database: Annotated[
        Path | None, typer.Option(help="Molecules that hard negatives are mined from.")
    ] = None,
    drop_models: DropModels = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Train a grid of one's own, choose on validation, and write the table.

    The file has the form of the paper's experiments. A list of values is tuned over: of each row
    the point with the best mean over seeds on validation is shown.

    Example: mzseek tune grid.yaml --data dataset --out tuned
    """
    require("yaml", "tuning")
    require("matplotlib", "tuning")
    from mzseek.experiments import Scale, read_experiment

    whole = Scale("tune", protocol="auto")
    found, page = run_experiments(
        [read_experiment(grid)], whole, out, data=data, database=database, jobs=jobs, engine=engine,
        address=address, drop_models=drop_models,
    )  # fmt: skip
    if as_json:
        print_json({"out": str(out), "page": str(page), "results": found})
        return
    say(f"[bold]Look at {plain(page)}[/bold] in a browser.")
