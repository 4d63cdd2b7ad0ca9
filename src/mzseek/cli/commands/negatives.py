"""``mzseek negatives``."""

from typing import Annotated, Any

import typer

from mzseek.cli.options import (
    AsJson,
    By,
    DatabaseOption,
    EngineOptions,
    Ppm,
    PreparedFolder,
    options_of,
)
from mzseek.cli.output import print_json, say, say_next, watched
from mzseek.core.registry import EQUAL_IN, MINED


@options_of(EngineOptions)
def negatives(
    data: PreparedFolder,
    database: DatabaseOption,
    by: By = EQUAL_IN[0],
    keep: Annotated[
        int, typer.Option(min=2, help="Length of a list at the most, the truth included.")
    ] = 256,
    kind: Annotated[
        str, typer.Option(help=f"{MINED[0]} (most alike by Tanimoto) or {MINED[1]}.")
    ] = MINED[0],
    ppm: Ppm = 10.0,
    seed: Annotated[int, typer.Option(help="For --kind random.")] = 0,
    as_json: AsJson = False,
    **engine: Any,
) -> None:
    """Mine negatives for training, for every molecule of a data set.

    The lists are added to the folder under a name such as hard-mass-256. Models trained on them
    are measured on the lists that came with the data.

    Example: mzseek negatives prepared --database candidates --by mass --keep 256
    """
    from mzseek.database import Database
    from mzseek.datasets.extra_lists import add_negatives
    from mzseek.datasets.prepared import Prepared

    with watched() as progress:
        _, metadata = add_negatives(
            Prepared.open(data), Database.open(database), by=by, keep=keep, kind=kind, ppm=ppm,
            seed=seed, engine=EngineOptions(**engine).start(), progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(metadata)
        return
    say(
        f"{metadata['lists']:,} lists, mean {metadata['mean']:.1f}, median {metadata['median']:g}, "
        f"largest {metadata['largest']}"
        + (f"; {metadata['alone']:,} have no negative" if metadata["alone"] else "")
    )
    if metadata["truths_in_other_form"]:
        say(f"{metadata['truths_in_other_form']:,} truths are there as the database has them")
    if metadata["molecules_without"]:
        say(f"{metadata['molecules_without']:,} molecules cannot be standardised and have no list")
    how = ("--loss", "emb-cos", "--candidates", metadata["name"])
    say_next("mzseek", "train", data, *how, "--out", "runs/emb-cos")
