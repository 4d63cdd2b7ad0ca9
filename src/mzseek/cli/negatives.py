"""``mzseek negatives``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mzseek.cli.database import Address, EngineName, JobCount
from mzseek.cli.output import say, watched
from mzseek.data.cache import Prepared


def negatives(
    data: Annotated[Path, typer.Argument(help="Folder that `mzseek prepare` has made.")],
    database: Annotated[Path, typer.Option(help="Folder that `mzseek database build` has made.")],
    by: Annotated[str, typer.Option(help="Candidates of equal mass or formula.")] = "mass",
    keep: Annotated[
        int, typer.Option(min=2, help="Length of a list at the most, the truth included.")
    ] = 256,
    kind: Annotated[
        str, typer.Option(help="hardest (most alike by Tanimoto) or random.")
    ] = "hardest",
    ppm: Annotated[float, typer.Option(min=0.0, help="For --by mass.")] = 10.0,
    seed: Annotated[int, typer.Option(help="For --kind random.")] = 0,
    jobs: JobCount = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Annotated[bool, typer.Option("--json", help="End with a JSON object.")] = False,
) -> None:
    """Mine negatives for training, for every molecule of a data set.

    The lists are added to the folder under a name such as hard-mass-256. Models trained on them
    are measured on the lists that came with the data.

    Example: mzseek negatives prepared --database candidates --by mass --keep 256
    """
    from mzseek.data.negatives import add_negatives
    from mzseek.database import Database
    from mzseek.work import engine_named

    with watched() as progress:
        _, facts = add_negatives(
            Prepared.open(data), Database.open(database), by=by, keep=keep, kind=kind, ppm=ppm,
            seed=seed, engine=engine_named(engine, jobs, address), progress=progress,
        )  # fmt: skip
    if as_json:
        print(json.dumps(facts))
        return
    say(
        f"{facts['lists']:,} lists, median {facts['median']:g}, largest {facts['largest']}"
        + (f"; {facts['alone']:,} have no negative" if facts["alone"] else "")
    )
    say(f"Next: mzseek train {data} --loss emb-cos --candidates {facts['name']} --out runs/NAME")
